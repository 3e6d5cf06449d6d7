"""Publishes whose acknowledgments come late, twice or never, and are forged by a neighbor.

The neighbor has seen every reply subject of a request that is over, and makes up others: tokens
near those that it saw, shorter and longer ones. It has not seen that of an open request.

A1   an acknowledgment has the sequence at which the message is stored
A2   a forged acknowledgment is never accepted
A3   what is said not to be stored is not; nothing is stored twice
A4   never stuck: each publish ends within its time
A5   nothing is left: no open request, no subscription but the inbox
"""

from __future__ import annotations

import json
from typing import Any

from jetstream.errors import NoStreamResponse, PublishesFailed, PublishInDoubt
from jetstream.publish.window_machine import Publication
from natsproto.connection import Connection
from natsproto.errors import ConnectionLost, NatsError, PendingBufferFull, TimeoutExpired
from natsproto.testing.sim.peer import Peer
from tests.sim.served import NETWORK, Served
from tests.sim.world import Task, require

FORGED = 1_000_000
FAULTS = [*NETWORK, "election", "kill"]


class Forged(Served):
    """publish() by several tasks at once, and a window."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        super().__init__(seed, verbose)
        # Tokens that count would be guessed at once: these are the real ones.
        self.connection = Connection(self.connection.options, rng=self.rng)
        self.hosts = []
        self.host = self.add_host(self.connection)
        self.session = self.host.session

    def begin(self) -> None:
        rng = self.rng
        self.serve()
        self.service.create({"name": "S", "subjects": ["s.x"]})
        self.replies: list[bytes] = []  # of all publishes that the server has received
        self.late = rng.random() < 0.6
        self._wrap_server()
        self.count = rng.randrange(1, 9)
        self.ids = rng.random() < 0.5
        self.results: dict[int, Any] = {}
        self.begun: dict[int, float] = {}
        self.tasks = [Task(self, self._worker(number)) for number in range(rng.randrange(1, 4))]
        self.tasks.append(Task(self, self._window))
        for _ in range(rng.randrange(1, 20)):
            self.at_best(rng.uniform(0.0, 4.0), self._forge)
        self.plan(FAULTS, rng.randrange(4), 3.0)

    # The server, and the neighbor

    def _wrap_server(self) -> None:
        """Answers to publishes may be late, or come twice."""
        deliver = Peer.deliver

        def later(peer: Peer, interest: bytes, subject: bytes, *rest: Any) -> None:
            delay = self.rng.choice((0.0, 0.0, 0.3, 1.2, 3.0)) if self.late else 0.0
            times = self.rng.choice((1, 1, 2)) if self.late else 1
            for number in range(times):
                self.at(
                    self.now + delay + 0.1 * number,
                    lambda: deliver(peer, interest, subject, *rest),
                )

        published = self.server.published

        def watch(peer: Peer, pub: Any) -> None:
            if pub.raw_subject == b"s.x" and pub.raw_reply:
                self.replies.append(pub.raw_reply)
                peer.deliver = lambda *message: later(peer, *message)  # type: ignore[method-assign]
                published(peer, pub)
                del peer.deliver  # type: ignore[method-assign]
            else:
                published(peer, pub)

        self.server.published = watch

    def _forge(self) -> None:
        """Answer requests that are over, and ones that do not exist."""
        peers = self.server.peers
        over = [each for each in self.replies if not self._is_open(each)]
        if not over or not peers:
            return
        seen = self.rng.choice(over)
        inbox, _, token = seen.rpartition(b".")
        guess = (int(token, 16) + self.rng.choice((-1, 1))) % (1 << 64) if token else 0
        guesses = [seen, inbox + b".%016X" % guess, inbox + b"." + token[:-1]]
        guesses += [inbox + b".%d" % self.rng.randrange(100), inbox + b"." + token + b"0"]
        forged = json.dumps({"stream": "S", "seq": FORGED}).encode()
        for reply in guesses:
            if not self._is_open(reply):
                for peer in peers:
                    peer.deliver(reply, reply, b"", None, forged)

    # The program

    def _worker(self, number: int) -> Any:
        async def work() -> None:
            for index in range(self.count):
                await self._publish(number * 100 + index)
                await self.sleep(self.rng.choice((0.0, 0.05, 0.5)))

        return work

    async def _publish(self, number: int) -> None:
        options: Any = {"msg_id": f"id{number}"} if self.ids else {}
        self.begun[number] = self.now
        try:
            ack = await self.js.publish("s.x", b"%d" % number, timeout=1.0, **options)
            self.results[number] = ack.seq
        except NatsError as error:
            self.results[number] = error
        del self.begun[number]

    def _is_open(self, reply: bytes) -> bool:
        """Return whether the client waits for an answer to this subject."""
        inbox, _, token = reply.rpartition(b".")
        requests = self.connection.requests.inbox
        if requests is not None and requests.prefix == inbox + b".":
            return token in requests.open
        return self.window is not None and token in self.window._machine.open

    window: Any = None

    async def _window(self) -> None:
        made: list[tuple[int, Publication]] = []
        self.window = window = self.js.publisher(max_pending=5, ack_timeout=1.0)
        for index in range(self.count):
            number = 10_000 + index
            options: Any = {"msg_id": f"id{number}"} if self.ids else {}
            while True:
                try:
                    publication = await window.publish("s.x", b"%d" % number, **options)
                    made.append((number, publication))
                except PublishesFailed:
                    continue
                except PendingBufferFull:
                    pass
                break
        try:
            await window.close()
        except PublishesFailed:
            pass
        for number, publication in made:
            require(publication.done, "A4: a publish of the window is not settled")
            ack = publication.ack
            self.results[number] = publication.error if ack is None else ack.seq

    # What must hold

    def check(self) -> None:
        for number, begun in self.begun.items():
            # Three tries of a second, and the pauses between them.
            longest = max(begun, self.stall_until) + 5.0
            require(self.now <= longest, f"A4: publish {number} does not end")
        limit = self.last_fault + 60.0 + self.count * 10.0
        require(self.now < limit, "A4: it does not end")
        if all(task.done for task in self.tasks) and not self.finished:
            for task in self.tasks:
                require(task.error is None, lambda: f"A4: {task.error!r}")  # noqa: B023
            self.finished = True

    def finally_check(self) -> None:
        messages = self.service.assets["S"].stream.messages
        stored = [int(each.data) for each in messages]
        for number, result in self.results.items():
            require(stored.count(number) <= 1, f"A3: {number} is stored twice")
            if isinstance(result, int):
                require(result != FORGED, f"A2: {number} has a forged acknowledgment")
                require(stored[result - 1] == number, f"A1: {number} is not at {result}")
            elif isinstance(result, NoStreamResponse):
                require(number not in stored, f"A3: {number} is stored, and was said not to be")
            else:
                known = (TimeoutExpired, ConnectionLost, PublishInDoubt, PendingBufferFull)
                require(isinstance(result, known), f"A4: {result!r}")
        requests = self.connection.requests.inbox
        require(requests is None or not requests.open, "A5: open requests are left")
