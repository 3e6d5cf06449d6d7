"""A world of one client and one model server, for random scenarios.

The clock, the network and the client are those of natsproto.testing.sim. This adds what the modes
share: the faults, decided by one seed, and a loop that checks the invariants after every step.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

from jetstream.testing.sim.releases import NEWEST
from natsproto.connection import Connection
from natsproto.connection.tokens import Numbers
from natsproto.errors import NatsError
from natsproto.options import Options
from natsproto.testing.sim import tasks, world
from natsproto.testing.sim.clock import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jetstream.testing.sim.pull_model import Model
    from jetstream.testing.sim.releases import Release
    from natsproto.testing.sim.host import Host
    from natsproto.testing.sim.link import Link

MOST_STEPS = 20_000
STORED = (b"MSG s.x", b"HMSG s.x")  # what messages of the stream begin with
BLOCKS = [  # headers of messages that look like those of statuses
    None,
    b"NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
    b"NATS/1.0\r\nNats-Pin-Id: 7VYBCKhjZNPReeeRtnh3D7\r\n\r\n",
]
STATUS_BLOCKS = [  # those that older servers pass on; newer ones remove their status lines
    b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
    b"NATS/1.0 404 No Messages\r\n\r\n",
    b"NATS/1.0 408 Request Timeout\r\n\r\n",
    b"NATS/1.0 409 Consumer Deleted\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
]


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, what: str | Callable[[], str]) -> None:
    """Raise Violation unless an invariant holds."""
    if not holds:
        raise Violation(what if isinstance(what, str) else what())


class Task(tasks.Task):
    """A coroutine of the scenario; an exception that is not a NatsError ends the run."""

    def __init__(self, world: World, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(world, work, (NatsError,))


class World(world.World):
    """The simulated world and its clock. Subclasses are scenarios with their invariants."""

    release: Release = NEWEST  # of the server; modes.py has scenarios with older ones

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        super().__init__(delay=self.rng.choice((0.001, 0.005, 0.02)))
        self.steps = 0
        self.verbose = verbose
        self.trace: list[str] = []
        self.arrived = 0  # messages, whole ones
        self.silent = False  # a fault has happened that nobody told of
        self.sick = 0  # faults under way
        self.healthy_since = 0.0
        self.last_fault = 0.0
        self.finished = False
        self.optional = 0  # steps that the scenario can do without
        self.skipped: set[int] = set()  # those that are left out
        options = Options(
            servers="nats://a:4222",
            shuffle=False,
            reconnect_wait=0.1,
            reconnect_jitter=0.0,
            ping_interval=2.0,
            connect_timeout=1.0,
            max_reconnects=-1,
            retry_on_first_connect=True,
        )
        # With random tokens a seed would mean something else.
        self.connection = Connection(options, rng=self.rng, tokens=Numbers())
        self.host = self.add_host(self.connection)
        self.session = self.host.session
        if self.release is not NEWEST:
            self.info = self.release.info()
        self.prefix = "$JS.API"
        self.timeout = 2.0

    @property
    def blocks(self) -> list[bytes | None]:
        """The headers that messages of others may have."""
        return BLOCKS + (STATUS_BLOCKS if self.release.keeps_status_lines else [])

    @property
    def model(self) -> Model:
        model: Model = self.server
        return model

    @model.setter
    def model(self, model: Model) -> None:
        self.server = model

    @property
    def link(self) -> Link | None:
        return self.host.link

    @link.setter
    def link(self, link: Link | None) -> None:
        self.host.link = link

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now:9.4f} {text}")
        if self.verbose:
            print(self.trace[-1])

    def run(self) -> None:
        self.begin()
        self.connection.connect(self.now)
        self.carry_out()
        while not self.finished and self.step():
            self.check()
            if self.abandoned:
                raise Violation(self.abandoned)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Violation("it does not come to an end")
        if not self.finished:
            raise Violation("nothing happens any more")
        self.finally_check()

    def on_sent(self, host: Host, data: bytes) -> None:
        if self.verbose:
            self.note(f"> {data!r}")
        self.sent(data)

    def on_received(self, host: Host, data: bytes, whole: bool) -> None:
        if whole and data.startswith(STORED):
            self.arrived += 1
        if self.verbose:
            self.note(f"< {data!r}")
        self.received(data)

    def on_lost(self, host: Host) -> None:
        self.note("cut")

    # Faults

    def plan(self, faults: list[str], count: int, span: float) -> None:
        """Let so many of the faults happen, at random times."""
        for _ in range(count):
            name = self.rng.choice(faults)
            self.at_best(self.rng.uniform(0.0, span), partial(self._fault, name))

    def at_best(self, time: float, call: Callable[[], object]) -> None:
        """Schedule a step that a smaller run can do without: see runs.py."""
        number = self.optional
        self.optional += 1
        self.at(time, lambda: None if number in self.skipped else call())

    def _fault(self, name: str) -> None:
        if self.finished:
            return
        self.note(f"fault: {name}")
        self.last_fault = self.now
        getattr(self, "fault_" + name)(self.rng.choice((0.05, 0.3, 1.0, 2.5)))

    def _sick(self, seconds: float, recover: Callable[[], None]) -> None:
        self.sick += 1

        def well() -> None:
            recover()
            self.sick -= 1
            self.last_fault = self.healthy_since = self.now
            self.note("well again")

        self.at(self.now + seconds, well, DATA)

    def fault_cut(self, seconds: float) -> None:
        """Break the connection after some byte; the server is away for a while."""
        self.down_until = self.now + seconds
        link = self.link
        if link is not None:
            link.cut_after = self.rng.randrange(150)
            self.at(self.now + 0.5, link.cut, DATA)
        self._sick(seconds + 0.5, lambda: None)

    def fault_silence(self, seconds: float) -> None:
        """Delay all data in both directions."""
        self.silent = True
        if self.link is not None:
            self.link.frozen_until = self.now + seconds
        self._sick(seconds, lambda: None)

    def fault_hole(self, seconds: float) -> None:
        """Drop all data from now on; only PINGs reveal it."""
        self.silent = True
        if self.link is not None:
            self.link.frozen_until = self.now + 1000.0
        self._sick(7.0, lambda: None)

    def fault_election(self, seconds: float) -> None:
        if self.model.leader and not self.model.frozen:
            self.model.step_down(["409 Leadership Change"])
            self._sick(seconds, self._elect)

    def fault_shutdown(self, seconds: float) -> None:
        """Two answers to one pull."""
        if self.model.leader and not self.model.frozen:
            ended = list(self.model.waiting)
            self.model.step_down(["409 Server Shutdown"])

            def again() -> None:
                for request in ended:
                    self.model._end(request, "409 Leadership Change")

            self.at(self.now + 0.07, again, DATA)
            self._sick(seconds, self._elect)

    def fault_kill(self, seconds: float) -> None:
        """Silence the leader; it answers late, when there is another one."""
        if self.model.leader and not self.model.frozen:
            self.silent = True
            self.model.freeze()
            self._sick(seconds, self.model.elect)

    def fault_crowd(self, seconds: float) -> None:
        """Others fill the queue: with heartbeats the server does not even refuse."""
        if self.model.max_waiting > 100:
            self.silent = True
            before = self.model.max_waiting
            self.model.max_waiting = 0

            def leave() -> None:
                self.model.max_waiting = before

            self._sick(seconds, leave)

    def fault_lost_pull(self, seconds: float) -> None:
        """A pull vanishes without a word."""
        self.silent = True
        if self.model.waiting:
            self.model.waiting.pop(0)
        self._sick(0.0, lambda: None)

    def fault_stall(self, seconds: float) -> None:
        """Block the user's code for a while, so that nothing is read."""
        if self.now >= self.stall_until:
            self.stall_until = self.now + seconds
            self._sick(seconds, lambda: None)

    def _elect(self) -> None:
        self.model.leader = True
        self.model.pump()

    # What scenarios add

    def begin(self) -> None:
        raise NotImplementedError

    def sent(self, data: bytes) -> None:
        """Bytes leave the client."""

    def received(self, data: bytes) -> None:
        """Bytes reach the client."""

    def check(self) -> None:
        """After every step."""

    def finally_check(self) -> None:
        """After the last one."""
