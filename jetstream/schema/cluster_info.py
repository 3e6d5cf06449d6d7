"""The replicas of streams and consumers, and their moves."""

from __future__ import annotations

from .fields import Field, Fields
from .stream_config import Placement
from .types import COUNT, FLAG, SEQUENCE, SIGNED_DURATION, TEXT, TIME, Object, list_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .timestamp import Timestamp


class PeerInfo(Fields):
    """A server with a replica, other than the leader."""

    name: str
    current: bool
    offline: bool
    active: float
    lag: int
    peer: str
    pending: bool

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The server."),
        Field("current", FLAG, "It is online and up to date."),
        Field("offline", FLAG, "It is offline."),
        Field("active", SIGNED_DURATION, "Time since the last contact."),
        Field("lag", SEQUENCE, "Number of operations it is behind."),
        Field("peer", TEXT, "Its id.", (2, 9)),
        Field("pending", FLAG, "It is not yet a member of the group.", (2, 15)),
    )


class MoveOrigin(Fields):
    """A stream or consumer before its move."""

    replicas: int
    placement: Placement | None
    retention: str

    FIELDS: tuple[Field, ...] = (
        Field("replicas", COUNT, "Number of replicas.", (2, 15)),
        Field("placement", Object(Placement), "The placement.", (2, 15)),
        Field("retention", TEXT, "The retention, which still applies.", (2, 15)),
    )


class MoveStatus(Fields):
    """The current step of a move."""

    description: str
    type: str
    err: str

    FIELDS: tuple[Field, ...] = (
        Field("description", TEXT, "Description.", (2, 15)),
        Field("type", TEXT, "The condition for the next step.", (2, 15)),
        Field("err", TEXT, "The error.", (2, 15)),
    )


class DesiredCluster(Fields):
    """The destination of a move."""

    created: Timestamp | None
    name: str
    replicas: list[PeerInfo]
    origin: MoveOrigin | None
    status: MoveStatus | None

    FIELDS: tuple[Field, ...] = (
        Field("created", TIME, "Start time of the move.", (2, 15)),
        Field("name", TEXT, "The cluster.", (2, 15)),
        Field("replicas", list_of(PeerInfo), "The servers.", (2, 15)),
        Field("origin", Object(MoveOrigin), "The state before the move.", (2, 15)),
        Field("status", Object(MoveStatus), "The current step.", (2, 15)),
    )


class ClusterInfo(Fields):
    """The replicas of a stream or consumer."""

    name: str
    raft_group: str
    leader: str
    leader_since: Timestamp | None
    system_account: bool
    traffic_account: str
    replicas: list[PeerInfo]
    desired: DesiredCluster | None

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The cluster."),
        Field("raft_group", TEXT, "The Raft group.", (2, 10)),
        Field("leader", TEXT, "The leader; empty: none."),
        Field("leader_since", TIME, "The time at which it became the leader.", (2, 11)),
        Field("system_account", FLAG, "Replication uses the system account.", (2, 11)),
        Field("traffic_account", TEXT, "The account that replication uses.", (2, 11)),
        Field("replicas", list_of(PeerInfo), "The servers other than the leader."),
        Field("desired", Object(DesiredCluster), "The destination of its move.", (2, 15)),
    )
