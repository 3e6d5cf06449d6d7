"""The constants of the JetStream API."""

from __future__ import annotations

from enum import Enum

SCHEDULE_YEARLY = "@yearly"
SCHEDULE_MONTHLY = "@monthly"
SCHEDULE_WEEKLY = "@weekly"
SCHEDULE_DAILY = "@daily"
SCHEDULE_HOURLY = "@hourly"
DEFAULT_PREFIX = "$JS.API"
INBOX_PREFIX = b"_INBOX."


class Header(str, Enum):
    """The names of headers with a meaning for JetStream."""

    BATCH_COMMIT = "Nats-Batch-Commit"
    BATCH_ID = "Nats-Batch-Id"
    BATCH_SEQUENCE = "Nats-Batch-Sequence"
    CONSUMER_STALLED = "Nats-Consumer-Stalled"
    DESCRIPTION = "Description"
    EXPECTED_LAST_MSG_ID = "Nats-Expected-Last-Msg-Id"
    EXPECTED_LAST_SEQUENCE = "Nats-Expected-Last-Sequence"
    EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
    EXPECTED_STREAM = "Nats-Expected-Stream"
    INCR = "Nats-Incr"
    LAST_CONSUMER = "Nats-Last-Consumer"
    LAST_STREAM = "Nats-Last-Stream"
    MSG_ID = "Nats-Msg-Id"
    MSG_TTL = "Nats-TTL"
    ROLLUP = "Nats-Rollup"
    SCHEDULE = "Nats-Schedule"
    SCHEDULE_NEXT = "Nats-Schedule-Next"
    SCHEDULE_ROLLUP = "Nats-Schedule-Rollup"
    SCHEDULE_SOURCE = "Nats-Schedule-Source"
    SCHEDULE_TARGET = "Nats-Schedule-Target"
    SCHEDULE_TIME_ZONE = "Nats-Schedule-Time-Zone"
    SCHEDULE_TTL = "Nats-Schedule-TTL"
    SCHEDULER = "Nats-Scheduler"
    STATUS = "Status"


class StatusCode(str, Enum):
    """The statuses of messages without a payload."""

    SERVICE_UNAVAILABLE = "503"
    NO_MESSAGES = "404"
    REQUEST_TIMEOUT = "408"
    CONFLICT = "409"
    CONTROL_MESSAGE = "100"


class RetentionPolicy(str, Enum):
    """When a stream removes messages."""

    LIMITS = "limits"
    INTEREST = "interest"
    WORK_QUEUE = "workqueue"


class StorageType(str, Enum):
    """Where a stream keeps its messages."""

    FILE = "file"
    MEMORY = "memory"


class DiscardPolicy(str, Enum):
    """Which messages a full stream discards."""

    OLD = "old"
    NEW = "new"


class StoreCompression(str, Enum):
    """How a stream compresses its messages."""

    NONE = "none"
    S2 = "s2"


class PersistMode(str, Enum):
    """When a stream has stored a message."""

    DEFAULT = "default"
    ASYNC = "async"


class AckPolicy(str, Enum):
    """Which messages of a consumer are acknowledged."""

    NONE = "none"
    ALL = "all"
    EXPLICIT = "explicit"
    FLOW_CONTROL = "flow_control"


class DeliverPolicy(str, Enum):
    """Where in the stream a consumer begins."""

    ALL = "all"
    LAST = "last"
    NEW = "new"
    BY_START_SEQUENCE = "by_start_sequence"
    BY_START_TIME = "by_start_time"
    LAST_PER_SUBJECT = "last_per_subject"


class ReplayPolicy(str, Enum):
    """How fast a consumer delivers."""

    INSTANT = "instant"
    ORIGINAL = "original"
