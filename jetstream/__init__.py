"""JetStream on any natsproto client: streams, consumers, publishing.

`jetstream.blocking` has the same names without async and await.

A name is imported when somebody asks for it: of fifty modules a program uses some.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.counters import Counter as Counter
    from .api.listing import Listing as Listing
    from .api.metadata import Metadata as Metadata
    from .api.stored import StoredMsg as StoredMsg
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
    from .context import JetStream as JetStream
    from .errors import ApiError as ApiError
    from .errors import JetStreamError as JetStreamError
    from .message import JsMsg as JsMsg
    from .ordered.api import OrderedConsumer as OrderedConsumer
    from .publish.atomic import AtomicBatch as AtomicBatch
    from .publish.fast import FastBatch as FastBatch
    from .publish.window import PublishWindow as PublishWindow
    from .publish.window_machine import Publication as Publication
    from .schema.info import AccountInfo as AccountInfo
    from .schema.info import ConsumerInfo as ConsumerInfo
    from .schema.info import ConsumerPause as ConsumerPause
    from .schema.info import PubAck as PubAck
    from .schema.info import StreamInfo as StreamInfo
    from .schema.timestamp import Timestamp as Timestamp
    from .stream import Stream as Stream

_HOMES = {
    "AccountInfo": "schema.info",
    "ApiError": "errors",
    "AtomicBatch": "publish.atomic",
    "BoundConsumer": "consumer",
    "Consumer": "consumer",
    "ConsumerConfig": "config",
    "ConsumerInfo": "schema.info",
    "ConsumerLimits": "config",
    "ConsumerPause": "schema.info",
    "Counter": "api.counters",
    "ExternalStream": "config",
    "FastBatch": "publish.fast",
    "JetStream": "context",
    "JetStreamError": "errors",
    "JsMsg": "message",
    "Listing": "api.listing",
    "Metadata": "api.metadata",
    "OrderedConsumer": "ordered.api",
    "Placement": "config",
    "PubAck": "schema.info",
    "Publication": "publish.window_machine",
    "PublishWindow": "publish.window",
    "Republish": "config",
    "SourceConsumer": "config",
    "StoredMsg": "api.stored",
    "Stream": "stream",
    "StreamConfig": "config",
    "StreamInfo": "schema.info",
    "StreamSource": "config",
    "SubjectTransform": "config",
    "Timestamp": "schema.timestamp",
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
