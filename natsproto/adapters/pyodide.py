"""Pyodide, in a browser or under Node: `async with connect("wss://...") as client`.

The host opens WebSockets, with their framing and TLS, and signs with WebCrypto, so neither wsproto
nor cryptography is needed. There is one event loop, that of JavaScript, and no thread.

A WebSocket of the host cannot be paused, so it reads as fast as the server sends. Nor does it
report that it has room again: while it has much to send, the port looks every 10 ms.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from natsproto.errors import MissingExtra
from natsproto.secret import Secret

from ._connecting import Connecting
from .driver import Driver, make_connection

try:
    import js
    from pyodide.ffi import JsException, create_proxy, to_js
except ImportError:
    raise MissingExtra(
        "natsproto.adapters.pyodide needs Pyodide, in a browser or under Node", "D-OPT-17"
    ) from None

from ._webcrypto import sign_nonce

if TYPE_CHECKING:
    from pyodide.ffi import Proxy
    from typing_extensions import Unpack

    from natsproto.auth.challenge import Challenge
    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, Sign
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker

# The size of unsent data above which a WebSocket is full, in bytes, and when to look again.
_MAX_BUFFERED = 256 * 1024
_LOOK_AGAIN = 0.01
# JavaScript takes a timeout of 25 days or more for 0; a timer that fires early is harmless.
_LONGEST_TIMER = 24 * 3600.0


def connect(servers: ServersLike, **options: Unpack[OptionsDict]) -> Connecting:
    """Connect: `async with connect(...) as client`, or `client = await connect(...)`.

    Servers are ws or wss URLs. The options are the keywords of natsproto.options.Options, which
    describes them, with these differences. A str as `creds` is the text of a .creds file. `sign`
    may return an awaitable. Servers that the cluster announces are ignored unless
    `ignore_discovered` is False (D-POOL-18). What the host decides by itself cannot be set: a TLS
    context, `tls_hostname`, `ws_headers` and `ws_compression` (D-OPT-19).
    """
    if not hasattr(js, "WebSocket"):
        text = "this host has no WebSocket: Node 22 has one, Node 20 with --experimental-websocket"
        raise MissingExtra(text, "D-OPT-17")
    settings: dict[str, Any] = {"ignore_discovered": True, **options}
    host = ("host_websocket", "host_signing")
    settings.update(dict.fromkeys(host, True))
    if isinstance(settings.get("creds"), str):
        settings["creds"] = Secret(settings["creds"])
    return Connecting(make_connection(servers, settings, host=host), PyodidePort)


class PyodidePort(Driver):
    """Runs a connection on the event loop of the host."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._loop = asyncio.get_running_loop()
        self._socket: HostSocket | None = None  # from the Dial effect on
        self._pending: asyncio.Task[None] | asyncio.Handle | None = None  # a signature, a refusal
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self._corked = False  # something was sent, and nothing was received since
        self._pumping = False  # a callback will send the rest
        self._looking = False  # a timer will look whether the WebSocket has room

    def now(self) -> float:
        """Return the time of the loop."""
        return self._loop.time()

    # For the API

    async def wait(self, waitable: Waitable) -> None:
        """Wait for a future, which `wake` sets."""
        waiter: Any = self._loop.create_future()
        waitable.waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in waitable.waiters:
                waitable.waiters.remove(waiter)

    def wake(self, waiters: list[asyncio.Future[None]]) -> None:
        """Set the futures of those who wait."""
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def checkpoint(self) -> None:
        """Yield to the loop when the turn is over."""
        if self.turn_is_over():
            await asyncio.sleep(0)

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task."""
        tasks = [self._loop.create_task(worker()) for worker in workers]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for task in tasks:
            task.result()

    def flush_soon(self) -> None:
        """Run `pump` at once, or at the end of this turn if something was sent in it before."""
        # Each message of a WebSocket costs a call of JavaScript and a copy, so publishes of the
        # same turn are joined.
        if not self._corked or self.connection.congested:
            self._corked = True
            self.pump()
        else:
            self.pump_soon()

    def pump_soon(self) -> None:
        """Schedule `pump`."""
        if not self._pumping:
            self._pumping = True
            self._loop.call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._corked = self._pumping = False
        self.pump()

    async def aclose(self) -> None:
        """Run `pump` and cancel the timer."""
        self.pump()
        if self._timer is not None:
            self._timer.cancel()

    # For the connection

    def set_timer(self, deadline: float) -> None:
        """Move the timer forward, if the deadline is earlier."""
        if self._timer is None or deadline < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            delay = min(max(0.0, deadline - self.now()), _LONGEST_TIMER)
            self._timer = self._loop.call_later(delay, self._fire)
            self._fires_at = deadline

    def _fire(self) -> None:
        self._timer = None
        self.on_timer()

    def dial(self, effect: Dial) -> None:
        """Open a WebSocket."""
        try:
            self._socket = HostSocket(self, effect.url)
        except JsException as error:  # for example, because a page from https must not use ws
            refused = OSError("WebSocket was not opened: %s" % error)
            self._pending = self._loop.call_soon(self.transport_lost, refused)

    def sign(self, effect: Sign) -> None:
        """Start a task that signs."""
        self._pending = self._loop.create_task(self._sign(effect.challenge))

    async def _sign(self, challenge: Challenge) -> None:
        signature = key = b""
        failure: Exception | None = None
        try:
            signature, key = await sign_nonce(challenge)
        except Exception as error:
            failure = error
        if self._pending is asyncio.current_task():  # the user's function may ignore a cancellation
            self._pending = None
            self.on_signed(signature, key, failure)

    def hang_up(self) -> None:
        """Drop the WebSocket, and the signature for it."""
        if self._pending is not None:
            self._pending.cancel()
        if self._socket is not None:
            self._socket.close()
        self._pending = self._socket = None

    def send(self) -> None:
        """Write to the WebSocket, if it has room."""
        socket = self._socket
        if socket is None or not socket.is_open:
            return
        if not socket.is_full:
            for piece in self.connection.data_to_send():
                socket.send(piece)
        elif not self._looking:
            self._looking = True
            self._loop.call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._looking = False
        self.pump()

    def on_data(self, data: bytes) -> None:
        """Report data."""
        self._corked = False
        super().on_data(data)

    def transport_lost(self, error: Exception | None) -> None:
        """Report that the WebSocket is closed or could not be opened."""
        if self._pending is not None:
            self._pending.cancel()
        self._pending = self._socket = None
        self.on_closed(error)


class HostSocket:
    """One WebSocket of the host; after `close` it reports nothing."""

    def __init__(self, port: PyodidePort, url: str) -> None:
        self._port = port
        self._error = ""
        self._listeners: list[tuple[str, Proxy]] = []
        self._socket: Any = js.WebSocket.new(url)
        self._socket.binaryType = "arraybuffer"
        self.is_open: bool = False
        for name, listener in [
            ("open", self._on_open),
            ("message", self._on_message),
            ("error", self._on_error),
            ("close", self._on_close),
        ]:
            proxy = create_proxy(listener)
            self._listeners.append((name, proxy))
            self._socket.addEventListener(name, proxy)

    @property
    def is_full(self) -> bool:
        """Whether the host has not sent much of the data yet."""
        return bool(self._socket.bufferedAmount > _MAX_BUFFERED)

    def send(self, data: bytes) -> None:
        """Send one message."""
        self._socket.send(to_js(data))

    def close(self) -> None:
        """Close the WebSocket, or the attempt to open one."""
        self.is_open = False
        for name, proxy in self._listeners:
            self._socket.removeEventListener(name, proxy)
            proxy.destroy()
        self._listeners = []
        self._socket.close()

    def _on_open(self, event: Any) -> None:
        self.is_open = True
        self._port.on_opened()

    def _on_message(self, event: Any) -> None:
        data = event.data
        self._port.on_data(data.encode() if isinstance(data, str) else data.to_bytes())  # WS-3

    def _on_error(self, event: Any) -> None:
        # A browser does not tell a page what is wrong; Node does.
        self._error = getattr(event, "message", None) or ""
        if not self.is_open:
            self.close()  # of an attempt that failed, Node 20 reports no "close"
            self._lost("WebSocket was not opened")

    def _on_close(self, event: Any) -> None:
        was_open = self.is_open
        self.close()
        self._error = event.reason or self._error
        if was_open and event.wasClean and not self._error:
            self._port.transport_lost(None)
        else:
            what = "closed" if was_open else "not opened"
            self._lost("WebSocket was %s, code %d" % (what, event.code))

    def _lost(self, text: str) -> None:
        self._port.transport_lost(OSError(text + ": %s" % self._error if self._error else text))
