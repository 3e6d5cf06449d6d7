"""Session: a connection and the port that applies its effects, as the API uses them together."""

from __future__ import annotations

from .connection.waitable import Alarm, Waitable
from .durations import check_patience, check_seconds
from .errors import ConnectionClosed, InvalidValue, NatsError, TimeoutExpired
from .wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .connection.machine import Connection
    from .connection.receiver import Mailbox, Receiver
    from .connection.waitable import Request
    from .durations import Seconds
    from .port import Port
    from .wire.frames import Msg


class Session:
    """A connection and its port, shared by Client, Subscription and JetStream."""

    __slots__ = ("connection", "port")

    def __init__(self, connection: Connection, port: Port) -> None:
        self.connection: Connection = connection
        self.port: Port = port

    def deadline(self, timeout: Seconds) -> float:
        """Return the time that is `timeout` seconds from now; 0: do not wait for anything."""
        return self.port.now() + check_seconds("timeout", timeout)

    def answer_deadline(self, timeout: Seconds) -> float:
        """Return the same for a call that needs a response; raise InvalidValue if that is now."""
        return self.port.now() + check_patience("timeout", timeout)

    def attach(self, machine: Receiver, subject: str) -> None:
        """Subscribe a machine and start it."""
        self.connection.subscribe(subject, machine)
        self.begin(machine)

    def begin(self, machine: Receiver) -> None:
        """Start a machine that is already subscribed; if connected, notify it immediately."""
        if self.connection.online:
            machine.connected(self.port.now())
            self.connection.apply(machine)
        self.port.flush_soon()

    def poke(self, machine: Receiver) -> None:
        """Apply and send the effects of a machine that was just called."""
        self.connection.apply(machine)
        self.port.flush_soon()

    def take(self, mailbox: Mailbox) -> Msg:
        """Remove and return the oldest message; taking the last one may complete a drain."""
        msg = mailbox.pop()
        if mailbox.ended and not mailbox.pending():
            self.connection.consumed(self.port.now())
            self.port.flush_soon()
        return msg

    async def settle(self, request: Request) -> Msg | None:
        """Wait for the response, or raise the error; a canceled caller cancels the request."""
        port = self.port
        port.flush_soon()
        try:
            while not request.done:
                await port.wait(request)
        except BaseException:
            self.connection.cancel(request)
            raise
        if request.error is not None:
            raise request.error
        return request.reply

    async def make_room(self) -> None:
        """Send published messages; wait while the queue is above its high-water mark."""
        much = self.connection.congested
        try:
            self.port.flush_soon()
        except NatsError:  # D-CONN-33: the port is not for this loop
            self.connection.withdraw()
            raise
        while self.connection.congested:
            await self.port.wait(self.connection.writable)
        if much:
            await self.port.checkpoint()

    async def wait(self, waitable: Waitable, deadline: float | None, what: str) -> None:
        """Wait until the waitable may be ready; raise TimeoutExpired after the deadline."""
        if deadline is None:
            await self.port.wait(waitable)
            return
        if self.port.now() >= deadline:
            raise TimeoutExpired("no %s in time" % what)
        alarm = Alarm(waitable)
        self.connection.wake_at(alarm, deadline)
        self.port.flush_soon()
        try:
            await self.port.wait(waitable)
        finally:
            alarm.deadline = None

    async def sleep(self, seconds: float) -> None:
        """Sleep; raise ConnectionClosed if the connection is closed in the meantime."""
        deadline = self.port.now() + seconds
        alarm = Waitable()
        while self.port.now() < deadline:
            if self.connection.closed:
                raise ConnectionClosed(self.connection.closed)
            self.connection.wake_at(alarm, deadline)
            self.port.flush_soon()
            await self.port.wait(alarm)


def check_flag(name: str, value: bool) -> bool:
    """Raise InvalidValue unless the value is True or False: others are likely mistakes."""
    if not isinstance(value, bool):
        raise InvalidValue("%s %s is neither True nor False" % (name, shorten(value)))
    return value


def check_count(
    name: str, value: int, least: int = 0, most: int | None = None, rule: str = ""
) -> int:
    """Raise InvalidValue unless the value is a whole number from `least` to `most`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        end = "" if most is None else " to %d" % most
        text = "%s %s is not a whole number from %d%s" % (name, shorten(value), least, end)
        raise InvalidValue(text, rule)
    return value
