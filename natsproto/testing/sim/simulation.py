"""Simulation: run a program with its clients on simulated time, against a simulated server.

    with Simulation(seed=1) as sim:
        client = sim.client()
        sim.run(program(client))
        sim.advance(60.0)
        assert [step.text for step in sim.trace if step.kind == "publish"] == [...]

The coroutines of the program await only the client's API, `sim.sleep` and each other: there is no
event loop, so what needs asyncio or trio cannot run here.
"""

from __future__ import annotations

from natsproto.client import Client
from natsproto.connection import Connection
from natsproto.connection.tokens import Numbers
from natsproto.options import Options

from .rng import Rng
from .server import CoreServer
from .steps import Reader, Step, describe
from .tasks import Task
from .world import World

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from natsproto.wire.frames import Frame

    from .host import Host

    T = TypeVar("T")

#: How much simulated time `run` allows by default: a day.
LONGEST = 86_400.0
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_QUIET = ("ping", "pong", "info", "connect", "ok")


class SimulationStuck(AssertionError):
    """The program waits for something that does not happen."""


class ObjectAbandoned(AssertionError):
    """The program dropped an object, such as a subscription, without closing it."""


class Names(Numbers):
    """Tokens that count, and begin with the name of their client."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name.encode()

    def next(self) -> bytes:
        """Return the next token."""
        return self._name + super().next()


class Simulation(World):
    """A program, its clients, the network and a server, on simulated time.

    seed: chooses everything that is random; the same seed produces the same run
    delay: how long data is on its way, in seconds and in one direction
    """

    def __init__(self, seed: int = 0, *, delay: float = 0.001) -> None:
        #: The random numbers of the simulation; programs may use them, too.
        self.rng: Rng = Rng(seed)
        super().__init__(CoreServer(self.rng), delay)
        #: Everything that has happened, see `natsproto.testing.sim.steps`.
        self.trace: list[Step] = []
        self._readers: dict[str, tuple[Reader, Reader]] = {}
        self._states: list[str] = []
        self._started: list[Task] = []

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    # The program

    def client(self, **options: Any) -> Client:
        """Return a connected client; the time moves on by a few milliseconds.

        The options are those of `connect`. Inside of a coroutine, await `connect` instead.
        """
        return self.run(self.connect(**options))

    async def connect(self, **options: Any) -> Client:
        """Connect another client and return it."""
        host = self._new_host(options)
        client = Client(host.connection, host.port)
        host.connection.connect(self.now)
        await client.session.settle(host.connection.opened)
        return client

    def _new_host(self, options: dict[str, Any]) -> Host:
        name = _NAMES[len(self.hosts) % len(_NAMES)]
        number = len(self.hosts) // len(_NAMES)
        name += str(number) if number else ""
        options = dict(options)
        options.setdefault("servers", "nats://simulated:4222")
        options.setdefault("reconnect_jitter", 0.0)
        connection = Connection(Options(**options), rng=self.rng, tokens=Names(name))
        self._readers[name] = (Reader("client"), Reader("server"))
        self._states.append(connection.state)
        return self.add_host(connection, name)

    def run(self, coroutine: Coroutine[Any, Any, T], *, within: float = LONGEST) -> T:
        """Run a coroutine to its end, with everything else; return its result or raise its error.

        Raises SimulationStuck if nothing more can happen, or after `within` simulated seconds.
        """
        task = Task(self, lambda: coroutine, (Exception,))
        until = self.now + within
        while not task.done:
            time = self.clock.next_time
            if time is None or time > until:
                task.cancel()
                wait = "for ever" if time is None else "for more than %g s" % within
                raise SimulationStuck("the coroutine waits %s\n%s" % (wait, self.tail()))
            self.step()
        if task.error is not None:
            raise task.error
        result: T = task.value
        return result

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Task:
        """Run a coroutine beside the others; `await task.join()` returns its result.

        An error that no `join` waits for is raised by `run` or `advance` as soon as it happens.
        """
        task = Task(self, lambda: coroutine, (Exception,))
        self._started.append(task)
        return task

    async def gather(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run coroutines at the same time, and return their results in this order."""
        tasks = [self.start(each) for each in coroutines]
        results: list[Any] = []
        for task in tasks:
            results.append(await task.join())  # noqa: PERF401 - MicroPython cannot await in there
        return results

    def advance(self, seconds: float) -> None:
        """Let this much time pass, with everything that happens in it."""
        until = self.now + seconds
        while self.clock.next_time is not None and self.clock.next_time <= until:
            self.step()
        self.clock.now = until

    def step(self) -> bool:
        """Do the next thing that is to happen; return False if there is none."""
        happened = super().step()
        for index, host in enumerate(self.hosts):
            state = host.connection.state
            if state != self._states[index]:
                self._states[index] = state
                self.record(host.name, "connection", state)
        for task in [task for task in self._started if task.done]:
            self._started.remove(task)
            if task.error is not None and not task.joined:
                raise task.error
        if self.abandoned:
            raise ObjectAbandoned(self.abandoned)
        return happened

    def close(self) -> None:
        """Cancel the coroutines that were started, and close all clients."""
        for task in self._started:
            task.cancel()
        self._started = []
        for host in self.hosts:
            host.connection.close(self.now)
        self.carry_out()

    # The trace

    def note(self, text: str) -> None:
        """Add a line of your own to the trace."""
        self.record("", "note", text)

    def steps(self, *kinds: str) -> list[Step]:
        """Return the steps of these kinds."""
        return [step for step in self.trace if step.kind in kinds]

    def tail(self, count: int = 20) -> str:
        """Return the last steps, a line for each, without PINGs and greetings."""
        steps = [str(step) for step in self.trace if step.kind not in _QUIET]
        return "\n".join(steps[-count:])

    def record(self, client: str, kind: str, text: str, frame: Frame | None = None) -> None:
        """Append a step to the trace."""
        self.trace.append(Step(self.now, client, kind, text, frame))

    def describe(self, frame: Frame) -> tuple[str, str]:
        """Return the kind of a frame, and a text; subclasses know more about some."""
        return describe(frame)

    def on_sent(self, host: Host, data: bytes) -> None:
        """Record the frames that leave a client."""
        self._read(host, self._readers[host.name][0], data)

    def on_received(self, host: Host, data: bytes, whole: bool) -> None:
        """Record the frames that reach a client."""
        self._read(host, self._readers[host.name][1], data)

    def on_lost(self, host: Host) -> None:
        """Forget the beginnings of frames: the next transport begins with another."""
        for reader in self._readers[host.name]:
            reader.reset()

    def _read(self, host: Host, reader: Reader, data: bytes) -> None:
        for frame in reader.feed(data):
            kind, text = self.describe(frame)
            self.record(host.name, kind, text, frame)

    # Faults

    def cut(self, seconds: float = 0.0) -> None:
        """Break all connections; for so many seconds the server accepts no new ones."""
        self.record("", "fault", "cut for %g s" % seconds)
        super().cut(seconds)

    def silence(self, seconds: float) -> None:
        """Hold all data back, in both directions, for so many seconds."""
        self.record("", "fault", "silence for %g s" % seconds)
        super().silence(seconds)

    def stall(self, seconds: float) -> None:
        """Block the program: for so many seconds no client reads, and no coroutine runs."""
        self.record("", "fault", "stall for %g s" % seconds)
        super().stall(seconds)
