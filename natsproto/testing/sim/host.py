"""Host: one client of the simulated network, with the adapter that drives its connection."""

from __future__ import annotations

from natsproto.connection.effects import Dial
from natsproto.session import Session

from .clock import DATA, TIMER
from .link import Link
from .peer import Peer
from .port import SimPort

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.machine import Connection

    from .world import World


class Host:
    """A connection and its transport. `name` tells several clients apart."""

    def __init__(
        self, world: World, connection: Connection, name: str = "A", port: SimPort | None = None
    ) -> None:
        self.world: World = world
        self.connection: Connection = connection
        self.name: str = name
        self.port: SimPort = port or SimPort(world)
        self.session: Session = Session(connection, self.port)
        self.link: Link | None = None
        self._ring_at: float | None = None

    def carry_out(self) -> None:
        """Read the four outputs of the connection and act on them."""
        connection = self.connection
        for effect in connection.take_effects():
            if isinstance(effect, Dial):
                self._dial()
            elif self.link is not None:
                self.link.lose()
                self.link = None
        if self.link is not None and self.link.open:
            for piece in connection.data_to_send():
                self.world.on_sent(self, piece)
                self.link.up(piece)
        for waitable in connection.take_ready():
            waiters, waitable.waiters = waitable.waiters, []
            for wake in waiters:
                wake()
        deadline = connection.next_deadline()
        if deadline is not None and (self._ring_at is None or deadline < self._ring_at):
            self._ring_at = deadline
            self.world.at(max(deadline, self.world.now), self._ring, TIMER)

    def _ring(self) -> None:
        if self.world.stalled(self._ring, TIMER):
            return
        self._ring_at = None
        self.connection.handle_timer(self.world.now)
        self.carry_out()

    def feed(self, data: bytes, whole: bool) -> None:
        """Pass bytes to the connection; `whole`: they end with a frame."""
        self.world.on_received(self, data, whole)
        self.connection.receive_data(data, self.world.now)
        self.carry_out()

    def lost(self) -> None:
        """Report to the connection that the transport is lost."""
        self.link = None
        self.world.on_lost(self)
        self.connection.transport_closed(self.world.now, None)
        self.carry_out()

    def _dial(self) -> None:
        world = self.world
        link = self.link = Link(self)

        def arrive() -> None:
            if world.stalled(arrive, DATA) or self.link is not link:
                return
            if world.now < world.down_until:
                self.link = None
                self.connection.transport_closed(world.now, OSError("refused"))
            else:
                link.open = True
                self.connection.transport_opened(world.now)
                link.peer = Peer(world.server, link.down, world.info)
            self.carry_out()

        world.at(world.now + 2 * world.delay, arrive, DATA)
