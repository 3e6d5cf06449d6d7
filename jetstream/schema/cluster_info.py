"""What the server tells about the replicas of streams and consumers, and about their moves."""

from __future__ import annotations

from .fields import Field, Fields
from .stream_config import Placement
from .types import COUNT, FLAG, SEQUENCE, SIGNED_DURATION, TEXT, TIME, Object, list_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .timestamp import Timestamp


class PeerInfo(Fields):
    """One of the other servers that have a replica."""

    name: str
    current: bool
    offline: bool
    active: float
    lag: int
    peer: str
    pending: bool

    FIELDS = (
        Field("name", TEXT, "The server."),
        Field("current", FLAG, "It was seen lately and has caught up."),
        Field("offline", FLAG, "It was not seen lately."),
        Field("active", SIGNED_DURATION, "How long ago it was seen."),
        Field("lag", SEQUENCE, "How many operations it is behind."),
        Field("peer", TEXT, "Its id.", (2, 9)),
        Field("pending", FLAG, "It is to have a replica and is not yet in the group.", (2, 15)),
    )


class MoveOrigin(Fields):
    """What a stream or consumer was before it began to move."""

    replicas: int
    placement: Placement | None
    retention: str

    FIELDS = (
        Field("replicas", COUNT, "How many replicas it had.", (2, 15)),
        Field("placement", Object(Placement), "Where it was.", (2, 15)),
        Field("retention", TEXT, "The retention that still holds.", (2, 15)),
    )


class MoveStatus(Fields):
    """What a move does at present, or waits for."""

    description: str
    type: str
    err: str

    FIELDS = (
        Field("description", TEXT, "In words.", (2, 15)),
        Field("type", TEXT, "What has to happen for it to go on.", (2, 15)),
        Field("err", TEXT, "What failed.", (2, 15)),
    )


class DesiredCluster(Fields):
    """Where a stream or consumer is moving to."""

    created: Timestamp | None
    name: str
    replicas: list[PeerInfo]
    origin: MoveOrigin | None
    status: MoveStatus | None

    FIELDS = (
        Field("created", TIME, "When the move began.", (2, 15)),
        Field("name", TEXT, "The cluster.", (2, 15)),
        Field("replicas", list_of(PeerInfo), "The servers.", (2, 15)),
        Field("origin", Object(MoveOrigin), "What it was before.", (2, 15)),
        Field("status", Object(MoveStatus), "How far it is.", (2, 15)),
    )


class ClusterInfo(Fields):
    """The servers that have a stream or a consumer."""

    name: str
    raft_group: str
    leader: str
    leader_since: Timestamp | None
    system_account: bool
    traffic_account: str
    replicas: list[PeerInfo]
    desired: DesiredCluster | None

    FIELDS = (
        Field("name", TEXT, "The cluster."),
        Field("raft_group", TEXT, "The group that agrees on its state.", (2, 10)),
        Field("leader", TEXT, "The server that leads; empty: none at present."),
        Field("leader_since", TIME, "Since when it leads.", (2, 11)),
        Field("system_account", FLAG, "Replicas talk in the system account.", (2, 11)),
        Field("traffic_account", TEXT, "The account in which replicas talk.", (2, 11)),
        Field("replicas", list_of(PeerInfo), "The servers beside the leader."),
        Field("desired", Object(DesiredCluster), "Where it is moving to.", (2, 15)),
    )
