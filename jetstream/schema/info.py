"""All responses of the server about streams, consumers, the account and publishes."""

from __future__ import annotations

from .account_info import AccountInfo as AccountInfo
from .account_info import AccountLimits as AccountLimits
from .account_info import ApiStats as ApiStats
from .account_info import Tier as Tier
from .cluster_info import ClusterInfo as ClusterInfo
from .cluster_info import DesiredCluster as DesiredCluster
from .cluster_info import MoveOrigin as MoveOrigin
from .cluster_info import MoveStatus as MoveStatus
from .cluster_info import PeerInfo as PeerInfo
from .consumer_info import ConsumerInfo as ConsumerInfo
from .consumer_info import ConsumerPause as ConsumerPause
from .consumer_info import PriorityGroupState as PriorityGroupState
from .consumer_info import SequenceInfo as SequenceInfo
from .pub_ack import PubAck as PubAck
from .stream_info import LostData as LostData
from .stream_info import StreamAlternate as StreamAlternate
from .stream_info import StreamInfo as StreamInfo
from .stream_info import StreamSourceInfo as StreamSourceInfo
from .stream_info import StreamState as StreamState
