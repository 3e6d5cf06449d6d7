"""KINDS: the table of the events that servers publish, and how they are found and decoded."""

from __future__ import annotations

from jetstream.api.client import read_object
from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidValue
from natsproto.wire.subjects import check_known_name
from natsproto.wire.text import shorten

from .consumers import (
    ConsumerAckMetric,
    ConsumerActionAdvisory,
    ConsumerGroupPinnedAdvisory,
    ConsumerGroupUnpinnedAdvisory,
    ConsumerLeaderElectedAdvisory,
    ConsumerPauseAdvisory,
    ConsumerQuorumLostAdvisory,
    MaxDeliverAdvisory,
    NakAdvisory,
    TerminatedAdvisory,
)
from .event import Advisory
from .latency import ServiceLatencyMetric
from .servers import (
    ApiAuditAdvisory,
    ApiLimitReachedAdvisory,
    DomainLeaderElectedAdvisory,
    MetaRescueAdvisory,
    ServerOutOfSpaceAdvisory,
    ServerRemovedAdvisory,
)
from .streams import (
    RestoreCompleteAdvisory,
    RestoreCreateAdvisory,
    SnapshotCompleteAdvisory,
    SnapshotCreateAdvisory,
    StreamActionAdvisory,
    StreamBatchAbandonedAdvisory,
    StreamLeaderElectedAdvisory,
    StreamQuorumLostAdvisory,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, TypeAlias

    from natsproto.wire.frames import Msg

    Kind: TypeAlias = Literal[
        "api_audit",
        "api_limit_reached",
        "consumer_ack",
        "consumer_action",
        "consumer_group_pinned",
        "consumer_group_unpinned",
        "consumer_leader_elected",
        "consumer_pause",
        "consumer_quorum_lost",
        "domain_leader_elected",
        "max_deliver",
        "meta_rescue",
        "nak",
        "restore_complete",
        "restore_create",
        "server_out_of_space",
        "server_removed",
        "snapshot_complete",
        "snapshot_create",
        "stream_action",
        "stream_batch_abandoned",
        "stream_leader_elected",
        "stream_quorum_lost",
        "terminated",
    ]

EVENT_PREFIX = "$JS.EVENT"
_TYPE = "io.nats.jetstream.%s.v1.%s"
# What follows the subject of a kind: nothing, the stream, or the stream and the consumer.
_NONE = 0
_STREAM = 1
_CONSUMER = 2

# ADVIS-2: each kind, its class, the number of names that follow its subject, and its subjects
# below $JS.EVENT.ADVISORY; that of a metric is below $JS.EVENT.METRIC.
KINDS: list[tuple[str, type[Advisory], int, tuple[str, ...]]] = [
    ("api_audit", ApiAuditAdvisory, _NONE, ("API",)),
    ("api_limit_reached", ApiLimitReachedAdvisory, _NONE, ("API.LIMIT_REACHED",)),
    (
        "stream_action",
        StreamActionAdvisory,
        _STREAM,
        ("STREAM.CREATED", "STREAM.UPDATED", "STREAM.DELETED"),
    ),
    ("stream_leader_elected", StreamLeaderElectedAdvisory, _STREAM, ("STREAM.LEADER_ELECTED",)),
    ("stream_quorum_lost", StreamQuorumLostAdvisory, _STREAM, ("STREAM.QUORUM_LOST",)),
    ("stream_batch_abandoned", StreamBatchAbandonedAdvisory, _STREAM, ("STREAM.BATCH_ABANDONED",)),
    ("snapshot_create", SnapshotCreateAdvisory, _STREAM, ("STREAM.SNAPSHOT_CREATE",)),
    ("snapshot_complete", SnapshotCompleteAdvisory, _STREAM, ("STREAM.SNAPSHOT_COMPLETE",)),
    ("restore_create", RestoreCreateAdvisory, _STREAM, ("STREAM.RESTORE_CREATE",)),
    ("restore_complete", RestoreCompleteAdvisory, _STREAM, ("STREAM.RESTORE_COMPLETE",)),
    (
        "consumer_action",
        ConsumerActionAdvisory,
        _CONSUMER,
        ("CONSUMER.CREATED", "CONSUMER.DELETED"),
    ),
    ("consumer_pause", ConsumerPauseAdvisory, _CONSUMER, ("CONSUMER.PAUSE",)),
    ("max_deliver", MaxDeliverAdvisory, _CONSUMER, ("CONSUMER.MAX_DELIVERIES",)),
    ("terminated", TerminatedAdvisory, _CONSUMER, ("CONSUMER.MSG_TERMINATED",)),
    ("nak", NakAdvisory, _CONSUMER, ("CONSUMER.MSG_NAKED",)),
    ("consumer_ack", ConsumerAckMetric, _CONSUMER, ("CONSUMER.ACK",)),
    ("consumer_group_pinned", ConsumerGroupPinnedAdvisory, _CONSUMER, ("CONSUMER.PINNED",)),
    ("consumer_group_unpinned", ConsumerGroupUnpinnedAdvisory, _CONSUMER, ("CONSUMER.UNPINNED",)),
    (
        "consumer_leader_elected",
        ConsumerLeaderElectedAdvisory,
        _CONSUMER,
        ("CONSUMER.LEADER_ELECTED",),
    ),
    ("consumer_quorum_lost", ConsumerQuorumLostAdvisory, _CONSUMER, ("CONSUMER.QUORUM_LOST",)),
    ("server_out_of_space", ServerOutOfSpaceAdvisory, _NONE, ("SERVER.OUT_OF_STORAGE",)),
    ("server_removed", ServerRemovedAdvisory, _NONE, ("SERVER.REMOVED",)),
    ("meta_rescue", MetaRescueAdvisory, _NONE, ("SERVER.META_RESCUE",)),
    ("domain_leader_elected", DomainLeaderElectedAdvisory, _NONE, ("DOMAIN.LEADER_ELECTED",)),
]


def _part(kind: str) -> str:
    return "METRIC" if kind == "consumer_ack" else "ADVISORY"


_ROWS = {row[0]: row for row in KINDS}
_CLASSES = {_TYPE % (_part(kind).lower(), kind): cls for kind, cls, _, _ in KINDS}
# It is not an event of JetStream, and has no subject of its own (ADVIS-10).
_CLASSES["io.nats.server.metric.v1.service_latency"] = ServiceLatencyMetric


def subjects_of(
    kinds: Sequence[Kind], stream: str | None, consumer: str | None, prefix: str
) -> list[str]:
    """Return the narrowest subjects of these kinds, or of all kinds, of a stream or consumer."""
    names = ["*", "*"]
    if stream is not None:
        names[0] = check_known_name("stream", stream)
    if consumer is not None:
        names[1] = check_known_name("consumer", consumer)
    if kinds:
        found: list[str] = []
        for kind in kinds:
            found += [each for each in _of_kind(kind, stream, consumer, names) if each not in found]
    elif consumer is not None:
        found = [
            each + ".*.%s.%s" % tuple(names) for each in ("ADVISORY.CONSUMER", "METRIC.CONSUMER")
        ]
    elif stream is not None:
        found = [
            "ADVISORY.STREAM.*.%s" % stream,
            "ADVISORY.CONSUMER.*.%s.*" % stream,
            "METRIC.CONSUMER.*.%s.*" % stream,
        ]
    else:
        found = [">"]
    return ["%s.%s" % (prefix, each) for each in found]


def _of_kind(kind: str, stream: str | None, consumer: str | None, names: list[str]) -> list[str]:
    row = _ROWS.get(kind) if isinstance(kind, str) else None
    if row is None:
        known = ", ".join(sorted(_ROWS))
        raise InvalidValue(
            "unknown kind of advisory: %s; the kinds are %s" % (shorten(kind), known)
        )
    _, _, count, subjects = row
    for needed, what, name in ((1, "stream", stream), (2, "consumer", consumer)):
        if name is not None and count < needed:
            raise InvalidValue(
                "%s advisories do not belong to a %s: %s" % (kind, what, shorten(name))
            )
    return [".".join([_part(kind), each] + names[:count]) for each in subjects]


def read_advisory(msg: Msg) -> Advisory:
    """Decode the event in a message."""
    found = decode_advisory(msg.data)
    object.__setattr__(found, "msg", msg)  # it is not a field
    return found


def decode_advisory(data: bytes) -> Advisory:
    """Decode an event; one that is unknown or invalid becomes a plain Advisory."""
    raw: dict[str, Any] = {}
    try:
        raw = read_object(data)
        name: Any = raw.get("type")
        cls = _CLASSES.get(name, Advisory) if isinstance(name, str) else Advisory  # D-ADVIS-5
        return cls.from_json(raw)
    except InvalidResponse:
        found = Advisory()  # D-ADVIS-6
        found.extra = raw
        return found
