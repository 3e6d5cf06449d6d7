"""Fetcher: the machine of fetch and next. One fetch at a time on one subscription.

    idle      nobody waits; what arrives is kept for the next fetch, because it was delivered to us
              and nobody else gets it before its ack wait is over
    fetching  from `start` until `done`

A fetch is over when its messages or bytes have come, by the status that ends its pull, by a missed
heartbeat, by the loss of the connection, or at the client's own deadline, which is later than the
server's and is not put off by messages. After half a minute of idleness the subscription ends.
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired

from .errors import HeartbeatMissed
from .machine import Machine
from .pull import MARGIN, counted_size, read_pin
from .status import BEAT, DONE, RETRY, SIZE, UNPIN, Status, is_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.frames import Msg

    from .pull import PullTemplate

IDLE = 30.0
# A timer that rings so much too late says that nobody has read, not that nothing came.
LATE = 0.1


class Fetcher(Machine):
    """One fetch after the other; when `done`, `take` gives its messages, `failure` why it ended."""

    __slots__ = (
        "_bytes_left",
        "_ends_at",
        "_excused",
        "_left",
        "_mine",
        "_online",
        "_order",
        "_prefix",
        "_silent_at",
        "_template",
        "_token",
        "done",
        "failure",
        "lost",
        "messages",
        "pin",
        "uncounted",
    )

    def __init__(self, inbox: bytes) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._template: PullTemplate | None = None
        self._token = b""
        self._order = (b"", b"", b"")
        self._left = 0
        self._bytes_left: int | None = None  # None: not limited by bytes
        self._mine = 0  # how many of the messages are this fetch's
        self._ends_at = 0.0
        self._silent_at: float | None = None  # None: there are no heartbeats now
        self._excused = False
        self._online = False
        self.pin = ""
        self.done = True
        self.failure: NatsError | None = None
        self.lost = 0  # messages that the server has sent, by the status of the pull
        self.uncounted = 0  # the status code of an end that does not say how many were sent
        self.messages: list[Msg] = []

    def start(
        self,
        template: PullTemplate,
        batch: int,
        max_bytes: int,
        patience: float,
        now: float,
        online: bool = True,
    ) -> None:
        """Begin. What came since the last fetch counts; `patience`: until the server ends it.

        Not `online`: the pull will not be sent, but ordered anew on the next connection.
        """
        self._template = template
        self.failure = None
        self.lost = 0
        self.uncounted = 0
        self.done = False
        self._left = batch
        self._bytes_left = max_bytes or None
        self._mine = 0
        for msg in self.messages:
            self._book(msg, now)
            if self.done:
                return
        self._token = self.tokens.next()
        self._ends_at = now + patience + MARGIN  # FETCH-5
        self._online = online
        self._heard(now)
        body = template.body(self._left, self._bytes_left or 0, self.pin)
        self._order = (template.subject, body, self._prefix + self._token)
        if online:
            self.order(*self._order)

    def take(self) -> list[Msg]:
        """The messages of the fetch; what came besides stays for the next one."""
        taken = self.messages[: self._mine]
        self.messages = self.messages[self._mine :]
        self._mine = 0
        return taken

    def give_up(self, now: float) -> None:
        """The caller is gone. What came, and what still comes, is for the next fetch."""
        if not self.done:
            self._mine = 0
            self._finish(None, now)

    def receive(self, msg: Msg, now: float) -> bool:
        self._excused = False
        if msg.raw_subject.startswith(self._prefix) and not msg.raw_reply:
            token = msg.raw_subject[len(self._prefix) :]
            # PULL-8: a status of an earlier pull, or a second one, means nothing any more.
            if token != self._token or not is_status(msg):
                return False
            return self._status(Status(msg), now)
        self.messages.append(msg)
        if self._template is not None and self._template.pinned:
            self.pin = read_pin(msg) or self.pin
        if self.done:
            return False
        self._heard(now)
        self._book(msg, now)
        return self.done

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        template = self._template
        simple = not self.done and self._bytes_left is None and len(msgs) <= self._left
        # What has a reply subject is no status. 0.1 us a message, not 0.8.
        if not simple or template is None or template.pinned or _without_reply(msgs):
            return super().receive_all(msgs, now)
        self._excused = False
        self.messages += msgs
        self._mine += len(msgs)
        self._left -= len(msgs)
        if self._left:
            self._heard(now)
        else:
            self._finish(None, now)
        return self.done

    def _book(self, msg: Msg, now: float) -> None:
        assert self._template is not None
        if self._bytes_left is not None:
            size = counted_size(msg, self._template.pinned)
            if size > self._bytes_left and self._mine:
                self._finish(None, now)  # FETCH-8: of an earlier pull, and too large for this one
                return
            self._bytes_left -= size
        self._mine += 1
        self._left -= 1
        if self._left <= 0 or (self._bytes_left is not None and self._bytes_left <= 0):
            self._finish(None, now)

    def _status(self, status: Status, now: float) -> bool:
        if status.meaning == BEAT:
            self._heard(now)
            return False
        if status.meaning == UNPIN:
            self.pin = ""
        if status.messages is not None:
            self.lost = max(0, self._left - status.messages)
        elif not status.refused:
            self.uncounted = status.code
        # FETCH-9: a first message that does not fit would be in the way of every fetch to come.
        fine = status.meaning in (DONE, RETRY, UNPIN) or (status.meaning == SIZE and self._mine)
        self._finish(None if fine else status.error, now)
        return True

    def _heard(self, now: float) -> None:
        """Something came, or may come from now on."""
        assert self._template is not None
        heartbeat = self._template.heartbeat
        # FETCH-6: silence is no news without a connection.
        self._silent_at = now + 2 * heartbeat if heartbeat and self._online else None
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline = self._ends_at
        if self._silent_at is not None and self._silent_at < self._ends_at:
            self.deadline = self._silent_at

    def _finish(self, failure: NatsError | None, now: float) -> None:
        self.done = True
        self.failure = failure
        self._token = b""
        self.deadline = now + IDLE

    def handle_timer(self, now: float) -> bool:
        if self.done:
            if self.deadline is not None and now >= self.deadline:
                self.deadline = None
                self.leave()  # FETCH-10
            return False
        if now >= self._ends_at:
            self._finish(TimeoutExpired("the server did not end the pull in time"), now)
        elif self._silent_at is not None and now >= self._silent_at:
            assert self._template is not None
            heartbeat = self._template.heartbeat
            if now - self._silent_at > LATE and not self._excused:
                self._excused = True
                self._silent_at = now + heartbeat
                self._set_deadline()
                return False
            self._finish(HeartbeatMissed("the server was silent for %g s" % (2 * heartbeat)), now)
        return self.done

    def connected(self, now: float) -> None:
        if not self.done:
            # A fetch that began without a connection: its pull was not sent yet.
            self._online = True
            self._heard(now)
            self.order(*self._order)

    def disconnected(self, now: float) -> None:
        if not self.done and self._online:
            self._finish(ConnectionLost("the connection was lost during the fetch"), now)
            self.ready.append(self)

    def end(self, error: NatsError | None = None) -> bool:
        if not self.done:
            self._finish(error or ConnectionClosed("the client was closed during the fetch"), 0.0)
        self.deadline = None
        return super().end(error)

    def pending(self) -> int:
        """What somebody is about to take; the rest may stay untaken for ever."""
        return self._mine


def _without_reply(msgs: list[Msg]) -> list[Msg]:
    return [msg for msg in msgs if not msg.raw_reply]
