"""A model of a server with one stream and in-memory consumers that are created and deleted.

Each of them is a Model (model.py) that reads the stream by itself; what is new is the API, and that
a server which stops takes its consumers with it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.testing.sim.pull_model import Model, Request, Stored, error
from jetstream.testing.sim.releases import NEWEST
from natsproto.testing.sim.peer import Peer, status_block

if TYPE_CHECKING:
    from jetstream.testing.sim.pull_model import Clock
    from jetstream.testing.sim.releases import Release
    from natsproto.wire.frames import Pub


class Ephemeral(Model):
    """A consumer without acknowledgements."""

    def __init__(self, clock: Clock, server: Server, name: str, start: int) -> None:
        super().__init__(
            clock, "S", max_waiting=server.max_waiting, ack_wait=1e9, release=server.release
        )
        self._server = server
        self.name = name
        self._ack = f"$JS.ACK.S.{name}.".encode()
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.S.{name}".encode()
        self.start = start
        self.place = start
        self.created = clock.now

    def _ack_pending(self) -> int:
        return 0

    def _deliverable(self) -> Stored | None:
        log = self._server.log
        if self.place > len(log):
            return None
        data, block = log[self.place - 1]
        return Stored(self.place, data, block)

    def _left_behind(self, message: Stored) -> int:
        return len(self._server.log) - message.seq

    def _serve(self, request: Request, message: Stored) -> None:
        if request.peer is not None and self._server.loses_next:
            # Between two servers: the consumer has delivered it, and nobody gets it.
            self._server.loses_next = False
            peer, request.peer = request.peer, None
            super()._serve(request, message)
            request.peer = peer
        else:
            super()._serve(request, message)
        if message.count:
            self.stored.append(message)
            self.place += 1

    def count_anew(self) -> None:
        """Its server was restarted in a cluster, which remembers the consumer, not its state."""
        self.delivered = 0
        self.place = self.start
        self.waiting = []


class Server:
    """The stream, its consumers, and the API."""

    def __init__(self, clock: Clock, release: Release = NEWEST) -> None:
        self._clock = clock
        self.release = release
        self.log: list[tuple[bytes, bytes | None]] = []
        self.consumers: dict[str, Ephemeral] = {}
        self.max_waiting = 512
        self.api = "there"  # or: absent (503), silent, busy (an error), slow
        self.stream_there = True
        self.created: float | None = None  # when the stream was; None: this server does not say
        self.loses_next = False
        self.creations: list[float] = []
        self.starts: dict[str, int] = {}  # of all consumers there ever were
        self.lives: dict[str, int] = {}  # of the stream, likewise
        self.life = 0
        self.pulls: list[Request] = []
        self.swallowed = 0

    def add(self, data: bytes, block: bytes | None = None) -> None:
        self.log.append((data, self.release.stored_block(block)))
        self.pump()

    def pump(self) -> None:
        for consumer in list(self.consumers.values()):
            consumer.pump()

    # What clients do

    def subscribed(self, peer: Peer) -> None:
        """Look for interest when there is something to deliver."""

    def published(self, peer: Peer, pub: Pub) -> None:
        words = pub.subject.split(".")
        assert words[:2] == ["$JS", "API"], pub.subject
        if words[3] == "MSG":
            self._pull(peer, pub, words[6])
        elif self.api == "absent":
            header = f"Nats-Subject: {pub.subject}\r\n"
            peer.deliver(pub.raw_reply, pub.raw_reply, b"", status_block("503", header=header), b"")
        elif self.api != "silent":
            delay = 3.0 if self.api == "slow" else 0.0
            calls = {"CREATE": self._create, "DELETE": self._delete, "INFO": self._info}
            call = self._stream_info if words[2] == "STREAM" else calls[words[3]]
            self._clock.at(self._clock.now + delay, lambda: call(peer, pub, words[-1]))

    def _pull(self, peer: Peer, pub: Pub, name: str) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            request = Request(peer, pub.raw_reply, json.loads(pub.data), self._clock.now)
            self.pulls.append(request)
            if not self.release.answers_absent:
                self.swallowed += 1
                return
            header = f"Nats-Subject: {pub.subject}\r\n"
            block = status_block("503", header=header)
            peer.deliver(pub.raw_reply, pub.raw_reply, b"", block, b"")
            return
        consumer.pull(peer, pub.raw_reply, pub.data)
        self.pulls.append(consumer.pulls[-1])
        self.swallowed += consumer.swallowed
        consumer.swallowed = 0

    def _create(self, peer: Peer, pub: Pub, name: str) -> None:
        self.creations.append(self._clock.now)
        if self.api == "busy":
            self._answer(peer, pub, error(503, 10008, "system temporarily unavailable"))
        elif not self.stream_there:
            self._answer(peer, pub, error(404, 10059, "stream not found"))
        else:
            start = self._start(json.loads(pub.data)["config"])
            if name not in self.consumers:
                self.consumers[name] = Ephemeral(self._clock, self, name, start)
                self.starts[name] = start
                self.lives[name] = self.life
            self._describe(peer, pub, self.consumers[name])

    def _info(self, peer: Peer, pub: Pub, name: str) -> None:
        if name in self.consumers:
            self._describe(peer, pub, self.consumers[name])
        else:
            self._answer(peer, pub, error(404, 10014, "consumer not found"))

    def _stream_info(self, peer: Peer, pub: Pub, name: str) -> None:
        if self.stream_there:
            self._answer(peer, pub, {"config": {}, "created": stamp(self.created or 0.0)})
        else:
            self._answer(peer, pub, error(404, 10059, "stream not found"))

    def _describe(self, peer: Peer, pub: Pub, consumer: Ephemeral) -> None:
        place = {"consumer_seq": consumer.delivered, "stream_seq": consumer.place - 1}
        answer: dict[str, Any] = {"name": consumer.name, "config": {}, "delivered": place}
        if self.created is not None:
            answer["created"] = stamp(consumer.created)
        self._answer(peer, pub, answer)

    def _start(self, config: dict[str, Any]) -> int:
        last = len(self.log)
        policy = config.get("deliver_policy", "all")
        if policy == "by_start_sequence":
            start: int = config["opt_start_seq"]
            return min(start, last + 1) if self.release.moves_start else start
        return {"all": 1, "new": last + 1, "last": max(last, 1)}[policy]

    def _delete(self, peer: Peer, pub: Pub, name: str) -> None:
        if name in self.consumers:
            self.delete(name)
            self._answer(peer, pub, {"success": True})
        else:
            self._answer(peer, pub, error(404, 10014, "consumer not found"))

    def _answer(self, peer: Peer, pub: Pub, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        peer.deliver(pub.raw_reply, pub.raw_reply, b"", None, data)

    # What happens to servers

    def delete(self, name: str, line: str = "409 Consumer Deleted") -> None:
        """Delete the consumer; its pulls get this status line, unless it is empty."""
        consumer = self.consumers.pop(name)
        consumer.step_down([line] if line else [])

    def recreate(self, line: str) -> None:
        """The stream is deleted and created again; the pulls of its consumers end like that."""
        for consumer in self.each():
            self.delete(consumer.name, line)
        self.log = []
        self.life += 1
        self.created = self._clock.now

    def each(self) -> list[Ephemeral]:
        return list(self.consumers.values())


def stamp(now: float) -> str:
    """That time of the simulation, as servers write it."""
    return "2026-01-01T00:%02d:%09.6fZ" % divmod(now, 60.0)
