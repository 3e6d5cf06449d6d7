"""A model of a server with one stream and one pull consumer, as clients see it.

Times come from a clock that also runs its timers; bytes go out as nats-server writes them, in one
of its releases. tests/sim/test_model.py and test_releases.py replay the transcripts of real servers
against it.
"""

from __future__ import annotations

import json

from natsproto.testing.sim.peer import Peer, status_block
from natsproto.testing.sim.port import NANO

from .releases import release_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from natsproto.wire.frames import Pub

    from .releases import Release

    class Clock(Protocol):
        """The time, and what is to happen; natsproto.testing.sim.clock.Clock is one."""

        @property
        def now(self) -> float: ...
        def at(self, __time: float, __call: Callable[[], object]) -> None: ...


# When messages were stored, if nobody says so: a number with as many digits as in transcripts.
STORED_AT = 1794786870000000000


class Stored:
    """A message of the stream, and how far it is."""

    __slots__ = ("acked", "block", "count", "data", "due", "seq", "subject", "time_ns")

    def __init__(
        self,
        seq: int,
        data: bytes,
        block: bytes | None,
        subject: bytes = b"",
        time_ns: int = STORED_AT,
    ) -> None:
        self.seq: int = seq
        self.subject: bytes = subject
        self.time_ns: int = time_ns
        self.data: bytes = data
        self.block: bytes | None = block
        self.count: int = 0  # deliveries
        self.acked: bool = False
        self.due: float = 0.0  # when it is to be delivered again


class Request:
    """A pull that waits."""

    __slots__ = (
        "at",
        "beat",
        "brought",
        "by_bytes",
        "bytes",
        "ends",
        "heartbeat",
        "left",
        "once",
        "peer",
        "reply",
    )

    def __init__(self, peer: Peer | None, reply: bytes, body: dict[str, Any], now: float) -> None:
        self.peer: Peer | None = peer  # None: another client's
        self.reply: bytes = reply
        self.left: int = body.get("batch", 1)
        self.bytes: int = body.get("max_bytes", 0)
        self.by_bytes: bool = self.bytes > 0
        self.once: bool = bool(body.get("no_wait"))
        self.heartbeat: float = body.get("idle_heartbeat", 0) / NANO
        self.ends: float | None = now + body["expires"] / NANO if "expires" in body else None
        self.beat: float = now + self.heartbeat
        self.at: float = now
        self.brought: int = 0


class Model:
    """The stream, the consumer, its waiting pulls, and its leader."""

    def __init__(self, clock: Clock, name: str = "S", **config: Any) -> None:
        self._clock = clock
        self._subject = f"{name.lower()}.x".encode()
        self._ack = f"$JS.ACK.{name}.C.".encode()
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{name}.C".encode()
        self._info = f"$JS.API.CONSUMER.INFO.{name}.C".encode()
        self._name = name
        self.lookups: int = 0
        self.exists: bool = (
            True  # False: the consumer is gone, and pulls of it are answered with 503, or not
        )
        self.release: Release = release_of(config)
        self.max_waiting: int = config.get("max_waiting", 512)
        self.max_ack_pending: int = config.get("max_ack_pending", 1000)
        self.max_batch: int = config.get("max_batch", 0)
        self.max_expires: float = config.get("max_expires", 0.0)
        self.max_bytes: int = config.get("max_bytes", 0)
        self.ack_wait: float = config.get("ack_wait", 30.0)
        self.stored: list[Stored] = []
        self.unacked: int = 0
        self.delivered: int = 0  # the consumer's sequence
        self.waiting: list[Request] = []
        self.leader: bool = True
        self.frozen: bool = False  # it leads, and does nothing
        self.stored_leader: bool = True  # somebody stores what is published
        self.acks: dict[bytes, int] = {}
        self.ids: dict[bytes, int] = {}
        self.swallowed: int = 0  # pulls that were refused without a word
        self.pulls: list[Request] = []  # all of them
        self.limbo: list[Request] = []

    # What clients do

    def subscribed(self, peer: Peer) -> None:
        """Look for interest when there is something to deliver."""

    def published(self, peer: Peer, pub: Pub) -> None:
        """Handle a pull, a lookup, an acknowledgment or a message to store."""
        subject = pub.raw_subject
        if subject == self._next:
            self.pull(peer, pub.raw_reply, pub.data)
        elif subject == self._info:
            self._look_up(peer, pub.raw_reply)
        elif subject.startswith(self._ack):
            self._acked(subject, pub.data)
        elif subject == self._subject:
            self._store(peer, pub)
        else:
            raise AssertionError(f"no client requested {subject!r}")

    def pull(self, peer: Peer | None, reply: bytes, data: bytes) -> None:
        """Handle a pull request."""
        body = json.loads(data)
        request = Request(peer, reply, body, self._clock.now)
        self.pulls.append(request)
        if not self.release.answers_absent and not (self.exists and self.leader):
            self.swallowed += 1
            return
        if not self.leader or not self.exists:
            absent = status_block("503", header=f"Nats-Subject: {self._next.decode()}\r\n")
            self._tell(peer, reply, absent)
            return
        if self.frozen:
            self.limbo.append(request)
            return
        refusal = self._refusal(request, body)
        if refusal is not None:
            if refusal:
                self._tell(peer, reply, status_block(refusal))
            else:
                self.swallowed += 1
            return
        if 0 < body.get("expires", 0) <= 1000:
            self._end(request, "408 Request Timeout", pending=True)  # it is over by now
            return
        self.waiting.append(request)
        self.pump()
        if request in self.waiting:
            self._watch(request)

    def _look_up(self, peer: Peer, reply: bytes) -> None:
        """CONSUMER.INFO. Without a leader there are several answers, and none of them is 404."""
        kind = self.lookups // 3 % 4
        self.lookups += 1
        here: dict[str, Any] = {"stream_name": self._name, "name": "C", "config": {}}
        unavailable = (503, 10008, "JetStream system temporarily unavailable")
        if not self.exists and self.leader:
            self._answer(peer, reply, error(404, 10014, "consumer not found"))
        elif self.leader and not self.frozen:
            self._answer(peer, reply, here)
        elif kind == 0:
            self._answer(peer, reply, error(*unavailable))
        elif kind == 1:
            self._tell(peer, reply, status_block("503"))
        elif kind == 2 and self.exists:
            self._answer(peer, reply, here)

    def _answer(self, peer: Peer, reply: bytes, answer: dict[str, Any]) -> None:
        peer.deliver(reply, reply, b"", None, json.dumps(answer).encode())

    def _refusal(self, request: Request, body: dict[str, Any]) -> str | None:
        """The status of a pull that is not taken; "" if the server does not even say so."""
        expires = body.get("expires", 0)
        if request.heartbeat and 2 * body["idle_heartbeat"] > expires:
            return "400 Bad Request - heartbeat value too large"
        if self.max_batch and request.left > self.max_batch:
            return f"409 Exceeded MaxRequestBatch of {self.max_batch}"
        if self.max_expires and expires > self.max_expires * NANO:
            return f"409 Exceeded MaxRequestExpires of {self.max_expires:g}s"
        if self.max_bytes and request.bytes > self.max_bytes:
            return f"409 Exceeded MaxRequestMaxBytes of {self.max_bytes}"
        if len(self.waiting) >= self.max_waiting:
            self.waiting = [each for each in self.waiting if self._interest(each)]
        if len(self.waiting) >= self.max_waiting:
            aloud = self.release.refuses_aloud or not request.heartbeat
            return "409 Exceeded MaxWaiting" if aloud else ""
        return None

    def _acked(self, subject: bytes, data: bytes) -> None:
        self.acks[subject] = self.acks.get(subject, 0) + 1
        message = self.stored[int(subject.split(b".")[5]) - 1]
        if data == b"+ACK":
            self.unacked -= 0 if message.acked else 1
            message.acked = True
        elif data == b"-NAK":
            message.due = self._clock.now
        self.pump()

    def _store(self, peer: Peer, pub: Pub) -> None:
        if not self.stored_leader:
            self._tell(peer, pub.raw_reply, status_block("503"))
            return
        block = pub.raw_headers or b""
        key = block.partition(b"Nats-Msg-Id: ")[2].partition(b"\r")[0]
        seq = self.ids.get(key) if key else None
        duplicate = ',"duplicate":true' if seq else ""
        if not seq:
            seq = self.add(pub.data).seq
            if key:
                self.ids[key] = seq
        answer = f'{{"stream":"{self._name}","seq":{seq}{duplicate}}}'.encode()
        peer.deliver(pub.raw_reply, pub.raw_reply, b"", None, answer)

    # What the server does

    def add(self, data: bytes, block: bytes | None = None) -> Stored:
        """Store a message."""
        message = Stored(len(self.stored) + 1, data, self.release.stored_block(block))
        self.unacked += 1
        self.stored.append(message)
        return message

    @property
    def done(self) -> bool:
        """Whether all messages are acknowledged."""
        return self.unacked == 0

    def _interest(self, request: Request) -> bool:
        return request.peer is None or request.peer.sid(request.reply) > 0

    def _ack_pending(self) -> int:
        return sum(1 for each in self.stored if each.count and not each.acked)

    def _deliverable(self) -> Stored | None:
        now = self._clock.now
        for message in self.stored:
            if message.count and not message.acked and message.due <= now:
                return message
        if self._ack_pending() < self.max_ack_pending:
            for message in self.stored:
                if not message.count:
                    return message
        return None

    def pump(self) -> None:
        """Serve the waiting pulls in turn, as long as there is something to deliver."""
        while self.waiting and self.leader and not self.frozen:
            message = self._deliverable()
            if message is None:
                self._end_once()
                return
            request = self.waiting.pop(0)
            if self._interest(request):
                self._serve(request, message)

    def _end_once(self) -> None:
        """End the no_wait pulls: there is nothing more for them.

        If only max_ack_pending prevents a delivery, they stay without a status.
        """
        if self._ack_pending() >= self.max_ack_pending:
            return
        for request in [each for each in self.waiting if each.once]:
            self.waiting.remove(request)
            if request.brought and self.release.times_out_part:
                self._end(request, "408 Request Timeout", pending=True)
            else:
                self._end(request, "404 No Messages")

    def _delivered_block(self, message: Stored) -> bytes | None:
        return message.block

    def _left_behind(self, message: Stored) -> int:
        """How many messages there are still to be delivered after this one."""
        return sum(1 for each in self.stored if not each.count) - (0 if message.count else 1)

    def _serve(self, request: Request, message: Stored) -> None:
        now = self._clock.now
        reply = b"%s%d.%d.%d.%d.%d" % (
            self._ack,
            message.count + 1,
            message.seq,
            self.delivered + 1,
            message.time_ns,
            self._left_behind(message),
        )
        subject = message.subject or self._subject
        size = len(subject) + len(reply) + len(message.block or b"") + len(message.data)
        if request.by_bytes and size > request.bytes:
            self._end(request, "409 Message Size Exceeds MaxBytes", pending=True)
            return
        message.count += 1
        message.due = now + self.ack_wait
        self._clock.at(message.due, self.pump)
        self.delivered += 1
        request.left -= 1
        request.brought += 1
        request.bytes -= size if request.by_bytes else 0
        request.beat = now + request.heartbeat
        if request.peer is not None:
            block = self._delivered_block(message)
            request.peer.deliver(request.reply, subject, reply, block, message.data)
        if request.left > 0 and not (request.by_bytes and request.bytes == 0):
            self.waiting.append(request)
        elif request.by_bytes and request.bytes:
            self._end(request, "409 Batch Completed", pending=True)

    def _end(self, request: Request, line: str, *, pending: bool = False) -> None:
        numbers = (request.left, request.bytes) if pending else (None, 0)
        self._tell(request.peer, request.reply, status_block(line, *numbers))

    def _tell(self, peer: Peer | None, reply: bytes, block: bytes) -> None:
        if peer is not None:
            peer.deliver(reply, reply, b"", block, b"")

    def _watch(self, request: Request) -> None:
        """Heartbeats, and the end of its time."""
        times = [request.beat] if request.heartbeat else []
        if request.ends is not None:
            times.append(request.ends)
        if times:
            self._clock.at(min(times), lambda: self._look(request))

    def _look(self, request: Request) -> None:
        if request not in self.waiting:
            return
        now = self._clock.now
        if self.frozen or not self._interest(request):
            if not self.frozen:
                self.waiting.remove(request)
            return
        if request.ends is not None and now >= request.ends:
            self.waiting.remove(request)
            self._end(request, "408 Request Timeout", pending=True)
            return
        if request.heartbeat and now >= request.beat:
            last = f"Nats-Last-Consumer: {self.delivered}\r\nNats-Last-Stream: {self._last()}\r\n"
            self._tell(request.peer, request.reply, status_block("100 Idle Heartbeat", header=last))
            request.beat = now + request.heartbeat
        self._watch(request)

    def _last(self) -> int:
        return max([each.seq for each in self.stored if each.count], default=0)

    # What happens to servers

    def step_down(self, statuses: list[str]) -> None:
        """Remove the leader; its pulls get each of these status lines."""
        self.leader = self.frozen = False
        ended, self.waiting = self.waiting + self.limbo, []
        self.limbo = []
        for line in statuses:
            for request in ended:
                self._end(request, line, pending=line == "409 Server Shutdown")

    def freeze(self) -> None:
        """It leads and does nothing: neither beats nor messages, and new pulls are lost."""
        self.frozen = True

    def elect(self) -> None:
        """A new leader: the pulls of one that said nothing are ended now, late."""
        self.step_down(["409 Leadership Change"])
        self.leader = True

    def delete(self) -> None:
        """Delete the consumer; its pulls are notified."""
        self.step_down(["409 Consumer Deleted"])

    def vanish(self) -> None:
        """Remove the consumer; its pulls get no status."""
        self.exists = False
        self.waiting = []
        self.limbo = []


def error(code: int, err_code: int, description: str) -> dict[str, Any]:
    """An error of the API."""
    return {"error": {"code": code, "err_code": err_code, "description": description}}
