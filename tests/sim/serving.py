"""A service that is stopped in the middle of requests and faults; its invariants.

S1   each request that arrives is answered once: by its handler, or with 503 if the service ended
     without it. Answers that a lost connection took with it were given, too
S2   a service that was stopped, and was not aborted, answers no request with 503
S3   after the end nothing is left: no subscription on the server, no request, no deadline
S4   no endpoint handles more requests at once than its concurrency, and no request waits while one
     of its workers is free
S5   never stuck: when the faults are over, `stop`, `run`, `stopped` and the end of the block return
S6   PING is answered while the service is subscribed, however busy the handlers are
S7   num_requests counts the requests, num_errors those that failed or were refused
S8   while the service runs and the server is well, everything is subscribed
S9   `run` raises the error that ended the service, and nothing else
I12 as in scenarios.py
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jetstream.errors import ServiceError
from jetstream.services.service import add_service
from natsproto.client import Client
from natsproto.errors import NatsError, PermissionDenied
from tests.sim.scenarios import require
from tests.sim.world import Task, World

if TYPE_CHECKING:
    from natsproto.testing.sim.peer import Peer
    from natsproto.wire.frames import Pub

FAULTS = ["cut", "cut", "silence", "hole", "stall"]
ENDS = ["stop", "stop", "exit", "fail", "cancel", "deny", "handler"]
REQUEST = re.compile(rb"MSG (e\.\d|\$SRV\.PING) \d+ r\.(\d+) 0\r\n\r\n")
ANSWER = re.compile(rb"H?PUB r\.(\d+) ")
REFUSAL = re.compile(rb"HPUB r\.(\d+) \d+ \d+\r\nNATS/1\.0\r\nNats-Service-Error: service stopped")
MONITORS = 9
LINGER = 1.0


class ServiceModel:
    """A server without memory: it passes requests on to whoever is subscribed."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self._denied: tuple[bytes, bytes] | None = None

    def subscribed(self, peer: Peer) -> None:
        self.peer = peer
        self._deny()

    def published(self, peer: Peer, pub: Pub) -> None:
        pass

    def request(self, subject: bytes, number: int) -> None:
        if self.peer is not None:
            self.peer.deliver(subject, subject, b"r.%d" % number, None, b"")

    def deny(self, subject: bytes, queue: bytes) -> None:
        """Take a permission back, as a reloaded server does, and refuse it from now on."""
        self._denied = (subject, queue)
        self._deny()

    def _deny(self) -> None:
        if self._denied is None or self.peer is None or not self.peer.alive:
            return
        subject, queue = self._denied
        sub = self.peer.find(subject)
        if sub is not None:
            self.peer.drop(sub)
            group = f' using queue "{queue.decode()}"' if queue else ""
            name = subject.decode()
            self.peer.refuse(f'Permissions Violation for Subscription to "{name}"{group}')


class Serving(World):
    """One service, its requests, and one of several ends."""

    def begin(self) -> None:
        rng = self.rng
        self.model = ServiceModel()  # type: ignore[assignment]
        self.arrived_requests: dict[int, bytes] = {}
        self.answers: dict[int, int] = {}
        self.refused: set[int] = set()
        self.failed = 0
        self.at_once = [0, 0, 0]
        self.concurrency = [rng.choice((1, 1, 2, 3)) for _ in range(rng.randrange(1, 4))]
        self.handling = rng.choice((0.0, 0.01, 0.3))
        self.end = rng.choice(ENDS)
        self.denied = False
        self.started = False
        self.ended_at: float | None = None
        self.well_since = 0.0
        self.free_since: dict[str, float] = {}
        self.numbers = 0
        self.client = Client(self.connection, self.host.port)
        self.service = add_service(
            self.client,
            name="s",
            version="1.0.0",
            drain_timeout=1000.0,
            stats_data=(lambda endpoint: 1) if rng.random() < 0.3 else None,
        )
        for number, concurrency in enumerate(self.concurrency):
            self._add(number, concurrency)
        self.loop = rng.random() < 0.3
        if self.loop:
            self.service.add_endpoint("loop", subject=f"e.{len(self.concurrency)}")
        for _ in range(rng.randrange(1, 15)):
            self.at(rng.choice((0.5, rng.uniform(0.0, 3.0))), self._request)
        self.plan(FAULTS, rng.randrange(3), 3.0)
        self.running = Task(self, self._run)
        self.looping = Task(self, self._loop) if self.loop else None
        self.ending: Task | None = None
        self.at(rng.uniform(0.2, 3.0), self._end)

    def _add(self, number: int, concurrency: int) -> None:
        async def handle(request: Any) -> bytes:
            self.at_once[number] += 1
            require(self.at_once[number] <= concurrency, "S4: too many requests at once")
            try:
                if self.handling:
                    await self.sleep(self.handling)
            finally:
                self.at_once[number] -= 1
            if self.rng.random() < 0.1:
                self.failed += 1
                raise ServiceError(400, "bad") if self.rng.random() < 0.5 else ValueError("bad")
            if self.end == "handler" and self.ended_at is not None and self.rng.random() < 0.5:
                await self.service.stop(timeout=1000.0)
            return b""

        self.service.add_endpoint(
            f"e{number}", handle, subject=f"e.{number}", concurrency=concurrency
        )

    # The user's code

    async def _run(self) -> None:
        await self.service.start(1000.0)
        self.started = True
        try:
            await self.service.run()
        except PermissionDenied:
            require(self.denied, "S9: no subscription was denied")
            return
        require(not self.denied or self.service.error is None, "S9: the error was not raised")

    async def _loop(self) -> None:
        while self.service.state == "NEW":
            await self.sleep(0.05)
        [endpoint] = [each for each in self.service.endpoints if each.handler is None]
        async for request in endpoint:
            if self.handling:
                await self.sleep(self.handling)
            if not request.answered:
                await request.respond(b"")

    def _end(self) -> None:
        if self.service.state == "NEW":
            self.at(self.now + 0.1, self._end)
            return
        self.note("end: " + self.end)
        self.ended_at = self.now
        if self.end == "deny":
            subject = self.rng.choice((b"$SRV.PING", b"$SRV.STATS.s", b"e.0"))
            self.model.deny(subject, b"q" if subject == b"e.0" else b"")  # type: ignore[attr-defined]
            self.denied = True
        if self.end == "cancel":
            self.running.cancel()
        self.ending = Task(self, self._finish)

    async def _finish(self) -> None:
        service = self.service
        if self.end in ("stop", "handler"):
            await service.stop(timeout=1000.0)
            if self.rng.random() < 0.3:
                await service.stop(timeout=1000.0)
        elif self.end == "exit":
            await service.__aexit__(None, None, None)
            require(service.state == "STOPPED", "S5: the block ended before the service")
        elif self.end != "deny":
            await service.__aexit__(ValueError, None, None)
        await service.stopped()

    # The requests

    def _request(self) -> None:
        self.numbers += 1
        number = self.rng.randrange(len(self.concurrency) + (2 if self.loop else 1))
        subject = b"e.%d" % number
        if number == len(self.concurrency) + (1 if self.loop else 0):
            subject = b"$SRV.PING"
        self.model.request(subject, self.numbers)  # type: ignore[attr-defined]

    def received(self, data: bytes) -> None:
        for subject, number in REQUEST.findall(data):
            self.arrived_requests[int(number)] = subject

    def sent(self, data: bytes) -> None:
        for number in ANSWER.findall(data):
            self.answers[int(number)] = self.answers.get(int(number), 0) + 1
        self.refused |= {int(number) for number in REFUSAL.findall(data)}

    # The invariants

    @property
    def over(self) -> bool:
        tasks = [self.running, self.looping, self.ending]
        return (
            self.ending is not None
            and all(task is None or task.done for task in tasks)
            and self.service.state == "STOPPED"
        )

    def check(self) -> None:
        # A hole keeps data in flight for ever; that of others arrives within LINGER.
        well = not self.sick and self.connection.online
        if not (self.over and well):
            self.well_since = self.now
        elif self.now > max(self.last_fault, self.well_since) + LINGER:
            self.finished = True
            return
        # S5: a hole is found by PINGs, which takes up to 6 seconds.
        work = 0.5 + self.handling * (2 + self.numbers)
        limit = max(self.last_fault + 8.0, self.ended_at or 0.0, 3.0) + 3.0 + work
        require(self.now <= limit, lambda: f"S5: stuck in {self.service.state}")
        peer = self.model.peer  # type: ignore[attr-defined]
        if self.service.state == "RUNNING" and peer is not None and peer.alive and self.started:
            wanted = MONITORS + len(self.service.endpoints)
            settled = self.now > self.last_fault + LINGER and not self.sick
            require(
                self.denied or not settled or len(peer.subs) == wanted,
                "S8: not everything is subscribed",
            )
        machine = self.service.hub.machine
        done = not machine.receivers() and not machine.unfinished
        require(done or self.service.state != "STOPPED", "S3: stopped too early")
        if self.started and not self.running.done:
            self._check_workers()

    def _check_workers(self) -> None:
        for endpoint in self.service.endpoints:
            free = endpoint.in_progress < endpoint.concurrency and endpoint.pending
            if endpoint.handler is None or not free or self.now < self.stall_until:
                self.free_since.pop(endpoint.name, None)
                continue
            since = self.free_since.setdefault(endpoint.name, self.now)
            require(self.now <= since, "S4: a request waits while a worker is free")

    def finally_check(self) -> None:
        machine = self.service.hub.machine
        for number, subject in self.arrived_requests.items():
            gone = subject == b"$SRV.PING" and self.end == "deny"  # unsubscribed without a fence
            answers = self.answers.get(number, 0)
            require(
                answers == 1 or (gone and not answers),
                f"S1: {answers} answers to request {number} to {subject!r}",
            )
        unknown = set(self.answers) - set(self.arrived_requests)
        require(not unknown, f"S1: answers to {unknown}, which did not arrive")
        if self.end in ("stop", "handler", "deny"):
            require(not self.refused, f"S2: {self.refused} were refused")
        require(machine.unfinished == 0, "S3: requests are left")
        peer = self.model.peer  # type: ignore[attr-defined]
        left = peer is not None and peer.alive and peer.subs
        require(not left, f"S3: {left} are left")
        counters = [queue.counters for queue in machine.queues]
        requests = [each for each in self.arrived_requests.values() if each != b"$SRV.PING"]
        require(sum(each.num_requests for each in counters) == len(requests), "S7: num_requests")
        errors = self.failed + len(self.refused)
        require(sum(each.num_errors for each in counters) == errors, "S7: num_errors")
        events = machine.events.items
        require(type(events[-1]).__name__ == "ServiceStopped", "S9: no last event")
        require(events[-1].error is self.service.error, "S9: another error")  # type: ignore[attr-defined]
        error = self.running.error
        require(error is None or isinstance(error, NatsError), "I12")
