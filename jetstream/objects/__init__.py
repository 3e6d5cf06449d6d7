"""The object store (ADR-20): the names that programs use, imported on first use."""

from __future__ import annotations

from natsproto.lazy import lazy_list, lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .config import ObjectStoreConfig as ObjectStoreConfig
    from .config import ObjectStoreStatus as ObjectStoreStatus
    from .info import ObjectInfo as ObjectInfo
    from .info import ObjectLink as ObjectLink
    from .info import ObjectMeta as ObjectMeta
    from .info import ObjectMetaOptions as ObjectMetaOptions
    from .read import ObjectReader as ObjectReader
    from .store import ObjectStore as ObjectStore
    from .watch import InitialObjects as InitialObjects
    from .watch import ObjectWatcher as ObjectWatcher
else:
    _HOMES = """
        config: ObjectStoreConfig ObjectStoreStatus
        info: ObjectInfo ObjectLink ObjectMeta ObjectMetaOptions
        read: ObjectReader
        store: ObjectStore
        watch: InitialObjects ObjectWatcher
    """
    __getattr__ = lazy_names("jetstream.objects", _HOMES, globals())

    def __dir__() -> list[str]:
        return sorted(lazy_list(_HOMES))
