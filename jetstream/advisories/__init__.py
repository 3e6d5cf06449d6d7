"""Advisories: the events of JetStream servers, typed; the names that programs use."""

from __future__ import annotations

from natsproto.lazy import lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .api import Advisories as Advisories
    from .consumers import ConsumerAckMetric as ConsumerAckMetric
    from .consumers import ConsumerActionAdvisory as ConsumerActionAdvisory
    from .consumers import ConsumerGroupPinnedAdvisory as ConsumerGroupPinnedAdvisory
    from .consumers import ConsumerGroupUnpinnedAdvisory as ConsumerGroupUnpinnedAdvisory
    from .consumers import ConsumerLeaderElectedAdvisory as ConsumerLeaderElectedAdvisory
    from .consumers import ConsumerPauseAdvisory as ConsumerPauseAdvisory
    from .consumers import ConsumerQuorumLostAdvisory as ConsumerQuorumLostAdvisory
    from .consumers import MaxDeliverAdvisory as MaxDeliverAdvisory
    from .consumers import NakAdvisory as NakAdvisory
    from .consumers import TerminatedAdvisory as TerminatedAdvisory
    from .event import Advisory as Advisory
    from .event import AdvisoryClient as AdvisoryClient
    from .kinds import read_advisory as read_advisory
    from .latency import ServiceLatencyMetric as ServiceLatencyMetric
    from .servers import ApiAuditAdvisory as ApiAuditAdvisory
    from .servers import ApiLimitReachedAdvisory as ApiLimitReachedAdvisory
    from .servers import DomainLeaderElectedAdvisory as DomainLeaderElectedAdvisory
    from .servers import MetaRescueAdvisory as MetaRescueAdvisory
    from .servers import ServerOutOfSpaceAdvisory as ServerOutOfSpaceAdvisory
    from .servers import ServerRemovedAdvisory as ServerRemovedAdvisory
    from .streams import RestoreCompleteAdvisory as RestoreCompleteAdvisory
    from .streams import RestoreCreateAdvisory as RestoreCreateAdvisory
    from .streams import SnapshotCompleteAdvisory as SnapshotCompleteAdvisory
    from .streams import SnapshotCreateAdvisory as SnapshotCreateAdvisory
    from .streams import StreamActionAdvisory as StreamActionAdvisory
    from .streams import StreamBatchAbandonedAdvisory as StreamBatchAbandonedAdvisory
    from .streams import StreamLeaderElectedAdvisory as StreamLeaderElectedAdvisory
    from .streams import StreamQuorumLostAdvisory as StreamQuorumLostAdvisory
else:
    _HOMES = {
        "Advisories": "api",
        "Advisory": "event",
        "AdvisoryClient": "event",
        "ApiAuditAdvisory": "servers",
        "ApiLimitReachedAdvisory": "servers",
        "ConsumerAckMetric": "consumers",
        "ConsumerActionAdvisory": "consumers",
        "ConsumerGroupPinnedAdvisory": "consumers",
        "ConsumerGroupUnpinnedAdvisory": "consumers",
        "ConsumerLeaderElectedAdvisory": "consumers",
        "ConsumerPauseAdvisory": "consumers",
        "ConsumerQuorumLostAdvisory": "consumers",
        "DomainLeaderElectedAdvisory": "servers",
        "MaxDeliverAdvisory": "consumers",
        "MetaRescueAdvisory": "servers",
        "NakAdvisory": "consumers",
        "RestoreCompleteAdvisory": "streams",
        "RestoreCreateAdvisory": "streams",
        "ServerOutOfSpaceAdvisory": "servers",
        "ServerRemovedAdvisory": "servers",
        "ServiceLatencyMetric": "latency",
        "SnapshotCompleteAdvisory": "streams",
        "SnapshotCreateAdvisory": "streams",
        "StreamActionAdvisory": "streams",
        "StreamBatchAbandonedAdvisory": "streams",
        "StreamLeaderElectedAdvisory": "streams",
        "StreamQuorumLostAdvisory": "streams",
        "TerminatedAdvisory": "consumers",
        "read_advisory": "kinds",
    }
    __getattr__ = lazy_names("jetstream.advisories", _HOMES, globals())

    def __dir__() -> list[str]:
        return sorted(_HOMES)
