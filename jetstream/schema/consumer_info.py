"""Responses of the server about consumers."""

from __future__ import annotations

from .cluster_info import ClusterInfo
from .consumer_config import ConsumerConfig
from .fields import Field, Fields
from .types import COUNT, DURATION, FLAG, SEQUENCE, TEXT, TIME, Embedded, Object, list_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .timestamp import Timestamp


class SequenceInfo(Fields):
    """A position, as a consumer sequence and as a stream sequence."""

    consumer_seq: int
    stream_seq: int
    last_active: Timestamp | None

    FIELDS: tuple[Field, ...] = (
        Field("consumer_seq", SEQUENCE, "The consumer sequence: the number of deliveries."),
        Field("stream_seq", SEQUENCE, "The stream sequence."),
        Field("last_active", TIME, "Time of the last activity.", (2, 4)),
    )


class PriorityGroupState(Fields):
    """A priority group of a consumer, and its pinned client."""

    group: str
    pinned_client_id: str
    pinned_ts: Timestamp | None

    FIELDS: tuple[Field, ...] = (
        Field("group", TEXT, "The group.", (2, 11)),
        Field("pinned_client_id", TEXT, "The id of the pinned client; empty: none.", (2, 11)),
        Field("pinned_ts", TIME, "The time at which it was pinned.", (2, 11)),
    )


class ConsumerInfo(Fields):
    """The configuration and state of a consumer."""

    stream_name: str
    name: str
    created: Timestamp | None
    config: ConsumerConfig
    delivered: SequenceInfo
    ack_floor: SequenceInfo
    num_ack_pending: int
    num_redelivered: int
    num_waiting: int
    num_pending: int
    cluster: ClusterInfo | None
    push_bound: bool
    paused: bool
    pause_remaining: float
    ts: Timestamp | None
    priority_groups: list[PriorityGroupState]
    reset_seq: int

    FIELDS: tuple[Field, ...] = (
        Field("stream_name", TEXT, "Its stream."),
        Field("name", TEXT, "Its name."),
        Field("created", TIME, "Creation time."),
        Field("config", Embedded(ConsumerConfig), "Its configuration, with the server's defaults."),
        Field("delivered", Embedded(SequenceInfo), "The last delivery."),
        Field("ack_floor", Embedded(SequenceInfo), "All messages up to this one are acknowledged."),
        Field("num_ack_pending", COUNT, "Number of delivered, unacknowledged messages."),
        Field("num_redelivered", COUNT, "Number of those that were delivered more than once."),
        Field("num_waiting", COUNT, "Pull: number of waiting requests."),
        Field("num_pending", SEQUENCE, "Number of messages still to be delivered."),
        Field("cluster", Object(ClusterInfo), "Its replicas."),
        Field("push_bound", FLAG, "Push: deliver_subject has a subscriber.", (2, 4)),
        Field("paused", FLAG, "It is paused.", (2, 11)),
        Field("pause_remaining", DURATION, "Remaining time of the pause.", (2, 11)),
        Field("ts", TIME, "Server time of this response.", (2, 10)),
        Field("priority_groups", list_of(PriorityGroupState), "Its groups.", (2, 11)),
        Field("reset_seq", SEQUENCE, "After a reset: its new position in the stream.", (2, 14)),
    )


class ConsumerPause(Fields):
    """The pause of a consumer."""

    paused: bool
    pause_until: Timestamp | None
    pause_remaining: float

    FIELDS: tuple[Field, ...] = (
        Field("paused", FLAG, "It is paused.", (2, 11)),
        Field("pause_until", TIME, "The end of the pause.", (2, 11)),
        Field("pause_remaining", DURATION, "Remaining time of the pause.", (2, 11)),
    )
