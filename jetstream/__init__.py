"""JetStream on any natsproto client: streams, consumers, publishing.

`jetstream.blocking` has the same names without async and await.

A name is imported when somebody asks for it: of fifty modules a program uses some.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import JetStream
    from .batch import AtomicBatch
    from .config import (
        ConsumerConfig,
        ConsumerLimits,
        ExternalStream,
        Placement,
        Republish,
        SourceConsumer,
        StreamConfig,
        StreamSource,
        SubjectTransform,
    )
    from .consumer import Consumer
    from .counters import Counter
    from .errors import ApiError, JetStreamError
    from .fast import FastBatch
    from .info import AccountInfo, ConsumerInfo, ConsumerPause, PubAck, StreamInfo
    from .messages import JsMsg
    from .metadata import Metadata
    from .ordered_consumer import OrderedConsumer
    from .publisher import Publication
    from .stored import StoredMsg
    from .stream import Stream
    from .timestamp import Timestamp
    from .window import PublishWindow

__all__ = [
    "AccountInfo",
    "ApiError",
    "AtomicBatch",
    "Consumer",
    "ConsumerConfig",
    "ConsumerInfo",
    "ConsumerLimits",
    "ConsumerPause",
    "Counter",
    "ExternalStream",
    "FastBatch",
    "JetStream",
    "JetStreamError",
    "JsMsg",
    "Metadata",
    "OrderedConsumer",
    "Placement",
    "PubAck",
    "Publication",
    "PublishWindow",
    "Republish",
    "SourceConsumer",
    "StoredMsg",
    "Stream",
    "StreamConfig",
    "StreamInfo",
    "StreamSource",
    "SubjectTransform",
    "Timestamp",
]

_HOMES = {
    "AccountInfo": "info",
    "ApiError": "errors",
    "AtomicBatch": "batch",
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


def __getattr__(name: str) -> object:
    # Modules are found as well, as in `except jetstream.errors.StreamNotFound`; on MicroPython
    # `from . import api` asks here before it looks for a file.
    home = _HOMES.get(name, name)
    try:
        found: object = __import__("jetstream." + home, None, None, [name])
    except ImportError as error:
        raise AttributeError("module 'jetstream' has no attribute %r" % name) from error
    if name in _HOMES:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
