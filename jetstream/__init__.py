"""JetStream on any natsproto client: streams, consumers, publishing.

`jetstream.blocking` has the same names without async and await.
"""

from __future__ import annotations

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
