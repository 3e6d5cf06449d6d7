"""Health: the state of a client at one moment, for health endpoints and people."""

from __future__ import annotations

from .connection.states import CONNECTED
from .wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .connection.machine import Connection


class Health(Record):
    """The result of `client.health()`, which does no I/O (D-HEALTH-1).

    state           as `client.state`: CONNECTED, WAITING between two attempts, CLOSED, ...
    server          the server of the last connection; "": none yet
    rtt             the seconds that `client.rtt()` measured last; None: never
    pong_age        seconds since the server answered a PING, which is at most twice `ping_interval`
                    while the connection works; None: never
    reconnects      connections after the first one
    pending_bytes   bytes that wait to be sent
    slow_consumers  subscriptions that have dropped messages because they were not taken in time
    dropped         the number of dropped messages of all subscriptions, since the start
    reason          why the client is closed for good; "" if it is not
    """

    __slots__ = (
        "dropped",
        "pending_bytes",
        "pong_age",
        "reason",
        "reconnects",
        "rtt",
        "server",
        "slow_consumers",
        "state",
    )

    def __init__(self, connection: Connection, rtt: float | None, now: float) -> None:
        server = connection.pool.current
        pong = connection.pings.last_pong
        self.state: str = connection.state
        self.server: str = "" if server is None else str(server.url)
        self.rtt: float | None = rtt
        self.pong_age: float | None = None if pong is None else now - pong
        self.reconnects: int = connection.stats.reconnects
        self.pending_bytes: int = connection.outbound.pending_bytes
        self.slow_consumers: int = len(connection.subscriptions.slow)
        self.dropped: int = connection.stats.dropped
        self.reason: str = connection.closed

    @property
    def connected(self) -> bool:
        """Whether the client is connected now."""
        return self.state == CONNECTED
