"""ConsumerSnapshot: the state of a machine at one moment, which answers "why is my consumer idle?".

    messages.snapshot()          of a consume(), a push subscription or an iterated fetch
    messages.snapshot().reason   why it returns no message now, in one sentence; also in its repr

Times are in seconds relative to that moment: `ends_in` and `deadlines` are in the future, `..._ago`
in the past. Nothing is sent, and the machine does not change.
"""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .status import Status

READY = "ready"
# What an ordered consumer does while it has no consumer on the server (ordered/recreate.py).
_WITHOUT_CONSUMER = {
    "creating": "the next consumer is being created",
    "checking": "the stream is being checked after the consumer was created",
    "backoff": "the consumer could not be created: the next try is in %.1f s",
    "offline": "there is no consumer until the connection is back",
    "ended": "no other consumer will be created",
}


class OpenPull(Record):
    """A pull that the server may still serve; `bytes` is 0 if it has no limit in bytes."""

    __slots__ = ("bytes", "ends_in", "messages")

    def __init__(self, messages: int, bytes: int, ends_in: float) -> None:
        #: How many more messages it may deliver.
        self.messages: int = messages
        #: How many more bytes it may deliver.
        self.bytes: int = bytes
        #: When the server must have ended it.
        self.ends_in: float = ends_in


class ConsumerSnapshot(Record):
    """The state of a consume(), a fetch or a push subscription at one moment."""

    __slots__ = (
        "consumer",
        "deadlines",
        "dropped",
        "ended",
        "error",
        "heard_ago",
        "last_status",
        "last_status_ago",
        "level",
        "limit",
        "name",
        "online",
        "pending",
        "pending_bytes",
        "pin",
        "pulls",
        "received",
        "stopped",
        "threshold",
        "unit",
    )

    def __init__(self, name: str) -> None:
        #: The consumer and its stream.
        self.name: str = name
        #: Whether there is a connection.
        self.online: bool = False
        #: Whether no more messages are requested: after `stop`, `drain` or `stop_after`.
        self.stopped: bool = False
        #: Whether there will be no more messages; `error` is the reason, unless it was intended.
        self.ended: bool = False
        self.error: NatsError | None = None
        #: Messages that have arrived and were not taken yet, and their bytes where they count.
        self.pending: int = 0
        self.pending_bytes: int = 0
        #: Messages that have arrived since the start.
        self.received: int = 0
        #: Messages that were dropped because there was no room for them.
        self.dropped: int = 0
        #: What `limit`, `threshold` and `level` count: "messages" or "bytes".
        self.unit: str = "messages"
        #: The most that is buffered and requested at the same time; 0: no limit.
        self.limit: int = 0
        #: Below this level, more is requested; 0 where nothing is requested again.
        self.threshold: int = 0
        #: What is buffered or requested now.
        self.level: int = 0
        #: The pulls that the server may still serve, oldest first.
        self.pulls: list[OpenPull] = []
        #: The last status that ended a pull, as in "409 Exceeded MaxWaiting"; "": none yet.
        self.last_status: str = ""
        self.last_status_ago: float | None = None
        #: Seconds since the server has sent anything to this machine; None: not known.
        self.heard_ago: float | None = None
        #: Seconds until the next actions: "pull" (the end of a pause between pulls), "silence" (the
        #: server counts as silent), "lookup" (of the consumer) and "recreate".
        self.deadlines: dict[str, float] = {}
        #: "ready", or what an ordered consumer does to get its next consumer on the server.
        self.consumer: str = READY
        #: The id of the pinned client, if this is the one.
        self.pin: str = ""

    @property
    def reason(self) -> str:
        """Why no message is returned now, in one sentence (D-SNAPSHOT-2)."""
        if self.pending:
            return "%d messages wait to be taken" % self.pending
        if self.ended:
            return "it has ended" if self.error is None else "it has ended: %s" % self.error
        if self.stopped:
            return "it was stopped: no more messages are requested"
        if not self.online:
            return "there is no connection: it waits for the next one"
        if self.consumer != READY:
            text = _WITHOUT_CONSUMER.get(self.consumer, self.consumer)
            return text % self.deadlines.get("recreate", 0.0) if "%" in text else text
        return self._waiting()

    def _waiting(self) -> str:
        status = " after %s" % self.last_status if self.last_status else ""
        if "lookup" in self.deadlines:
            return "it looks up whether the consumer exists%s" % status
        if "pull" in self.deadlines:
            return "it pauses for %.1f s%s" % (self.deadlines["pull"], status)
        if not self.pulls:
            return "it waits for messages"
        messages = sum([pull.messages for pull in self.pulls])
        count = len(self.pulls)
        pulls = "1 open pull" if count == 1 else "%d open pulls" % count
        text = "it waits for messages: %s, for %d more" % (pulls, messages)
        if self.heard_ago is not None:
            text += ", last heard %.1f s ago" % self.heard_ago
        return text


def set_times(made: ConsumerSnapshot, now: float, **times: float | None) -> None:
    """Set the deadlines that are not None, given as absolute times."""
    for name, at in times.items():
        if at is not None:
            made.deadlines[name] = max(0.0, at - now)


def set_status(made: ConsumerSnapshot, status: Status | None, at: float, now: float) -> None:
    """Set the last status, if there was one, which arrived at that time."""
    if status is not None:
        made.last_status = ("%d %s" % (status.code, status.description)).strip()
        made.last_status_ago = now - at
