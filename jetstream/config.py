"""The configurations of streams and consumers, all in one place to import from."""

from __future__ import annotations

from .schema.consumer_config import ConsumerConfig
from .schema.stream_config import ConsumerLimits, Placement, Republish, StreamConfig
from .schema.stream_sources import ExternalStream, SourceConsumer, StreamSource, SubjectTransform

TYPE_CHECKING = False
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
