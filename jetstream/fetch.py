"""Fetcher: the machine of fetch and next. One pull at a time on one subscription.

A fetch is over when its messages or bytes have come, by the status that ends its pull, by a missed
heartbeat, by the loss of the connection, or at the client's own deadline, which is later than the
server's. What arrives after that, for whatever reason, is kept for the next fetch: it was delivered
to us, and nobody else gets it before its ack wait is over.
"""

from __future__ import annotations

from natsproto.errors import ConnectionLost, TimeoutExpired

from .errors import HeartbeatMissed
from .machine import Machine
from .pull import counted_size, is_status, read_pin
from .status import BEAT, DONE, RETRY, UNPIN, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.frames import Msg

    from .pull import PullTemplate

# How much later than the server the client gives up.
MARGIN = 1.0


class Fetcher(Machine):
    """One fetch after the other; when `done`, `messages` and `failure` tell how it ended."""

    __slots__ = (
        "_bytes_left",
        "_count",
        "_ends_at",
        "_heartbeat",
        "_left",
        "_prefix",
        "_request",
        "_silent_at",
        "_token",
        "done",
        "failure",
        "messages",
        "pin",
    )

    def __init__(self, inbox: bytes) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._count = 0
        self._token = b""
        self._request = (b"", b"", b"")
        self._left = 0
        self._bytes_left: int | None = None  # None: not limited by bytes
        self._heartbeat = 0.0
        self._ends_at = 0.0
        self._silent_at = 0.0
        self.pin = ""
        self.done = True
        self.failure: NatsError | None = None
        self.messages: list[Msg] = []

    def start(
        self, template: PullTemplate, batch: int, max_bytes: int, patience: float, now: float
    ) -> None:
        """Begin. What came since the last fetch counts; `patience`: until the server ends it."""
        self.failure = None
        self.done = False
        self._left = batch
        self._bytes_left = max_bytes or None
        for msg in self.messages:
            self._book(msg)
        if self.done:
            return
        self._count += 1
        self._token = b"%d" % self._count
        self._heartbeat = template.heartbeat
        self._ends_at = now + patience + MARGIN
        self._heard(now)
        body = template.body(self._left, self._bytes_left or 0, self.pin)
        self._request = (template.subject, body, self._prefix + self._token)
        self.order(*self._request)

    def take(self, batch: int) -> list[Msg]:
        """The messages of a fetch; what is more than it asked for stays for the next one."""
        taken = self.messages[:batch]
        self.messages = self.messages[batch:]
        return taken

    def give_up(self) -> None:
        """The caller is gone. What came, and what still comes, is for the next fetch."""
        if not self.done:
            self._finish(None)

    def receive(self, msg: Msg, now: float) -> bool:
        if is_status(msg, self._prefix):
            token = msg.raw_subject[len(self._prefix) :]
            # A status of an earlier pull, or a second one of this, means nothing any more.
            return token == self._token and not self.done and self._status(Status(msg), now)
        self.messages.append(msg)
        self.pin = read_pin(msg) or self.pin
        if self.done:
            return False
        self._heard(now)
        self._book(msg)
        return self.done

    def _book(self, msg: Msg) -> None:
        self._left -= 1
        if self._bytes_left is not None:
            self._bytes_left -= counted_size(msg)
        if self._left <= 0 or (self._bytes_left is not None and self._bytes_left <= 0):
            self._finish(None)

    def _status(self, status: Status, now: float) -> bool:
        if status.meaning == BEAT:
            self._heard(now)
            return False
        if status.meaning == UNPIN:
            self.pin = ""
        ends_well = status.meaning in (DONE, RETRY, UNPIN) or status.ends_a_batch
        self._finish(None if ends_well else status.error)
        return True

    def _heard(self, now: float) -> None:
        self.deadline = self._ends_at
        if self._heartbeat:
            self._silent_at = now + 2 * self._heartbeat
            self.deadline = min(self._ends_at, self._silent_at)

    def _finish(self, failure: NatsError | None) -> None:
        self.done = True
        self.failure = failure
        self.deadline = None
        self._token = b""

    def handle_timer(self, now: float) -> bool:
        if self.done:
            self.deadline = None
            return False
        if self._heartbeat and now >= self._silent_at:
            self._finish(HeartbeatMissed("the server was silent for %g s" % (2 * self._heartbeat)))
        else:
            self._finish(TimeoutExpired("the server did not end the pull in time"))
        return True

    def connected(self, now: float) -> None:
        # A fetch that began without a connection: its pull was not sent yet.
        if not self.done:
            self._heard(now)
            self.order(*self._request)

    def disconnected(self, now: float) -> None:
        if not self.done:
            self._finish(ConnectionLost("the connection was lost during a fetch"))
            self.ready.append(self)

    def end(self, error: NatsError | None = None) -> bool:
        if not self.done:
            self._finish(error or ConnectionLost("the subscription of the fetch has ended"))
        return super().end(error)

    def pending(self) -> int:
        return len(self.messages)
