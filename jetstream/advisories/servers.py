"""Advisories about the API, servers and domains."""

from __future__ import annotations

from jetstream.schema.cluster_info import PeerInfo
from jetstream.schema.fields import Field
from jetstream.schema.types import COUNT, TEXT, Object, list_of

from .event import Advisory, AdvisoryClient

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    pass


class ApiAuditAdvisory(Advisory):
    """A client has called the JetStream API."""

    server: str
    client: AdvisoryClient | None
    subject: str
    request: str
    response: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("server", TEXT, "The name of the server."),
        Field("client", Object(AdvisoryClient), "The client that sent the request."),
        Field("subject", TEXT, "The subject of the request."),
        Field("request", TEXT, "The request."),
        Field("response", TEXT, "The response."),
    )


class ApiLimitReachedAdvisory(Advisory):
    """A server had too many API requests and dropped them."""

    server: str
    dropped: int

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("server", TEXT, "The name of the server.", (2, 11)),
        Field("dropped", COUNT, "Number of dropped requests.", (2, 11)),
    )


class ServerOutOfSpaceAdvisory(Advisory):
    """A server has no storage left and has disabled JetStream."""

    server: str
    server_id: str
    stream: str
    cluster: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("server", TEXT, "The name of the server."),
        Field("server_id", TEXT, "The id of the server."),
        Field("stream", TEXT, "The stream that noticed it."),
        Field("cluster", TEXT, "The cluster."),
    )


class ServerRemovedAdvisory(Advisory):
    """A server was removed from the cluster and has disabled JetStream."""

    server: str
    server_id: str
    cluster: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("server", TEXT, "The name of the server."),
        Field("server_id", TEXT, "The id of the server."),
        Field("cluster", TEXT, "The cluster."),
    )


class MetaRescueAdvisory(Advisory):
    """A server has lowered the quorum of the meta group, for disaster recovery."""

    server: str
    server_id: str
    prev_quorum: int
    new_quorum: int
    cluster: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("server", TEXT, "The name of the server.", (2, 15)),
        Field("server_id", TEXT, "The id of the server.", (2, 15)),
        Field("prev_quorum", COUNT, "The quorum before.", (2, 15)),
        Field("new_quorum", COUNT, "The quorum now.", (2, 15)),
        Field("cluster", TEXT, "The cluster.", (2, 15)),
    )


class DomainLeaderElectedAdvisory(Advisory):
    """The meta group of a domain has a new leader."""

    leader: str
    replicas: list[PeerInfo]
    cluster: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("leader", TEXT, "The peer id of the server that is the leader now."),
        Field("replicas", list_of(PeerInfo), "The servers with a replica."),
        Field("cluster", TEXT, "The cluster."),
    )
