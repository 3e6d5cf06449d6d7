"""Advisories: the events of JetStream servers, typed; the names that programs use."""

from __future__ import annotations

from natsproto.lazy import lazy_list, lazy_names

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
    _HOMES = """
        api: Advisories
        consumers: ConsumerAckMetric ConsumerActionAdvisory ConsumerGroupPinnedAdvisory
        consumers: ConsumerGroupUnpinnedAdvisory ConsumerLeaderElectedAdvisory ConsumerPauseAdvisory
        consumers: ConsumerQuorumLostAdvisory MaxDeliverAdvisory NakAdvisory TerminatedAdvisory
        event: Advisory AdvisoryClient
        kinds: read_advisory
        latency: ServiceLatencyMetric
        servers: ApiAuditAdvisory ApiLimitReachedAdvisory DomainLeaderElectedAdvisory
        servers: MetaRescueAdvisory ServerOutOfSpaceAdvisory ServerRemovedAdvisory
        streams: RestoreCompleteAdvisory RestoreCreateAdvisory SnapshotCompleteAdvisory
        streams: SnapshotCreateAdvisory StreamActionAdvisory StreamBatchAbandonedAdvisory
        streams: StreamLeaderElectedAdvisory StreamQuorumLostAdvisory
    """
    __getattr__ = lazy_names("jetstream.advisories", _HOMES, globals())

    def __dir__() -> list[str]:
        return sorted(lazy_list(_HOMES))
