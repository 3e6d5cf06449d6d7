"""MemberPlan: the consumer that a member of a group needs, and the calls that manage it."""

from __future__ import annotations

from jetstream.config import ConsumerConfig
from natsproto.errors import InvalidValue

from .config import ElasticGroupConfig, StaticGroupConfig
from .names import (
    ELASTIC_BUCKET,
    PRIORITY_GROUP,
    STATIC_BUCKET,
    elastic_stream,
    key_of,
    static_consumer,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.api.client import ApiClient
    from jetstream.context import JetStream
    from jetstream.schema.consumer_info import ConsumerInfo
    from jetstream.streams.consumer import Consumer

    from .config import GroupConfig

ACK_WAIT = 5.0  # GROUP-8
SHORTEST = 1.0
MOST_BUFFERED = 500
# Set by the plan, from the configuration of the group.
OURS = (
    "durable_name",
    "name",
    "filter_subject",
    "filter_subjects",
    "priority_groups",
    "priority_policy",
    "priority_timeout",
)


class MemberPlan:
    """One member of one group: the names, and the configuration of its consumer.

    config: the settings of the consumer that the program has chosen
    """

    def __init__(
        self,
        js: JetStream,
        stream: str,
        group: str,
        member: str,
        elastic: bool,
        config: ConsumerConfig,
    ) -> None:
        self._js = js
        self.api: ApiClient = api_of(js)
        self.member = member
        self.elastic = elastic
        self.key: str = key_of(stream, group)
        self.bucket: str = ELASTIC_BUCKET if elastic else STATIC_BUCKET
        self.consumer: str = member if elastic else static_consumer(group, member)
        self.stream: str = elastic_stream(stream, group) if elastic else stream
        self._config = _filled(config, elastic)
        self.ack_wait: float = self._config.ack_wait
        #: How long a pull waits, and how many messages are pulled at once.
        self.expires: float = max(self.ack_wait / 2, SHORTEST)
        self.batch: int = min(self._config.max_ack_pending or MOST_BUFFERED, MOST_BUFFERED)

    def decode(self, data: bytes) -> GroupConfig:
        """Return a stored configuration."""
        return ElasticGroupConfig.decode(data) if self.elastic else StaticGroupConfig.decode(data)

    async def create(self, subjects: Sequence[str]) -> Consumer:
        """Create the consumer, or use it if it exists with the same configuration."""
        config = self._config.copy()
        config.filter_subjects = list(subjects)
        if self.elastic:
            config.name = self.consumer
        else:
            config.durable_name = self.consumer
        return await self._js.create_consumer(self.stream, config)

    async def info(self) -> ConsumerInfo:
        """Return the state of the consumer."""
        return (await self._js.consumer(self.stream, self.consumer)).cached_info

    async def delete(self) -> None:
        """Delete the consumer."""
        await self._js.delete_consumer(self.stream, self.consumer)

    async def unpin(self) -> None:
        """Replace the pinned instance of the member with another one."""
        await self._js.unpin_consumer(self.stream, self.consumer, PRIORITY_GROUP)


def _filled(config: ConsumerConfig, elastic: bool) -> ConsumerConfig:
    """Return the configuration of the consumer, without its name and filters."""
    for field in config.given_fields():
        if field.name in OURS:
            raise InvalidValue("%s is set by the group, not by its members" % field.name)
    made = config.copy()
    given = [field.name for field in made.given_fields()]
    if elastic and made.ack_policy != "explicit":
        raise InvalidValue("ack_policy of an elastic group is always explicit", "GROUP-7")
    if not made.ack_wait:
        made.ack_wait = ACK_WAIT
    if "max_ack_pending" not in given and made.ack_policy == "explicit":
        made.max_ack_pending = 1  # D-GROUP-15
    if elastic:
        made.inactive_threshold = made.ack_wait  # GROUP-7
    made.priority_groups = [PRIORITY_GROUP]
    made.priority_policy = "pinned_client"
    made.priority_timeout = max(made.ack_wait, SHORTEST)
    return made


def api_of(js: JetStream) -> ApiClient:
    """Return the API client of a JetStream."""
    return js._api  # pyright: ignore[reportPrivateUsage]
