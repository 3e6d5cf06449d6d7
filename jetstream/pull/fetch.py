"""Fetcher: the machine of fetch and next. One fetch at a time on one subscription.

    idle      no fetch is under way; messages that still arrive are kept for the next fetch, because
              no other client gets them before their ack_wait is over
    fetching  from `start` until `done`

A fetch ends when it has all its messages or bytes, by the status that ends its pull, by a missed
heartbeat, by the loss of the connection, or at the client's own deadline, which is later than the
server's and is not extended by messages. If the server may still have the pull at that moment, it
is `open`: the owner has to end the subscription, so that the server drops the pull (FETCH-13). A
subscription without a fetch for half a minute ends.

An `eager` fetch (no_wait) wants only the messages that are there. The server says nothing when it
stops at max_ack_pending, and keeps the pull. So after QUIET seconds without a message a probe
follows, a pull that has expired when it arrives. The consumer's leader answers it after everything
that it had to send. If QUIET seconds later there is still no message, there is none (FETCH-12).
"""

from __future__ import annotations

from jetstream.errors import HeartbeatMissed
from jetstream.machine.status import BEAT, DONE, RETRY, SIZE, UNPIN, Status, is_status
from natsproto.connection.receiver import Receiver
from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired

from .ledger import MARGIN, counted_size, read_pin
from .silence import LATE

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.snapshot import ConsumerSnapshot
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .ledger import PullTemplate

IDLE = 30.0
# FETCH-12: how long an eager fetch waits before its probe, and after the answer to it.
QUIET = 0.05
# D-FETCH-15: how much more than was requested is kept if a server sends more.
SLACK_MESSAGES = 64
SLACK_BYTES = 1024 * 1024
# D-FETCH-18
_NOT_ENDED = (
    "the server did not end the pull of %s in time: it is stuck, the consumer does not exist"
    " (servers before 2.11 do not say so), or the client may not pull from it"
)


class Fetcher(Receiver):
    """One fetch after the other. `take` returns its messages; once `done`, `failure` is its error.

    `open`: the server may still have the pull of the last fetch. `streaming`: the caller is woken
    for every message, not only at the end. `dropped` counts messages that were not requested.
    """

    __slots__ = (
        "_bytes_left",
        "_bytes_room",
        "_eager",
        "_ends_at",
        "_grace_used",
        "_got",
        "_left",
        "_mine",
        "_name",
        "_online",
        "_order",
        "_prefix",
        "_probe",
        "_quiet_at",
        "_room",
        "_silent_at",
        "_template",
        "_token",
        "done",
        "dropped",
        "failure",
        "lost",
        "messages",
        "open",
        "pin",
        "streaming",
        "uncounted",
    )

    def __init__(self, inbox: bytes, name: str = "the consumer") -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._name = name  # of the consumer, for errors
        self._template: PullTemplate | None = None
        self._token = b""
        self._order = (b"", b"", b"")
        self._left = 0
        self._bytes_left: int | None = None  # None: not limited by bytes
        self._room = SLACK_MESSAGES
        self._bytes_room: int | None = None
        self._got = 0  # messages of this fetch so far
        self._mine = 0  # how many of `messages` belong to this fetch
        self._ends_at = 0.0
        self._silent_at: float | None = None  # None: there are no heartbeats now
        self._eager = False
        self._quiet_at: float | None = None
        self._probe = b""  # the token of the probe; b"": not sent since the last message
        self._grace_used = False
        self._online = False
        self.pin: str = ""
        self.done: bool = True
        self.dropped: int = 0
        self.open: bool = False
        self.streaming: bool = False
        self.failure: NatsError | None = None
        self.lost: int = 0  # messages that the server has sent, by the status of the pull
        self.uncounted: int = 0  # the status code of an end that does not say how many were sent
        self.messages: list[Msg] = []

    def start(
        self,
        template: PullTemplate,
        batch: int,
        max_bytes: int,
        patience: float,
        now: float,
        online: bool = True,
        eager: bool = False,
        streaming: bool = False,
    ) -> None:
        """Begin. Messages kept since the last fetch count; `patience`: until the server ends it.

        Not `online`: the pull is not sent now, but ordered again on the next connection. `eager`:
        end when the server has nothing more to send. If the template has `expires`, that is once
        there is a first message.
        """
        self._template = template
        self.failure = None
        self.lost = 0
        self.uncounted = 0
        self.done = False
        self.open = False
        self.streaming = streaming
        self._left = batch
        self._bytes_left = max_bytes or None
        self._got = 0
        self._mine = 0
        self._eager = eager
        self._quiet_at = None
        self._probe = b""
        for msg in self.messages:
            self._book(msg, now)
            if self.done:
                return
        self._room = self._left + SLACK_MESSAGES
        self._bytes_room = max_bytes + SLACK_BYTES if max_bytes else None
        if eager and template.expires and self._got:
            self._finish(None, now)
            return
        self._token = self.tokens.next()
        self._ends_at = now + patience + MARGIN  # FETCH-5
        self._online = online
        self._heard(now)
        body = template.body(self._left, self._bytes_left or 0, self.pin)
        self._order = (template.subject, body, self._prefix + self._token)
        if online:
            self.emit(*self._order)

    def take(self) -> list[Msg]:
        """Remove and return the messages of the fetch so far; others stay for the next one."""
        taken = self.messages[: self._mine]
        self.messages = self.messages[self._mine :]
        self._mine = 0
        return taken

    def snapshot(self, now: float) -> ConsumerSnapshot:  # D-SNAPSHOT-1
        """Return the current state."""
        from jetstream.machine.snapshot import ConsumerSnapshot, OpenPull, set_times

        made = ConsumerSnapshot(self._name)
        made.online = self._online
        made.ended = self.done or self.ended
        made.error = self.failure or self.error
        made.pending = self._mine
        made.received = self._got
        made.dropped = self.dropped
        made.limit = self._got + self._left
        made.level = self._mine + self._left
        made.pin = self.pin
        if not self.done:
            left = OpenPull(self._left, self._bytes_left or 0, self._ends_at - now)
            made.pulls = [left] if self._online else []
            set_times(made, now, silence=self._silent_at)
        return made

    def give_up(self, now: float) -> None:
        """End the fetch because its caller is gone. Its messages are for the next fetch."""
        if not self.done:
            self._finish(None, now, open=True)
        self._mine = 0

    def receive(self, msg: Msg, now: float) -> bool:
        self._grace_used = False
        if msg.raw_subject.startswith(self._prefix) and not msg.raw_reply:
            token = msg.raw_subject[len(self._prefix) :]
            # PULL-8: a status of an earlier pull, or a second one, is ignored.
            if not token or token not in (self._token, self._probe) or not is_status(msg):
                return False
            if token == self._token:
                return self._status(Status(msg), now)
            self._quiet_at = now + QUIET
            self._set_deadline()
            return False
        if not self._has_room(msg):
            return False
        self.messages.append(msg)
        if self._template is not None and self._template.pinned:
            self.pin = read_pin(msg) or self.pin
        if self.done:
            return False
        self._got_message(now)
        self._book(msg, now)
        return self.done or self.streaming

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        template = self._template
        simple = not self.done and self._bytes_left is None and len(msgs) <= self._left
        # A message with a reply subject is not a status. 0.1 us a message, not 0.8.
        if not simple or template is None or template.pinned or _without_reply(msgs):
            return super().receive_all(msgs, now)
        self._grace_used = False
        self.messages += msgs
        self._got += len(msgs)
        self._mine += len(msgs)
        self._left -= len(msgs)
        self._room -= len(msgs)
        if self._left:
            self._got_message(now)
        else:
            self._finish(None, now)
        return self.done or self.streaming

    def _has_room(self, msg: Msg) -> bool:
        """Return whether to keep it; messages that were not requested are dropped (D-FETCH-15)."""
        room = self._room > 0
        if room and self._bytes_room is not None:
            self._bytes_room -= counted_size(msg, False)
            room = self._bytes_room >= 0
        if room:
            self._room -= 1
        else:
            self.dropped += 1
            self.drop()
        return room

    def _book(self, msg: Msg, now: float) -> None:
        assert self._template is not None
        if self._bytes_left is not None:
            size = counted_size(msg, self._template.pinned)
            if size > self._bytes_left and self._got:
                self._finish(None, now)  # D-FETCH-8: of an earlier pull, and too large for this one
                return
            self._bytes_left -= size
        self._got += 1
        self._mine += 1
        self._left -= 1
        if self._left <= 0 or (self._bytes_left is not None and self._bytes_left <= 0):  # FETCH-1
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
        fine = status.meaning in (DONE, RETRY, UNPIN) or (status.meaning == SIZE and self._got)
        self._finish(None if fine else status.error, now)  # FETCH-3
        return True

    def _got_message(self, now: float) -> None:
        if self._eager:
            self._probe = b""  # its answer would not be sent after this message
            self._quiet_at = now + QUIET
        self._heard(now)

    def _heard(self, now: float) -> None:
        """Restart the heartbeat's time: something arrived, or may arrive from now on."""
        assert self._template is not None
        heartbeat = self._template.heartbeat
        # FETCH-6: silence means nothing without a connection.
        self._silent_at = now + 2 * heartbeat if heartbeat and self._online else None
        if self._eager and self._online and not self._template.expires and not self._probe:
            self._quiet_at = now + QUIET
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline = self._ends_at
        for at in (self._silent_at, self._quiet_at):
            if at is not None and at < self.deadline:
                self.deadline = at

    def _finish(self, failure: NatsError | None, now: float, open: bool = False) -> None:
        self.done = True
        self.failure = failure
        self.open = open
        self._token = b""
        self._probe = b""
        self.deadline = now + IDLE

    def handle_timer(self, now: float) -> bool:
        if self.done:
            if self.deadline is not None and now >= self.deadline:
                self.deadline = None
                self.leave()  # D-FETCH-10
            return False
        quiet = self._quiet_at is not None and now >= self._quiet_at
        silent = self._silent_at is not None and now >= self._silent_at
        if now >= self._ends_at:
            self._finish(TimeoutExpired(_NOT_ENDED % self._name), now, open=True)
        elif quiet or silent:
            self._nothing_came(quiet, now)
        return self.done

    def _nothing_came(self, quiet: bool, now: float) -> None:
        assert self._template is not None
        heartbeat = self._template.heartbeat
        due = self._quiet_at if quiet else self._silent_at
        assert due is not None
        if now - due > LATE and not self._grace_used:
            self._grace_used = True
            if quiet:
                self._quiet_at = now + QUIET
            else:
                self._silent_at = now + heartbeat
        elif not quiet:
            text = "the server of %s was silent for %g s" % (self._name, 2 * heartbeat)
            self._finish(HeartbeatMissed(text), now, open=True)
            return
        elif self._probe:
            self._finish(None, now, open=True)  # FETCH-12: there is nothing more
            return
        else:
            self._quiet_at = None
            self._probe = self.tokens.next()
            self.emit(self._template.subject, self._template.expired(), self._prefix + self._probe)
        self._set_deadline()

    def connected(self, now: float) -> None:
        if not self.done:
            # A fetch that began without a connection: its pull was not sent yet.
            self._online = True
            self._heard(now)
            self.emit(*self._order)

    def disconnected(self, now: float) -> None:
        if not self.done and self._online:
            text = "the connection was lost during the fetch from %s" % self._name
            self._finish(ConnectionLost(text), now, open=True)  # D-FETCH-7
            self.wake()

    def end(self, error: NatsError | None = None) -> bool:
        if not self.done:
            text = "the client was closed during the fetch from %s" % self._name
            self._finish(error or ConnectionClosed(text), 0.0)
        self.deadline = None
        return super().end(error)

    def pending(self) -> int:
        """The messages that a caller is about to take; others may stay for any time."""
        return self._mine


def _without_reply(msgs: list[Msg]) -> list[Msg]:
    return [msg for msg in msgs if not msg.raw_reply]
