"""RequestQueue: the requests of one endpoint, from their arrival to their answer.

input     effect
receive   the request is queued; or, if the queue is full or the service was aborted, it is
          answered with 503 (D-SERVICE-9, D-SERVICE-13)
take      a handler or a loop takes the request: it is in progress, and counted
finish    it is no longer in progress; the time that it took is added
refuse    all queued requests, and those that loops have not answered, are answered with 503
end       the subscription has ended: the service decides what follows
"""

from __future__ import annotations

from jetstream.machine.queue import MessageQueue
from natsproto.connection.effects import Wake
from natsproto.connection.receiver import Receiver

from .counters import Counters
from .errors import OVERLOADED, STOPPED, UNAVAILABLE, error_headers

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .machine import ServiceMachine
    from .responses import EndpointRecord

_REFUSALS = {text: error_headers(UNAVAILABLE, text).encode() for text in (STOPPED, OVERLOADED)}


class Handling:
    """A request in progress: when it began, and whether it was answered.

    A `refused` request was answered by the service, and gets no other answer.
    """

    __slots__ = ("_began", "_resets", "answered", "done", "msg", "queue", "refused")

    def __init__(self, queue: RequestQueue, msg: Msg, now: float) -> None:
        self.queue: RequestQueue = queue
        self.msg: Msg = msg
        self._began = now
        self._resets = queue.counters.begin()
        self.answered: bool = False
        self.done: bool = False
        self.refused: bool = False

    def fail(self, error: str) -> None:
        """Count an error of this request."""
        self.queue.counters.fail(error, self._resets)

    def finish(self, now: float) -> None:
        """Finish the request; a second call has no effect."""
        if not self.done:
            self.done = True
            self.queue.counters.end(now - self._began, self._resets)
            self.queue.finished(self)


class RequestQueue(Receiver):
    """The receiver of one endpoint's subscription."""

    __slots__ = (
        "_bytes",
        "_held",
        "_in_progress",
        "_max_bytes",
        "_max_msgs",
        "_queue",
        "_service",
        "counters",
        "dropped",
        "record",
    )

    def __init__(
        self, service: ServiceMachine, record: EndpointRecord, max_msgs: int, max_bytes: int
    ) -> None:
        super().__init__()
        self._service = service
        self.record: EndpointRecord = record
        self.counters: Counters = Counters()
        self.dropped: int = 0
        self._max_msgs = max_msgs
        self._max_bytes = max_bytes
        self._queue = MessageQueue()
        self._bytes = 0
        self._in_progress = 0
        self._held: list[Handling] = []  # those that loops have taken and not answered

    @property
    def queued(self) -> int:
        """The number of requests that wait to be taken."""
        return len(self._queue.batch) + len(self._queue.fresh)

    @property
    def in_progress(self) -> int:
        """The number of requests that were taken and are not finished."""
        return self._in_progress

    def pending(self) -> int:
        # D-SERVICE-14: a client that drains waits for answers, too.
        return self.queued + self._in_progress

    def receive(self, msg: Msg, now: float) -> bool:
        if self._service.refusing:
            self._refuse(msg, STOPPED)
            return False
        count = self.queued
        size = self._bytes + msg.size
        if count >= self._max_msgs or size > self._max_bytes:
            self.dropped += 1
            self.drop()  # SlowConsumer
            self._refuse(msg, OVERLOADED)
            return False
        self._bytes = size
        self._queue.fresh.append(msg)
        if count:
            return False
        self.effects.append(Wake([self._service.work]))
        return True

    def take(self, now: float, hold: bool = False) -> Handling:
        """Begin the oldest request; there must be one.

        With `hold`, a loop takes the request, and only its answer shows when it is done.
        """
        msg = self._queue.pop()
        self._bytes -= msg.size
        self._in_progress += 1
        handling = Handling(self, msg, now)
        if hold:
            self._held.append(handling)
        return handling

    def finished(self, handling: Handling) -> None:
        """Record that a request is finished. Called by Handling.finish."""
        self._in_progress -= 1
        if handling in self._held:
            self._held.remove(handling)
        self._settle()

    def refuse(self, now: float) -> list[Msg]:
        """End all queued requests, and those that loops have not answered.

        Returns the messages that the caller must answer with 503.
        """
        self._bytes = 0
        refused = self._queue.clear()
        for _ in refused:
            self.counters.refuse(STOPPED)
        for handling in list(self._held):
            if not handling.answered:
                handling.fail(STOPPED)
                handling.refused = handling.answered = True
                refused.append(handling.msg)
            handling.finish(now)
        self._settle()
        return [msg for msg in refused if msg.raw_reply]

    def _refuse(self, msg: Msg, text: str) -> None:
        self.counters.refuse(text)
        if msg.raw_reply:  # D-SERVICE-8
            self.emit(msg.raw_reply, b"", b"", _REFUSALS[text])

    def _settle(self) -> None:
        self._service.settle()
        self.effects.extend(self._service.take_effects())

    def end(self, error: NatsError | None = None) -> bool:
        if not super().end(error):
            return False
        self._service.subscription_ended(error)
        self.effects.extend(self._service.take_effects())
        return True
