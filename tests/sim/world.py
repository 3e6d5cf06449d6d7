"""A world of one client and one model server, in one thread and on a virtual clock.

The client is all of it: coroutines of the API, machines, natsproto.Connection and its bytes. The
network delays, drops the connection at any byte, and falls silent; the server elects leaders,
freezes, answers twice and late; the client itself may stall. All of it is decided by one seed.
"""

from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING, Any

from natsproto.connection import Connection
from natsproto.connection.effects import Dial
from natsproto.connection.tokens import Numbers
from natsproto.errors import NatsError
from natsproto.options import Options
from natsproto.session import Session
from tests.sim.model import Model, Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from natsproto.connection.waitable import Waitable

DATA, TIMER, TASK = 0, 1, 2
MOST_STEPS = 20_000


class Violation(AssertionError):
    """An invariant does not hold."""


class Cancelled(BaseException):
    """The exception that an event loop throws into a canceled coroutine."""


class _Suspend:
    def __await__(self) -> Any:
        yield


class Task:
    """A coroutine that is run in steps, and made at the first: its world may end before."""

    def __init__(self, world: World, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._world = world
        self._work = work
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        self._scheduled = False
        self.done = False
        self.error: NatsError | None = None
        self.wake()

    def wake(self) -> None:
        if not self._scheduled and not self.done:
            self._scheduled = True
            self._world.at(self._world.now, self._step, TASK)

    def _step(self) -> None:
        if self._world.stalled(self._step, TASK):
            return
        self._scheduled = False
        if not self.done:
            coroutine = self._coroutine = self._coroutine or self._work()
            self._advance(lambda: coroutine.send(None))

    def cancel(self) -> None:
        coroutine = self._coroutine
        if coroutine is None:
            self.done = True
        else:
            self._advance(lambda: coroutine.throw(Cancelled()))

    def _advance(self, resume: Callable[[], object]) -> None:
        if self.done:
            return
        self._world.current = self
        try:
            resume()
        except (StopIteration, Cancelled):
            self.done = True
        except NatsError as error:
            self.done = True
            self.error = error
        self._world.carry_out()


class Link:
    """One transport. Data in flight is lost when it breaks."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.peer: Peer | None = None
        self.open = False
        self.broken = False
        self.frozen_until = 0.0
        self.cut_after: int | None = None  # bytes to the client before it breaks
        self._last = [0.0, 0.0]

    def _when(self, direction: int) -> float:
        time = max(self.world.now + self.world.delay, self._last[direction], self.frozen_until)
        self._last[direction] = time
        return time

    def up(self, data: bytes) -> None:
        def arrive() -> None:
            self.world.in_flight -= 1
            if not self.broken and self.peer is not None:
                self.peer.receive(data)

        self.world.in_flight += 1
        self.world.at(self._when(0), arrive, DATA)

    def down(self, data: bytes) -> None:
        self.world.in_flight += 1
        self.world.at(self._when(1), lambda: self._arrive(data), DATA)

    def _arrive(self, data: bytes) -> None:
        world = self.world
        if world.stalled(lambda: self._arrive(data), DATA):
            return
        world.in_flight -= 1
        if self.broken or world.link is not self:
            return
        whole = self.cut_after is None or self.cut_after >= len(data)
        if whole and data.startswith((b"MSG s.x", b"HMSG s.x")):
            world.arrived += 1
        if self.cut_after is None:
            world.feed(data)
            return
        world.feed(data[: self.cut_after])
        self.cut_after -= len(data)
        if self.cut_after <= 0:
            self.cut()

    def cut(self) -> None:
        """Both ends learn of it at once."""
        if self.broken:
            return
        self.broken = True
        if self.peer is not None:
            self.peer.alive = False
        if self.world.link is self:
            self.world.link = None
            self.world.note("cut")
            self.world.connection.transport_closed(self.world.now, None)
            self.world.carry_out()


class SimPort:
    """The port of this world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        return self._world.now

    async def wait(self, waitable: Waitable) -> None:
        task = self._world.current
        assert task is not None
        waitable.waiters.append(task.wake)
        try:
            await _Suspend()
        finally:
            if task.wake in waitable.waiters:
                waitable.waiters.remove(task.wake)

    async def checkpoint(self) -> None:
        pass

    def flush_soon(self) -> None:
        self._world.carry_out()

    def ticks(self) -> float:
        return self._world.now

    def utc_ns(self) -> int:
        return int(self._world.now * 10**9)

    def run_soon(self, work: Callable[[], object]) -> None:
        def run() -> None:
            work()
            self._world.carry_out()

        self._world.at(self._world.now, run)

    def warn(self, text: str) -> None:
        # For the loop to raise: this is called by finalizers, also after the end of a world.
        self._world.abandoned = text

    async def aclose(self) -> None:
        pass


class World:
    """The simulated world and its clock. Subclasses are scenarios with their invariants."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now = 0.0
        self.steps = 0
        self.verbose = verbose
        self.trace: list[str] = []
        self.delay = self.rng.choice((0.001, 0.005, 0.02))
        self.in_flight = 0
        self.arrived = 0  # messages, whole ones
        self.silent = False  # a fault has happened that nobody told of
        self.sick = 0  # faults under way
        self.healthy_since = 0.0
        self.last_fault = 0.0
        self.stall_until = 0.0
        self.down_until = 0.0  # the server refuses connections
        self.finished = False
        self.abandoned = ""  # what was garbage-collected while in use
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._serial = 0
        self._ring_at: float | None = None
        self.link: Link | None = None
        self.current: Task | None = None
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
        self.session = Session(self.connection, SimPort(self))
        self.prefix = "$JS.API"
        self.timeout = 2.0
        self.model: Model

    # The clock

    def at(self, time: float, call: Callable[[], None], kind: int = DATA) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (time, kind, self._serial, call))

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now:9.4f} {text}")
        if self.verbose:
            print(self.trace[-1])

    def stalled(self, call: Callable[[], None], kind: int) -> bool:
        """A client that does nothing does it later: first it reads, then it looks at the time."""
        if self.now >= self.stall_until:
            return False
        self.at(self.stall_until, call, kind)
        return True

    def run(self) -> None:
        self.begin()
        self.connection.connect(self.now)
        self.carry_out()
        while self._heap and not self.finished:
            self.now, _, _, call = heapq.heappop(self._heap)
            call()
            self.check()
            if self.abandoned:
                raise Violation(self.abandoned)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Violation("it does not come to an end")
        if not self.finished:
            raise Violation("nothing happens any more")
        self.finally_check()

    # The client's adapter: the four outputs after every input

    def carry_out(self) -> None:
        connection = self.connection
        for effect in connection.take_effects():
            if isinstance(effect, Dial):
                self._dial()
            elif self.link is not None:
                self._hang_up(self.link)
        if self.link is not None and self.link.open:
            for piece in connection.data_to_send():
                self.sent(piece)
                self.link.up(piece)
        for waitable in connection.take_ready():
            waiters, waitable.waiters = waitable.waiters, []
            for wake in waiters:
                wake()
        deadline = connection.next_deadline()
        if deadline is not None and (self._ring_at is None or deadline < self._ring_at):
            self._ring_at = deadline
            self.at(max(deadline, self.now), self._ring, TIMER)

    def _ring(self) -> None:
        if self.stalled(self._ring, TIMER):
            return
        self._ring_at = None
        self.connection.handle_timer(self.now)
        self.carry_out()

    def feed(self, data: bytes) -> None:
        if self.verbose:
            self.note(f"< {data!r}")
        self.received(data)
        self.connection.receive_data(data, self.now)
        self.carry_out()

    def _dial(self) -> None:
        link = self.link = Link(self)

        def arrive() -> None:
            if self.stalled(arrive, DATA) or self.link is not link:
                return
            if self.now < self.down_until:
                self.link = None
                self.connection.transport_closed(self.now, OSError("refused"))
            else:
                link.open = True
                self.connection.transport_opened(self.now)
                link.peer = Peer(self.model, link.down)
            self.carry_out()

        self.at(self.now + 2 * self.delay, arrive, DATA)

    def _hang_up(self, link: Link) -> None:
        self.link = None
        link.broken = True
        if link.peer is not None:
            link.peer.alive = False

    # The user's code

    async def sleep(self, seconds: float) -> None:
        task = self.current
        assert task is not None
        until = self.now + seconds
        self.at(until, task.wake, TASK)
        while self.now < until:
            await _Suspend()

    # Faults

    def plan(self, faults: list[str], count: int, span: float) -> None:
        for _ in range(count):
            name = self.rng.choice(faults)
            self.at(self.rng.uniform(0.0, span), lambda name=name: self._fault(name), DATA)  # type: ignore[misc]

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
