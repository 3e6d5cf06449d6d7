"""The object store (ADR-20): the names that programs use, imported on first use."""

from __future__ import annotations

from natsproto.lazy import lazy_names

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
    _HOMES = {
        "InitialObjects": "watch",
        "ObjectInfo": "info",
        "ObjectLink": "info",
        "ObjectMeta": "info",
        "ObjectMetaOptions": "info",
        "ObjectReader": "read",
        "ObjectStore": "store",
        "ObjectStoreConfig": "config",
        "ObjectStoreStatus": "config",
        "ObjectWatcher": "watch",
    }
    __getattr__ = lazy_names("jetstream.objects", _HOMES, globals())

    def __dir__() -> list[str]:
        return sorted(_HOMES)
