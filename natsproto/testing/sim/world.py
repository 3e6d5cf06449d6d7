"""World: clients, a server and the network between them, in one thread and on a simulated clock.

The clients are whole: coroutines of the API, machines, natsproto.Connection and its bytes. Only the
transports, the clock and the server are simulated. Nothing depends on real time or on the order in
which an operating system schedules things, so the same seed produces the same run, byte for byte.

    clock    time, and everything that is going to happen (clock.py)
    tasks    the coroutines of the program (tasks.py)
    hosts    the clients: a connection, its driver and its port (host.py, port.py)
    links    the transports, with delays and faults (link.py)
    server   any object with `published(peer, pub)` and `subscribed(peer)` (peer.py)

The program and its clients are one process: `stall` blocks all of them, the network continues.
"""

from __future__ import annotations

from .clock import DATA, TASK, Clock
from .host import Host
from .peer import INFO
from .tasks import Suspend

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from natsproto.connection.machine import Connection

    from .port import SimPort
    from .tasks import Task

    class AtCall(Protocol):
        """Clock.at."""

        def __call__(self, time: float, call: Callable[[], object], kind: int = ...) -> None: ...


class World:
    """The simulated world and its clock. Subclasses observe it by the `on_...` methods."""

    def __init__(self, server: Any = None, delay: float = 0.001) -> None:
        self.clock: Clock = Clock()
        #: Schedule a call for a time, see Clock.at.
        self.at: AtCall = self.clock.at
        #: The server. All clients are connected to it.
        self.server: Any = server
        #: How the server introduces itself.
        self.info: bytes = INFO
        #: How long data is on its way, in one direction.
        self.delay: float = delay
        self.hosts: list[Host] = []
        #: The coroutine that runs now.
        self.current: Task | None = None
        #: Pieces of data between the ends of all transports.
        self.in_flight: int = 0
        self.stall_until: float = 0.0
        #: Until then the server refuses connections.
        self.down_until: float = 0.0
        #: What was garbage-collected while in use.
        self.abandoned: str = ""

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.clock.now

    def step(self) -> bool:
        """Do the next thing that is to happen; return False if there is none."""
        return self.clock.step()

    def add_host(
        self, connection: Connection, name: str = "A", port: SimPort | None = None
    ) -> Host:
        """Add a client."""
        host = Host(self, connection, name, port)
        self.hosts.append(host)
        return host

    def carry_out(self) -> None:
        """Carry out the effects of all connections."""
        for host in self.hosts:
            host.carry_out()

    def stalled(self, call: Callable[[], object], kind: int) -> bool:
        """Postpone a call of the program while it is blocked: first it reads, then it runs."""
        if self.now >= self.stall_until:
            return False
        self.at(self.stall_until, call, kind)
        return True

    async def sleep(self, seconds: float) -> None:
        """Wait in a coroutine of the simulation."""
        task = self.current
        assert task is not None, "only coroutines of the simulation can sleep: sim.run(...)"
        until = self.now + seconds
        self.at(until, task.wake, TASK)
        while self.now < until:
            await Suspend()

    # Faults

    def cut(self, seconds: float = 0.0) -> None:
        """Break all connections; for so many seconds the server accepts no new ones."""
        self.down_until = max(self.down_until, self.now + seconds)
        for host in self.hosts:
            if host.link is not None:
                host.link.cut()

    def silence(self, seconds: float) -> None:
        """Hold all data back, in both directions, for so many seconds."""
        for host in self.hosts:
            if host.link is not None:
                host.link.frozen_until = self.now + seconds

    def stall(self, seconds: float) -> None:
        """Block the program: for so many seconds no client reads, and no coroutine runs."""
        self.stall_until = max(self.stall_until, self.now + seconds)
        self.at(self.stall_until, self.carry_out, DATA)

    # For subclasses

    def on_sent(self, host: Host, data: bytes) -> None:
        """Observe bytes that leave a client."""

    def on_received(self, host: Host, data: bytes, whole: bool) -> None:
        """Observe bytes that reach a client; `whole`: they end with a frame."""

    def on_lost(self, host: Host) -> None:
        """Observe that a client has lost its transport."""
