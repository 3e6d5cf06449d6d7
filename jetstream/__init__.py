"""JetStream on any natsproto client: streams, consumers, publishing, key-value and object stores.

    from jetstream import JetStream
    from natsproto.adapters.asyncio import connect

    async with connect("nats://127.0.0.1:4222") as client:
        js = JetStream(client)
        await js.create_stream(name="ORDERS", subjects=["orders.>"])
        await js.publish("orders.new", b"one coffee")  # returns once it is stored

`jetstream.blocking` has the same names without async and await. `jetstream.errors` has the errors,
and `jetstream.events` the events of consumers. Services need only a client, not JetStream:
`add_service` and `Services`.

Every name is imported on first use, because a program needs only some of a hundred modules.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto import __version__ as __version__

    from . import advisories as advisories
    from . import blocking as blocking
    from . import config as config
    from . import errors as errors
    from . import events as events
    from . import kv as kv
    from . import objects as objects
    from .advisories.api import Advisories as Advisories
    from .advisories.event import Advisory as Advisory
    from .api.counters import Counter as Counter
    from .api.listing import Listing as Listing
    from .api.metadata import Metadata as Metadata
    from .api.republished import Republished as Republished
    from .api.republished import Scheduled as Scheduled
    from .api.republished import republished as republished
    from .api.republished import scheduled as scheduled
    from .api.stored import StoredMsg as StoredMsg
    from .api.stored_batch import StoredMsgs as StoredMsgs
    from .config import ConsumerConfig as ConsumerConfig
    from .config import ConsumerLimits as ConsumerLimits
    from .config import ExternalStream as ExternalStream
    from .config import Placement as Placement
    from .config import Republish as Republish
    from .config import SourceConsumer as SourceConsumer
    from .config import StreamConfig as StreamConfig
    from .config import StreamSource as StreamSource
    from .config import SubjectTransform as SubjectTransform
    from .context import JetStream as JetStream
    from .dead_letters.api import DeadLetters as DeadLetters
    from .dead_letters.letter import DeadLetter as DeadLetter
    from .errors import ApiError as ApiError
    from .errors import JetStreamError as JetStreamError
    from .errors import ServiceError as ServiceError
    from .events import Loss as Loss
    from .kv.config import KeyValueConfig as KeyValueConfig
    from .kv.config import KeyValueStatus as KeyValueStatus
    from .kv.entry import KeyValueEntry as KeyValueEntry
    from .kv.store import KeyValue as KeyValue
    from .kv.watch import InitialEntries as InitialEntries
    from .kv.watch import KeyLister as KeyLister
    from .kv.watch import KeyWatcher as KeyWatcher
    from .machine.snapshot import ConsumerSnapshot as ConsumerSnapshot
    from .machine.snapshot import OpenPull as OpenPull
    from .message import JsMsg as JsMsg
    from .objects.config import ObjectStoreConfig as ObjectStoreConfig
    from .objects.config import ObjectStoreStatus as ObjectStoreStatus
    from .objects.info import ObjectInfo as ObjectInfo
    from .objects.info import ObjectLink as ObjectLink
    from .objects.info import ObjectMeta as ObjectMeta
    from .objects.info import ObjectMetaOptions as ObjectMetaOptions
    from .objects.read import ObjectReader as ObjectReader
    from .objects.store import ObjectStore as ObjectStore
    from .objects.watch import InitialObjects as InitialObjects
    from .objects.watch import ObjectWatcher as ObjectWatcher
    from .ordered.api import OrderedConsumer as OrderedConsumer
    from .publish.atomic import AtomicBatch as AtomicBatch
    from .publish.fast import FastBatch as FastBatch
    from .publish.window import PublishWindow as PublishWindow
    from .publish.window_machine import Publication as Publication
    from .pull.batch import Fetch as Fetch
    from .pull.groups.api import ConsumerGroups as ConsumerGroups
    from .pull.groups.config import ElasticGroupConfig as ElasticGroupConfig
    from .pull.groups.config import MemberMapping as MemberMapping
    from .pull.groups.config import PartitioningFilter as PartitioningFilter
    from .pull.groups.config import StaticGroupConfig as StaticGroupConfig
    from .pull.groups.group import ElasticGroup as ElasticGroup
    from .pull.groups.group import StaticGroup as StaticGroup
    from .pull.groups.member import GroupMember as GroupMember
    from .pull.groups.message import GroupMsg as GroupMsg
    from .pull.messages import Batch as Batch
    from .pull.messages import Messages as Messages
    from .pull.messages import PullEvents as PullEvents
    from .push.api import PushEvents as PushEvents
    from .push.api import PushMessages as PushMessages
    from .schema.account_info import AccountInfo as AccountInfo
    from .schema.account_info import AccountLimits as AccountLimits
    from .schema.account_info import ApiStats as ApiStats
    from .schema.account_info import Tier as Tier
    from .schema.cluster_info import ClusterInfo as ClusterInfo
    from .schema.cluster_info import DesiredCluster as DesiredCluster
    from .schema.cluster_info import MoveOrigin as MoveOrigin
    from .schema.cluster_info import MoveStatus as MoveStatus
    from .schema.cluster_info import PeerInfo as PeerInfo
    from .schema.consumer_info import ConsumerInfo as ConsumerInfo
    from .schema.consumer_info import ConsumerPause as ConsumerPause
    from .schema.consumer_info import PriorityGroupState as PriorityGroupState
    from .schema.consumer_info import SequenceInfo as SequenceInfo
    from .schema.pub_ack import PubAck as PubAck
    from .schema.stream_info import LostData as LostData
    from .schema.stream_info import StreamAlternate as StreamAlternate
    from .schema.stream_info import StreamInfo as StreamInfo
    from .schema.stream_info import StreamSourceInfo as StreamSourceInfo
    from .schema.stream_info import StreamState as StreamState
    from .schema.timestamp import Timestamp as Timestamp
    from .services.callout import add_auth_callout as add_auth_callout
    from .services.discovery import ServiceResponses as ServiceResponses
    from .services.discovery import Services as Services
    from .services.endpoint import Endpoint as Endpoint
    from .services.endpoint import EndpointGroup as EndpointGroup
    from .services.endpoint import EndpointRequests as EndpointRequests
    from .services.errors import service_error as service_error
    from .services.request import ServiceRequest as ServiceRequest
    from .services.responses import EndpointInfo as EndpointInfo
    from .services.responses import EndpointStats as EndpointStats
    from .services.responses import ServiceInfo as ServiceInfo
    from .services.responses import ServicePing as ServicePing
    from .services.responses import ServiceStats as ServiceStats
    from .services.service import Service as Service
    from .services.service import ServiceEvents as ServiceEvents
    from .services.service import add_service as add_service
    from .streams.consumer import BoundConsumer as BoundConsumer
    from .streams.consumer import Consumer as Consumer
    from .streams.snapshot import StreamSnapshot as StreamSnapshot
    from .streams.stream import Stream as Stream
    from .subscribe.pull import PullSubscription as PullSubscription

_HOMES = """
    advisories.api: Advisories
    advisories.event: Advisory
    api.counters: Counter
    api.listing: Listing
    api.metadata: Metadata
    api.republished: Republished Scheduled republished scheduled
    api.stored: StoredMsg
    api.stored_batch: StoredMsgs
    config: ConsumerConfig ConsumerLimits ExternalStream Placement Republish SourceConsumer
    config: StreamConfig StreamSource SubjectTransform
    context: JetStream
    dead_letters.api: DeadLetters
    dead_letters.letter: DeadLetter
    errors: ApiError JetStreamError ServiceError
    events: Loss
    kv.config: KeyValueConfig KeyValueStatus
    kv.entry: KeyValueEntry
    kv.store: KeyValue
    kv.watch: InitialEntries KeyLister KeyWatcher
    machine.snapshot: ConsumerSnapshot OpenPull
    message: JsMsg
    objects.config: ObjectStoreConfig ObjectStoreStatus
    objects.info: ObjectInfo ObjectLink ObjectMeta ObjectMetaOptions
    objects.read: ObjectReader
    objects.store: ObjectStore
    objects.watch: InitialObjects ObjectWatcher
    ordered.api: OrderedConsumer
    publish.atomic: AtomicBatch
    publish.fast: FastBatch
    publish.window: PublishWindow
    publish.window_machine: Publication
    pull.batch: Fetch
    pull.groups.api: ConsumerGroups
    pull.groups.config: ElasticGroupConfig MemberMapping PartitioningFilter StaticGroupConfig
    pull.groups.group: ElasticGroup StaticGroup
    pull.groups.member: GroupMember
    pull.groups.message: GroupMsg
    pull.messages: Batch Messages PullEvents
    push.api: PushEvents PushMessages
    schema.account_info: AccountInfo AccountLimits ApiStats Tier
    schema.cluster_info: ClusterInfo DesiredCluster MoveOrigin MoveStatus PeerInfo
    schema.consumer_info: ConsumerInfo ConsumerPause PriorityGroupState SequenceInfo
    schema.pub_ack: PubAck
    schema.stream_info: LostData StreamAlternate StreamInfo StreamSourceInfo StreamState
    schema.timestamp: Timestamp
    services.callout: add_auth_callout
    services.discovery: ServiceResponses Services
    services.endpoint: Endpoint EndpointGroup EndpointRequests
    services.errors: service_error
    services.request: ServiceRequest
    services.responses: EndpointInfo EndpointStats ServiceInfo ServicePing ServiceStats
    services.service: Service ServiceEvents add_service
    streams.consumer: BoundConsumer Consumer
    streams.snapshot: StreamSnapshot
    streams.stream: Stream
    subscribe.pull: PullSubscription
"""
_MODULES = ["advisories", "blocking", "config", "errors", "events", "kv", "objects"]
__all__ = [
    "AccountInfo",
    "AccountLimits",
    "Advisories",
    "Advisory",
    "ApiError",
    "ApiStats",
    "AtomicBatch",
    "Batch",
    "BoundConsumer",
    "ClusterInfo",
    "Consumer",
    "ConsumerConfig",
    "ConsumerGroups",
    "ConsumerInfo",
    "ConsumerLimits",
    "ConsumerPause",
    "ConsumerSnapshot",
    "Counter",
    "DeadLetter",
    "DeadLetters",
    "DesiredCluster",
    "ElasticGroup",
    "ElasticGroupConfig",
    "Endpoint",
    "EndpointGroup",
    "EndpointInfo",
    "EndpointRequests",
    "EndpointStats",
    "ExternalStream",
    "FastBatch",
    "Fetch",
    "GroupMember",
    "GroupMsg",
    "InitialEntries",
    "InitialObjects",
    "JetStream",
    "JetStreamError",
    "JsMsg",
    "KeyLister",
    "KeyValue",
    "KeyValueConfig",
    "KeyValueEntry",
    "KeyValueStatus",
    "KeyWatcher",
    "Listing",
    "Loss",
    "LostData",
    "MemberMapping",
    "Messages",
    "Metadata",
    "MoveOrigin",
    "MoveStatus",
    "ObjectInfo",
    "ObjectLink",
    "ObjectMeta",
    "ObjectMetaOptions",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreConfig",
    "ObjectStoreStatus",
    "ObjectWatcher",
    "OpenPull",
    "OrderedConsumer",
    "PartitioningFilter",
    "PeerInfo",
    "Placement",
    "PriorityGroupState",
    "PubAck",
    "Publication",
    "PublishWindow",
    "PullEvents",
    "PullSubscription",
    "PushEvents",
    "PushMessages",
    "Republish",
    "Republished",
    "Scheduled",
    "SequenceInfo",
    "Service",
    "ServiceError",
    "ServiceEvents",
    "ServiceInfo",
    "ServicePing",
    "ServiceRequest",
    "ServiceResponses",
    "ServiceStats",
    "Services",
    "SourceConsumer",
    "StaticGroup",
    "StaticGroupConfig",
    "StoredMsg",
    "StoredMsgs",
    "Stream",
    "StreamAlternate",
    "StreamConfig",
    "StreamInfo",
    "StreamSnapshot",
    "StreamSource",
    "StreamSourceInfo",
    "StreamState",
    "SubjectTransform",
    "Tier",
    "Timestamp",
    "add_auth_callout",
    "add_service",
    "republished",
    "scheduled",
    "service_error",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        # Modules are found as well, as in `except jetstream.errors.StreamNotFound`; on MicroPython
        # `from . import api` asks here before it looks for a file.
        from natsproto.lazy import find_home

        home = "natsproto" if name == "__version__" else find_home(_HOMES, name)
        module = home if home == "natsproto" else "jetstream." + (home or name)
        try:
            found: object = __import__(module, None, None, [name])
        except ImportError as error:
            from natsproto.errors import MissingExtra

            if isinstance(error, MissingExtra):
                raise  # it says what to install
            if name == "connect":
                from natsproto.hints import no_connect

                raise no_connect("jetstream") from None
            raise AttributeError("module 'jetstream' has no attribute %r" % name) from error
        if home:
            found = getattr(found, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__ + _MODULES + ["__version__"])
