"""A model of a server with one stream and push consumers, as clients see it.

Flow control as in nats-server: a request when the window is half full, nothing more when it is
full, and the window doubles with each answer. tests/sim/test_push_model.py replays the transcripts
of a real server against it.
"""

from __future__ import annotations

import json
from collections import OrderedDict

from natsproto.testing.sim.peer import status_block
from natsproto.testing.sim.port import NANO

from .pull_model import Stored
from .releases import release_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.testing.sim.peer import Peer
    from natsproto.wire.frames import Pub

    from .pull_model import Clock
    from .releases import Release

WINDOW = 2 * 1024 * 1024
MOST_WINDOW = 32 * 1024 * 1024


class Copy:
    """A consumer's state of a message."""

    __slots__ = ("acked", "count", "due")

    def __init__(self) -> None:
        self.count: int = 0
        self.acked: bool = False
        self.due: float = 0.0


class PushConsumer:
    """One consumer; it sends heartbeats and messages while its exact subject has a subscriber."""

    def __init__(self, model: PushModel, name: str, config: dict[str, Any]) -> None:
        self._model = model
        self.name: str = name
        self.config: dict[str, Any] = config
        self.target: bytes = config["deliver_subject"].encode()
        self.heartbeat: float = config.get("idle_heartbeat", 0) / NANO
        self.acks: bool = config.get("ack_policy", "explicit") != "none"
        self.ack_wait: float = config.get("ack_wait", 30 * NANO) / NANO
        self.start: int = config.get("opt_start_seq", 1)
        self.next: int = self.start  # of the stream
        self.delivered: int = 0
        self.copies: OrderedDict[int, Copy] = OrderedDict()  # MicroPython's dict has no order
        self.window: int = model.window if config.get("flow_control") else 0
        self.pending: int = 0  # bytes that are not known to be taken
        self.request: bytes = b""
        self.requested: int = 0
        self.beat: float = 0.0
        self.beating: bool = False
        self.gone: bool = False

    # What it sends

    def _send(self, reply: bytes, block: bytes | None, data: bytes, subject: bytes = b"") -> None:
        peer = self._model.listener(self.target)
        if peer is not None:
            peer.deliver(self.target, subject or self.target, reply, block, data)

    @property
    def stalled(self) -> bool:
        """Whether the window of flow control is full."""
        return self.window > 0 and self.pending > self.window

    def _deliverable(self) -> Stored | None:
        model = self._model
        for seq, copy in self.copies.items():
            if copy.count and not copy.acked and copy.due <= model.now:
                return model.stored[seq - 1]
        return model.stored[self.next - 1] if self.next <= len(model.stored) else None

    def _left(self) -> int:
        """Return how many messages there are still to be delivered."""
        return len(self._model.stored) - self.next + 1

    def pump(self) -> None:
        """Deliver all messages that can be delivered."""
        while not (self.gone or self._model.frozen):
            if self._model.listener(self.target) is None:
                return
            if not self.beating and self.heartbeat:
                self._start_beating()
            message = self._deliverable()
            if message is None or self.stalled:
                return
            self._deliver(message)

    def _deliver(self, message: Stored) -> None:
        model = self._model
        if message.seq >= self.next:
            self.next = message.seq + 1
        copy = self.copies.setdefault(message.seq, Copy())
        copy.count += 1
        copy.acked = not self.acks
        copy.due = model.now + self.ack_wait
        if self.acks:
            model.clock.at(copy.due, self.pump)
        self.delivered += 1
        reply = b"$JS.ACK.%s%s.%s.%d.%d.%d.%d.%d" % (
            model.domain,
            model.name,
            self.name.encode(),
            copy.count,
            message.seq,
            self.delivered,
            message.time_ns,
            self._left(),
        )
        subject = message.subject or model.subject
        model.replies[reply] = model.replies.get(reply, 0) + 1
        self.beat = model.now + self.heartbeat
        if model.lose_messages:
            model.lose_messages -= 1
            model.lost += 1
        else:
            self._send(reply, message.block, message.data, subject)
        block = message.block or b""
        self.pending += len(subject) + len(reply) + len(block) + len(message.data)
        if self.window and not self.request and self.pending > self.window // 2:
            self._ask_for_flow_control()

    def _ask_for_flow_control(self) -> None:
        model = self._model
        model.requests += 1
        name = (model.domain, model.name, self.name.encode(), model.requests)
        self.request = b"$JS.FC.%s%s.%s.%04d" % name
        self.requested = self.pending
        model.asked(self.request)
        if model.lose_requests:
            model.lose_requests -= 1
        else:
            self._send(self.request, status_block("100 FlowControl Request"), b"")

    def _start_beating(self) -> None:
        self.beating = True
        self.beat = max(self.beat, self._model.now + self.heartbeat)
        self._model.clock.at(self.beat, self._look)

    def _look(self) -> None:
        if self.gone or self._model.listener(self.target) is None:
            self.beating = False
            return
        if self._model.now >= self.beat:
            self.beat = self._model.now + self.heartbeat
            if not self._model.frozen:
                self._send(b"", status_block("100 Idle Heartbeat", header=self._news()), b"")
        self._model.clock.at(self.beat, self._look)

    def _news(self) -> str:
        last = max(self.copies, default=self.start - 1)
        text = f"Nats-Last-Consumer: {self.delivered}\r\nNats-Last-Stream: {last}\r\n"
        if self.request:
            text += f"Nats-Consumer-Stalled: {self.request.decode()}\r\n"
        return text

    # What happens to it

    def answered(self, subject: bytes) -> None:
        """Handle the answer to a flow control request."""
        if subject == self.request:
            self.window = min(2 * self.window, self._model.most_window)
            self.pending = max(0, self.pending - self.requested)
            self.request, self.requested = b"", 0
            self.pump()

    def acked(self, seq: int, data: bytes) -> None:
        """Handle an acknowledgment."""
        copy = self.copies.get(seq)
        if copy is None:
            return
        if data == b"-NAK":
            copy.due = self._model.now
        else:
            copy.acked = True
        self.pump()

    def reset(self) -> None:
        """Restart the sequence (ADR-60), and deliver everything that is not acknowledged."""
        self.delivered = 0
        for copy in self.copies.values():
            copy.due = 0.0
        self.pump()

    def forget(self, count: int) -> None:
        """A new leader knows less: the last deliveries never happened."""
        self.request, self.requested, self.pending = b"", 0, 0
        for seq in sorted(self.copies)[::-1][:count]:
            copy = self.copies[seq]
            if copy.count == 1 and seq == self.next - 1 and self.delivered:
                del self.copies[seq]
                self.next -= 1
                self.delivered -= 1
        self.pump()

    @property
    def done(self) -> bool:
        """Whether all messages are delivered and acknowledged."""
        model = self._model
        return self.next > len(model.stored) and all(each.acked for each in self.copies.values())


class PushModel:
    """The stream, its push consumers, and its leader."""

    def __init__(self, clock: Clock, name: str = "S", **config: Any) -> None:
        self.clock: Clock = clock
        self.name: bytes = name.encode()
        self.subject: bytes = config.get("subject", f"{name.lower()}.x").encode()
        self.domain: bytes = config.get("domain", "").encode()
        self.window: int = config.get("window", WINDOW)
        self.most_window: int = config.get("most_window", MOST_WINDOW)
        self.release: Release = release_of(config)
        self.stored: list[Stored] = []
        self.consumers: OrderedDict[str, PushConsumer] = OrderedDict()
        self.peers: list[Peer] = []
        self.frozen: bool = False
        self.leader: bool = True
        self.refuse: str = ""  # how creations are answered: "503", "error", "silence"
        self.late_answers: bool = False  # the first messages are faster than the answer
        self.lose_messages: int = 0
        self.lose_requests: int = 0
        self.lose_answers: int = 0
        self.lost: int = 0
        self.requests: int = 0
        self.creations: list[float] = []
        self.acks: dict[bytes, int] = {}
        self.replies: dict[bytes, int] = {}  # deliveries
        self.answers: list[tuple[float, bytes]] = []

    @property
    def now(self) -> float:
        """The simulated time."""
        return self.clock.now

    def listener(self, subject: bytes) -> Peer | None:
        """Return the subscriber to exactly that subject; a wildcard does not count."""
        for peer in self.peers:
            if peer.alive and any(sub.subject == subject for sub in peer.subs):
                return peer
        return None

    # What clients do

    def subscribed(self, peer: Peer) -> None:
        """Handle SUB."""
        self.peers = [each for each in self.peers if each.alive and each is not peer]
        self.peers.append(peer)
        self.pump()

    def published(self, peer: Peer, pub: Pub) -> None:
        """Handle a call, an acknowledgment or an answer to flow control."""
        subject = pub.raw_subject
        words = subject.split(b".")
        if subject.startswith(b"$JS.API.CONSUMER.CREATE."):
            self._create(peer, pub)
        elif subject.startswith(b"$JS.API.CONSUMER.DELETE."):
            self.delete(words[5].decode())
        elif subject.startswith(b"$JS.API.CONSUMER.INFO."):
            self._info(peer, pub, words[5].decode())
        elif subject.startswith(b"$JS.ACK."):
            self.acks[subject] = self.acks.get(subject, 0) + 1
            consumer = self.consumers.get(words[-6].decode())
            if consumer is not None and not self.frozen:
                consumer.acked(int(words[-4]), pub.data)
        elif subject.startswith(b"$JS.FC."):
            self._answered(subject, pub)
        else:
            raise AssertionError(f"no client requested {subject!r}")

    def _answered(self, subject: bytes, pub: Pub) -> None:
        assert not pub.data, "an answer is empty"
        self.answers.append((self.now, subject))
        if self.lose_answers or self.frozen:
            self.lose_answers = max(0, self.lose_answers - 1)
            return
        for consumer in list(self.consumers.values()):
            consumer.answered(subject)

    def _create(self, peer: Peer, pub: Pub) -> None:
        self.creations.append(self.now)
        if self.frozen or self.refuse == "silence":
            return
        reply = pub.raw_reply
        if self.refuse == "503" or not self.leader:
            peer.deliver(reply, reply, b"", status_block("503"), b"")
            return
        if self.refuse:
            error = {"code": 503, "err_code": 10008, "description": "temporarily unavailable"}
            peer.deliver(reply, reply, b"", None, json.dumps({"error": error}).encode())
            return
        config = json.loads(pub.data)["config"]
        consumer = self.add_consumer(config["name"], config)
        delivered = {"consumer_seq": 0, "stream_seq": consumer.start - 1}
        info = {"name": consumer.name, "config": config, "delivered": delivered}
        answer = json.dumps(info).encode()
        if self.late_answers:
            consumer.pump()
        peer.deliver(reply, reply, b"", None, answer)
        consumer.pump()

    def _info(self, peer: Peer, pub: Pub, name: str) -> None:
        if self.frozen or not self.leader:
            return
        answer: dict[str, Any] = {"name": name, "config": {}}
        if name not in self.consumers:
            answer = {"error": {"code": 404, "err_code": 10014, "description": "not found"}}
        peer.deliver(pub.raw_reply, pub.raw_reply, b"", None, json.dumps(answer).encode())

    # What the server does

    def add_consumer(self, name: str, config: dict[str, Any]) -> PushConsumer:
        """Create a consumer."""
        consumer = self.consumers[name] = PushConsumer(self, name, config)
        return consumer

    def add(self, data: bytes, block: bytes | None = None) -> Stored:
        """Store a message."""
        message = Stored(len(self.stored) + 1, data, self.release.stored_block(block))
        self.stored.append(message)
        return message

    def pump(self) -> None:
        """Deliver all messages that can be delivered."""
        for consumer in list(self.consumers.values()):
            consumer.pump()

    def asked(self, request: bytes) -> None:
        """Handle a flow control request."""

    # What happens to servers

    def delete(self, name: str) -> None:
        """Delete a consumer; its client gets no notice."""
        consumer = self.consumers.pop(name, None)
        if consumer is not None:
            consumer.gone = True

    def freeze(self) -> None:
        """It leads and does nothing."""
        self.frozen = True

    def elect(self) -> None:
        """Continue with another leader."""
        self.frozen = False
        self.leader = True
        self.pump()

    def step_down(self, statuses: list[str]) -> None:
        """Remove the leader: push consumers get no notice."""
        self.frozen = True
