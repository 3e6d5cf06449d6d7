"""The key-value store (ADR-8): the names that programs use, imported on first use."""

from __future__ import annotations

from natsproto.lazy import lazy_list, lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .aes import AesGcmCodec as AesGcmCodec
    from .codecs import Base64Codec as Base64Codec
    from .codecs import KeyCodec as KeyCodec
    from .codecs import PathCodec as PathCodec
    from .codecs import ValueCodec as ValueCodec
    from .config import KeyValueConfig as KeyValueConfig
    from .config import KeyValueStatus as KeyValueStatus
    from .entry import KeyValueEntry as KeyValueEntry
    from .store import KeyValue as KeyValue
    from .watch import InitialEntries as InitialEntries
    from .watch import KeyLister as KeyLister
    from .watch import KeyWatcher as KeyWatcher
else:
    _HOMES = """
        aes: AesGcmCodec
        codecs: Base64Codec KeyCodec PathCodec ValueCodec
        config: KeyValueConfig KeyValueStatus
        entry: KeyValueEntry
        store: KeyValue
        watch: InitialEntries KeyLister KeyWatcher
    """
    __getattr__ = lazy_names("jetstream.kv", _HOMES, globals())

    def __dir__() -> list[str]:
        return sorted(lazy_list(_HOMES))
