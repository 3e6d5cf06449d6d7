"""No event loop and no thread: `with connect(...) as client`, or `client = connect(...)`.

All I/O happens inside the calls. A call that waits reads and writes until it has its result; a
publish hands its message to the system before it returns. Between calls nothing is read and no PING
is answered, so the server disconnects a client that is not used for minutes. The next call notices
that and dials again; a publish then returns when it was sent, or when the attempt to connect has
failed. Names are looked up inside the calls as well, and timeouts do not hold during that.

A client is for one thread at a time. After `os.fork()` the child makes its own connection with its
next call. Signal handlers may raise at any time, as Ctrl-C does; the client stays usable.
"""

from __future__ import annotations

import math
import weakref
from contextlib import suppress
from threading import get_ident

from natsproto.blocking import Client
from natsproto.errors import InvalidState, InvalidValue
from natsproto.port import run_sync

from ._interrupts import Interrupts
from ._sockets import OPEN, SocketDriver, look_up, wait_for
from .driver import make_connection, open_client

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker

# How old the last look at the socket may be when a call begins (D-RECON-16). Data that is sent to a
# server that has hung up is lost, and the server expects answers to its PINGs. A look takes about
# 20 us, so this is 0.5 % of the time of a program that does nothing but publish.
_LOOK = 0.005
_READS = 16


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Client:
    """Connect and return a client: use it in a `with` block, or `close` it at the end.

    The options are the keywords of natsproto.options.Options, which describes them, except that
    `creds` is the path of a file. Raises ConnectFailed if no server can be reached, and
    AuthorizationFailed if the credentials are rejected.
    """
    connection = make_connection(servers, dict(options))
    port = BlockingPort(connection)
    with port.lock:
        return Client(run_sync(open_client(connection, port)), port)


class BlockingPort(SocketDriver):
    """Runs a connection in the caller's thread. It is also the lock around each call."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.alone: bool = True  # no call is active, not even one of another thread
        self._user = 0  # the thread that is in a call
        self._last_user = 0
        self._held = 0  # how many messages waited for a connection when the call began
        self._corks: weakref.WeakSet[object] = weakref.WeakSet()
        self._look_at = self.now() + _LOOK
        self._torn = False  # an exception has interrupted the work on the connection
        self._interrupts = Interrupts()

    @property
    def joins(self) -> bool:
        """Whether an acknowledgment is only queued by a cork, and needs no lock."""
        # As in `publish` of natsproto.blocking: nothing is to be sent, and nothing is to be read.
        outbound = self.connection.outbound
        joins = self.alone and 0 < outbound.size <= outbound.high_water and not outbound.holding
        return joins and self.now() < self._look_at

    @property
    def lock(self) -> BlockingPort:
        """The port itself, which is entered and left with every call."""
        return self

    def __enter__(self) -> None:
        user = self._user
        if user not in (0, get_ident()):
            raise InvalidState(
                "client is in use by another thread: use natsproto.adapters.threads for several"
            )
        self._held = self.connection.held  # first: reading may find the transport lost
        transport = self._transport
        # If the user is still set, an exception has interrupted the very end of its last call.
        if user or transport is None or transport.stage is not OPEN or self.now() > self._look_at:
            self._look()
        self.alone = False
        self._user = get_ident()  # last, so that no exception can occur before the call

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._deliver()
        finally:
            if kind is not None:
                self._look_at = -math.inf
            self._last_user, self._user = self._user, 0
            self.alone = True
            self._interrupts.allow()

    def _deliver(self) -> None:
        """Pass the messages that the call has published to the operating system."""
        connection = self.connection
        if connection.held > self._held:
            # D-RECON-15: no other thread would continue the connection attempt.
            deadline = self.now() + connection.options.connect_timeout
            while connection.connecting and self.now() < deadline:
                self._turn(deadline - self.now())
        while self._transport is not None and self._transport.unsent:
            self._turn()

    def _look(self) -> None:
        """Read before a call: data sent to a server that has hung up would be lost."""
        try:
            # The server's last message arrives before the end of the transport, which is another
            # read.
            for _ in range(_READS):
                if not self._turn(0.0):
                    break
            self._do(self.pump)
        except BaseException:
            self._interrupts.allow()
            raise

    async def wait(self, waitable: Waitable) -> None:
        """Read and write until something happens."""
        if self._corks:
            self._do(self.pump)
        self._turn()

    async def checkpoint(self) -> None:
        """Return at once."""
        pass  # there are no other tasks

    async def run_all(self, workers: list[Worker]) -> None:
        """Raise InvalidValue: there is only one thread."""
        raise InvalidValue(
            "client is for one thread, not for %d at once: natsproto.adapters.threads is for"
            " several" % len(workers)
        )

    def flush_soon(self) -> None:
        """Run `pump`, unless publishes are held back."""
        if not self._corks or self.connection.congested:
            self._do(self.pump)

    def pump_soon(self) -> None:
        """Run `pump`, if no call is active."""
        # Between two calls, in the thread of the last one, nothing else uses the connection.
        if not self._user and not self._torn and self._last_user == get_ident():
            try:
                self._do(self.pump)
            finally:
                self._interrupts.allow()

    def cork(self, token: object) -> None:
        """Hold publishes back."""
        self._corks.add(token)

    def uncork(self, token: object) -> None:
        """Send the publishes that were held back, if this was the last cork."""
        self._corks.discard(token)
        self.flush_soon()

    async def aclose(self) -> None:
        """Run `pump`: there is nothing else to release."""
        self._do(self.pump)

    def on_fork(self) -> None:
        """Connect again in the child: this client is usable there."""
        self._user = self._last_user = 0
        self.alone = True
        self._torn = False
        self.hang_up()
        self.connection.forked(self.now())
        self.pump()

    def _turn(self, longest: float = math.inf) -> bool:
        """Wait until something happens, and handle it; False if only time has passed."""
        effect = self._dialing
        if effect is not None:
            with self._interrupts:
                addresses = look_up(effect)
            self._do(self._begin, effect, addresses)
            return True  # it may have been the last address
        timeout = min(self._timeout(), longest)
        if timeout == math.inf and self._transport is None:
            raise InvalidState("connection is closed: there is nothing to wait for")
        with self._interrupts:
            ready = wait_for(self._transport, None, timeout)
        self._do(self._step, ready)
        return ready

    def _do(self, work: Any, *args: Any) -> None:
        """Move bytes between socket and core; an exception leaves both inconsistent."""
        self._interrupts.defer()
        if self._torn:
            self.hang_up()
            with suppress(InvalidState):  # there is no transport, nor an attempt to open one
                self.on_closed(OSError("interrupted by a signal handler"))
        self._torn = True
        work(*args)
        self._torn = False

    def _step(self, ready: bool = True) -> None:
        self._look_at = self.now() + _LOOK
        super()._step(ready)
