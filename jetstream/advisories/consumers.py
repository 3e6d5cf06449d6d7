"""Advisories and metrics about consumers."""

from __future__ import annotations

from jetstream.schema.cluster_info import PeerInfo
from jetstream.schema.fields import Field
from jetstream.schema.types import DURATION, FLAG, SEQUENCE, TEXT, TIME, list_of

from .event import Advisory

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.timestamp import Timestamp


class ConsumerActionAdvisory(Advisory):
    """A consumer was created or deleted."""

    stream: str
    consumer: str
    action: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("action", TEXT, "`create` or `delete`."),
    )


class ConsumerPauseAdvisory(Advisory):
    """A consumer was paused or resumed."""

    stream: str
    consumer: str
    paused: bool
    pause_until: Timestamp | None

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream.", (2, 11)),
        Field("consumer", TEXT, "The consumer.", (2, 11)),
        Field("paused", FLAG, "It is paused.", (2, 11)),
        Field("pause_until", TIME, "The end of the pause.", (2, 11)),
    )


class MaxDeliverAdvisory(Advisory):
    """A message was delivered max_deliver times and not acknowledged."""

    stream: str
    consumer: str
    stream_seq: int
    deliveries: int

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("stream_seq", SEQUENCE, "The sequence of the message in the stream."),
        Field("deliveries", SEQUENCE, "How many times the message was delivered."),
    )


class TerminatedAdvisory(Advisory):
    """A message was terminated: it is not redelivered."""

    stream: str
    consumer: str
    consumer_seq: int
    stream_seq: int
    deliveries: int
    reason: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("consumer_seq", SEQUENCE, "The number of the delivery to this consumer."),
        Field("stream_seq", SEQUENCE, "The sequence of the message in the stream."),
        Field("deliveries", SEQUENCE, "How many times the message was delivered."),
        Field("reason", TEXT, "The reason, if the client gave one.", (2, 10)),
    )


class NakAdvisory(Advisory):
    """A message was rejected: it is redelivered."""

    stream: str
    consumer: str
    consumer_seq: int
    stream_seq: int
    deliveries: int

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("consumer_seq", SEQUENCE, "The number of the delivery to this consumer."),
        Field("stream_seq", SEQUENCE, "The sequence of the message in the stream."),
        Field("deliveries", SEQUENCE, "How many times the message was delivered."),
    )


class ConsumerAckMetric(Advisory):
    """A message was acknowledged; sampled by the sample_freq of the consumer."""

    stream: str
    consumer: str
    consumer_seq: int
    stream_seq: int
    ack_time: float
    deliveries: int

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("consumer_seq", SEQUENCE, "The number of the delivery to this consumer."),
        Field("stream_seq", SEQUENCE, "The sequence of the message in the stream."),
        Field("ack_time", DURATION, "Time from the delivery to the acknowledgment."),
        Field("deliveries", SEQUENCE, "How many times the message was delivered."),
    )


class ConsumerGroupPinnedAdvisory(Advisory):
    """A priority group is pinned to another client."""

    stream: str
    consumer: str
    group: str
    pinned_id: str
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream.", (2, 11)),
        Field("consumer", TEXT, "The consumer.", (2, 11)),
        Field("group", TEXT, "The priority group.", (2, 11)),
        Field("pinned_id", TEXT, "The id of the pinned client.", (2, 11)),
        Field("account", TEXT, "The account; only in the system account.", (2, 11)),
    )


class ConsumerGroupUnpinnedAdvisory(Advisory):
    """A priority group is no longer pinned to a client."""

    stream: str
    consumer: str
    group: str
    reason: str
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream.", (2, 11)),
        Field("consumer", TEXT, "The consumer.", (2, 11)),
        Field("group", TEXT, "The priority group.", (2, 11)),
        Field("reason", TEXT, "`admin` or `timeout`.", (2, 11)),
        Field("account", TEXT, "The account; only in the system account.", (2, 11)),
    )


class ConsumerLeaderElectedAdvisory(Advisory):
    """A replicated consumer has a new leader."""

    stream: str
    consumer: str
    leader: str
    replicas: list[PeerInfo]
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("leader", TEXT, "The server that is the leader now."),
        Field("replicas", list_of(PeerInfo), "The servers with a replica."),
        Field("account", TEXT, "The account; only in the system account."),
    )


class ConsumerQuorumLostAdvisory(Advisory):
    """A replicated consumer has lost its quorum: it delivers nothing."""

    stream: str
    consumer: str
    replicas: list[PeerInfo]
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("consumer", TEXT, "The consumer."),
        Field("replicas", list_of(PeerInfo), "The servers with a replica."),
        Field("account", TEXT, "The account; only in the system account."),
    )
