"""The configurations of streams and consumers, and their parts."""

from __future__ import annotations

from .schema.consumer_config import ConsumerConfig
from .schema.stream_config import ConsumerLimits, Placement, Republish, StreamConfig
from .schema.stream_sources import ExternalStream, SourceConsumer, StreamSource, SubjectTransform

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .schema.consumer_config import ConsumerConfigDict as ConsumerConfigDict
    from .schema.stream_config import StreamConfigDict as StreamConfigDict

__all__ = [
    "ConsumerConfig",
    "ConsumerLimits",
    "ExternalStream",
    "Placement",
    "Republish",
    "SourceConsumer",
    "StreamConfig",
    "StreamSource",
    "SubjectTransform",
]
