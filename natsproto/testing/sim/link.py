"""Link: one transport between a client and the server, with delays and faults."""

from __future__ import annotations

from .clock import DATA

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .host import Host
    from .peer import Peer

_UP, _DOWN = 0, 1


class Link:
    """One transport. Data in flight is lost when it breaks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._world = host.world
        self.peer: Peer | None = None
        self.open: bool = False
        self.broken: bool = False
        self.frozen_until: float = 0.0
        self.cut_after: int | None = None  # bytes to the client before it breaks
        self._last = [0.0, 0.0]

    def _when(self, direction: int) -> float:
        world = self._world
        time = max(world.now + world.delay, self._last[direction], self.frozen_until)
        self._last[direction] = time
        return time

    def up(self, data: bytes) -> None:
        """Send bytes to the server."""

        def arrive() -> None:
            self._world.in_flight -= 1
            if not self.broken and self.peer is not None:
                self.peer.receive(data)

        self._world.in_flight += 1
        self._world.at(self._when(_UP), arrive, DATA)

    def down(self, data: bytes) -> None:
        """Send bytes to the client."""
        self._world.in_flight += 1
        self._world.at(self._when(_DOWN), lambda: self._arrive(data), DATA)

    def _arrive(self, data: bytes) -> None:
        world = self._world
        if world.stalled(lambda: self._arrive(data), DATA):
            return
        world.in_flight -= 1
        if self.broken or self._host.link is not self:
            return
        if self.cut_after is None:
            self._host.feed(data, True)
            return
        whole = self.cut_after >= len(data)
        self._host.feed(data[: self.cut_after], whole)
        self.cut_after -= len(data)
        if self.cut_after <= 0:
            self.cut()

    def cut(self) -> None:
        """Break the transport; both ends learn of it at once."""
        if self.broken:
            return
        self.lose()
        if self._host.link is self:
            self._host.lost()

    def lose(self) -> None:
        """Break the transport at the server's end."""
        self.broken = True
        if self.peer is not None:
            self.peer.alive = False
