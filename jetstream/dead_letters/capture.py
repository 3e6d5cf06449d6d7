"""Capture: a stream that stores the advisories of one consumer until they are handled.

Servers publish advisories once. A stream with their subjects keeps them while no program listens.
It is a work queue: an acknowledged entry is removed, so the stream holds the open dead letters.
"""

from __future__ import annotations

from jetstream.advisories.kinds import EVENT_PREFIX, subjects_of
from jetstream.api.assets import consumer_info, put_consumer, put_stream, stream_info
from jetstream.errors.api import ConsumerNotFound, StreamNotFound
from jetstream.pull.api import Puller
from jetstream.schema.consumer_config import ConsumerConfig
from jetstream.schema.stream_config import StreamConfig
from natsproto.errors import InvalidValue
from natsproto.wire.subjects import check_new_name, matches
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.api.client import ApiClient
    from jetstream.pull.messages import Messages
    from jetstream.schema.stream_info import StreamInfo

ACK_WAIT = 60.0  # seconds until an entry that was not settled is delivered again
_BUFFER = 16  # entries; the ack wait of a buffered entry has already begun
_EXPIRES = 30.0


def subjects_to_capture(stream: str, consumer: str) -> list[str]:
    """Return the subjects of the advisories about dead letters of a consumer."""
    return subjects_of(["max_deliver", "terminated"], stream, consumer, EVENT_PREFIX)  # DEAD-1


async def ensure_capture(api: ApiClient, name: str, stream: StreamInfo, consumer: str) -> None:
    """Create the stream that captures the advisories, unless it exists (D-DEAD-10).

    InvalidValue: it exists and does not capture them.
    """
    check_new_name("durable", name)
    wanted = subjects_to_capture(stream.config.name, consumer)
    try:
        found = (await stream_info(api, name)).config.subjects
    except StreamNotFound:
        config = StreamConfig(
            name=name,
            subjects=wanted,
            retention="workqueue",
            storage="file",
            num_replicas=stream.config.num_replicas or 1,
            description="Dead letters of consumer %s of stream %s" % (consumer, stream.config.name),
        )
        await put_stream(api, "CREATE", config)
        return
    for subject in wanted:
        if not any(matches(pattern, subject) for pattern in found):
            text = "stream %s does not capture dead letters: its subjects do not include %s"
            raise InvalidValue(text % (shorten(name), subject), "D-DEAD-10")


async def open_capture(api: ApiClient, name: str, stream: StreamInfo, consumer: str) -> Messages:
    """Create the stream and its consumer if they do not exist, and consume the entries."""
    await ensure_capture(api, name, stream, consumer)
    durable = "dead-letters-%s-%s" % (stream.config.name, consumer)
    try:
        await consumer_info(api, name, durable)
    except ConsumerNotFound:
        config = ConsumerConfig(
            durable_name=durable,
            ack_policy="explicit",
            ack_wait=ACK_WAIT,
            filter_subjects=subjects_to_capture(stream.config.name, consumer),
        )
        await put_consumer(api, name, "create", config)
    puller = Puller(api, name, durable, False)
    return puller.consume(_BUFFER, None, _EXPIRES, None, None, None, None, {}, True)
