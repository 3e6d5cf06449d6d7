"""JetStream on any natsproto client: streams, consumers, publishing.

`jetstream.blocking` has the same names without async and await.

A name is imported when somebody asks for it: of fifty modules a program uses some.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import JetStream as JetStream
    from .batch import AtomicBatch as AtomicBatch
    from .config import ConsumerConfig as ConsumerConfig
    from .config import ConsumerLimits as ConsumerLimits
    from .config import ExternalStream as ExternalStream
    from .config import Placement as Placement
    from .config import Republish as Republish
    from .config import SourceConsumer as SourceConsumer
    from .config import StreamConfig as StreamConfig
    from .config import StreamSource as StreamSource
    from .config import SubjectTransform as SubjectTransform
    from .consumer import BoundConsumer as BoundConsumer
    from .consumer import Consumer as Consumer
    from .counters import Counter as Counter
    from .errors import ApiError as ApiError
    from .errors import JetStreamError as JetStreamError
    from .fast import FastBatch as FastBatch
    from .info import AccountInfo as AccountInfo
    from .info import ConsumerInfo as ConsumerInfo
    from .info import ConsumerPause as ConsumerPause
    from .info import PubAck as PubAck
    from .info import StreamInfo as StreamInfo
    from .listing import Listing as Listing
    from .messages import JsMsg as JsMsg
    from .metadata import Metadata as Metadata
    from .ordered_consumer import OrderedConsumer as OrderedConsumer
    from .publisher import Publication as Publication
    from .stored import StoredMsg as StoredMsg
    from .stream import Stream as Stream
    from .timestamp import Timestamp as Timestamp
    from .window import PublishWindow as PublishWindow

_HOMES = {
    "AccountInfo": "info",
    "ApiError": "errors",
    "AtomicBatch": "batch",
    "BoundConsumer": "consumer",
    "Consumer": "consumer",
    "ConsumerConfig": "config",
    "ConsumerInfo": "info",
    "ConsumerLimits": "config",
    "ConsumerPause": "info",
    "Counter": "counters",
    "ExternalStream": "config",
    "FastBatch": "fast",
    "JetStream": "api",
    "JetStreamError": "errors",
    "JsMsg": "messages",
    "Listing": "listing",
    "Metadata": "metadata",
    "OrderedConsumer": "ordered_consumer",
    "Placement": "config",
    "PubAck": "info",
    "Publication": "publisher",
    "PublishWindow": "window",
    "Republish": "config",
    "SourceConsumer": "config",
    "StoredMsg": "stored",
    "Stream": "stream",
    "StreamConfig": "config",
    "StreamInfo": "info",
    "StreamSource": "config",
    "SubjectTransform": "config",
    "Timestamp": "timestamp",
}
__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # or a checker would believe that every name is there

    def __getattr__(name: str) -> object:
        # Modules are found as well, as in `except jetstream.errors.StreamNotFound`; on MicroPython
        # `from . import api` asks here before it looks for a file.
        home = _HOMES.get(name, name)
        try:
            found: object = __import__("jetstream." + home, None, None, [name])
        except ImportError as error:
            from natsproto.errors import MissingExtra

            if isinstance(error, MissingExtra):
                raise  # it says what to install
            raise AttributeError("module 'jetstream' has no attribute %r" % name) from error
        if name in _HOMES:
            found = getattr(found, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return __all__
