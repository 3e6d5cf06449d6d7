"""No event loop and no thread: `with connect(...) as client`, or `client = connect(...)`.

All I/O happens inside the calls. A call that waits reads and writes until it has what it waits for;
a publish is handed to the system before it returns. Between calls nothing is read and no PING is
answered, so the server hangs up on a client that is not used for minutes. The next call notices
that and dials again; a publish returns when it was sent, or when the attempt to connect has failed.
Names are looked up inside the calls, too: timeouts do not hold while the system does that.

One thread at a time. After `os.fork()` the child has a client of its own: its next call connects.
Ctrl-C and other exceptions of signal handlers are fine anywhere: the client stays usable.
"""

from __future__ import annotations

import math
import signal
import threading
import weakref
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any

from natsproto.blocking import Client
from natsproto.errors import InvalidState, InvalidValue
from natsproto.port import run_sync

from ._shared import make_connection, open_client
from ._sockets import OPEN, SocketCarrier, look_up, wait_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike

    from ._shared import Worker

# How old the last look at the socket may be when a call begins (RECON-16). What is sent to a server
# that has hung up is lost, and the server wants its PINGs answered. A look takes about 20 us, so
# this is 0.5 % of the time of a program that does nothing but publish.
_LOOK = 0.005
_READS = 16
# The functions themselves, without wrappers that turn numbers into enums: 0.7 us instead of 7.4.
_get_handler = getattr(signal, "_signal", signal).getsignal
_set_handler = getattr(signal, "_signal", signal).signal


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Client:
    """`with connect(...) as client`, or a plain call, and `close` in the end.

    The options are the keywords of natsproto.options.Options, whose help tells about each, but
    `creds` is the path of a file. ConnectFailed, AuthorizationFailed: no server took the client.
    """
    connection = make_connection(servers, dict(options))
    port = BlockingPort(connection)
    with port.lock:
        return Client(run_sync(open_client(connection, port)), port)


class BlockingPort(SocketCarrier):
    """Does all I/O in the caller's thread; itself the lock around each call."""

    alone = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._user = 0  # the thread that is in a call
        self._last_user = 0
        self._held = 0  # how many messages waited for a connection when its call began
        self._corks: weakref.WeakSet[object] = weakref.WeakSet()
        self._look_at = self.now() + _LOOK
        self._torn = False  # something was begun and not ended: an exception came in between
        self._interrupts = Interrupts()

    @property
    def lock(self) -> BlockingPort:
        return self

    def __enter__(self) -> None:
        user = self._user
        if user not in (0, get_ident()):
            raise InvalidState("one thread at a time: natsproto.adapters.threads is for several")
        wire = self._wire
        # A user who is still there was cut off by an exception, at the very end of a call.
        if user or wire is None or wire.stage is not OPEN or self.now() > self._look_at:
            self._look()
        self._held = self.connection.held
        self._user = get_ident()  # nothing can come between this and the call

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._deliver()
        finally:
            if kind is not None:
                self._look_at = -math.inf
            self._last_user, self._user = self._user, 0
            self._interrupts.allow()

    def _deliver(self) -> None:
        """Hand what the call has published to the system."""
        connection = self.connection
        if connection.held > self._held:
            # RECON-15: nobody else sees to the attempt to connect that is under way.
            deadline = self.now() + connection.options.connect_timeout
            while connection.connecting and self.now() < deadline:
                self._turn(deadline - self.now())
        while self._wire is not None and self._wire.unsent:
            self._turn()

    def _look(self) -> None:
        """Before a call: what is sent to a server that has hung up is lost."""
        try:
            # Its last words come before the end of the transport, which is a read of its own.
            for _ in range(_READS):
                if not self._turn(0.0):
                    break
            self._do(self.carry_out)
        except BaseException:
            self._interrupts.allow()
            raise

    async def wait(self, waitable: Waitable) -> None:
        if self._corks:
            self._do(self.carry_out)
        self._turn()

    async def checkpoint(self) -> None:
        pass  # there are no others

    async def together(self, workers: list[Worker]) -> None:
        raise InvalidValue(
            f"{len(workers)} at once: this client is for one thread; natsproto.adapters.threads"
            " is for several"
        )

    def flush_soon(self) -> None:
        if not self._corks or self.connection.congested:
            self._do(self.carry_out)

    def _nudge(self) -> None:
        # Between two calls, in the thread of the last one, nothing else is at work here.
        if not self._user and not self._torn and self._last_user == get_ident():
            try:
                self._do(self.carry_out)
            finally:
                self._interrupts.allow()

    def cork(self, token: object) -> None:
        self._corks.add(token)

    def uncork(self, token: object) -> None:
        self._corks.discard(token)
        self.flush_soon()

    async def aclose(self) -> None:
        self._do(self.carry_out)

    def forked(self) -> None:
        self._user = self._last_user = 0
        self._torn = False
        self._hang_up()
        self.connection.forked(self.now())
        self.carry_out()

    def _turn(self, longest: float = math.inf) -> bool:
        """Wait until something happens, and see to it; False: only time has passed."""
        order = self._order
        if order is not None:
            with self._interrupts:
                addresses = look_up(order)
            self._do(self._begin, order, addresses)
            return True  # it may have been the last of them
        timeout = min(self._timeout(), longest)
        if timeout == math.inf and self._wire is None:
            raise InvalidState("the connection is closed: there is nothing to wait for")
        with self._interrupts:
            ready = wait_for(self._wire, None, timeout)
        self._do(self._step, ready)
        return ready

    def _do(self, work: Any, *args: Any) -> None:
        """Bytes move between socket and core here: an exception in between leaves them torn."""
        self._interrupts.defer()
        if self._torn:
            self._hang_up()
            with suppress(InvalidState):  # it has no transport, nor is it waiting for one
                self.lost(OSError("interrupted by a signal handler"))
        self._torn = True
        work(*args)
        self._torn = False

    def _step(self, ready: bool = True) -> None:
        self._look_at = self.now() + _LOOK
        super()._step(ready)

    def _arm(self, deadline: float) -> None:
        pass  # _turn asks for it


class Interrupts:
    """Ctrl-C waits while the core is at work, and is welcome while a call waits: `with` this.

    Only the main thread gets it. `defer` and `allow` set the handler at most once for each call.
    """

    def __init__(self) -> None:
        self._handler: Any = None  # the user's, while ours is set
        self._welcome = False
        self._came = False

    def defer(self) -> None:
        self._welcome = False  # once more: it may come while __exit__ begins
        if self._handler is None and threading.current_thread() is threading.main_thread():
            handler = _get_handler(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                _set_handler(signal.SIGINT, self._handle)

    def allow(self) -> None:
        if self._handler is not None:
            handler, self._handler = self._handler, None
            _set_handler(signal.SIGINT, handler)
            self._pass_on(handler)

    def _handle(self, number: int, frame: object) -> None:
        self._came = True
        if self._welcome:
            self._pass_on(self._handler)

    def _pass_on(self, handler: Any) -> None:
        if self._came:
            self._came = False
            handler(signal.SIGINT, None)

    def __enter__(self) -> None:
        self._welcome = True
        self._pass_on(self._handler)

    def __exit__(self, *exc: object) -> None:
        self._welcome = False
