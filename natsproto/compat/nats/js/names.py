"""Names of other modules that programs also import from nats-py's `nats.js.client`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from natsproto.compat.nats.aio.constants import NATS_HDR_LINE as NATS_HDR_LINE
from natsproto.compat.nats.aio.constants import NATS_HDR_LINE_SIZE as NATS_HDR_LINE_SIZE
from natsproto.compat.nats.aio.constants import NO_RESPONDERS_STATUS as NO_RESPONDERS_STATUS
from natsproto.compat.nats.aio.msg import Msg as Msg
from natsproto.compat.nats.aio.subscription import Subscription as Subscription

from .errors import BadBucketError as BadBucketError
from .errors import BucketNotFoundError as BucketNotFoundError
from .errors import FetchTimeoutError as FetchTimeoutError
from .errors import InvalidBucketNameError as InvalidBucketNameError
from .kv import KeyValue as KeyValue
from .object_store import ObjectStore as ObjectStore

Callback = Callable[[Msg], Awaitable[None]]
