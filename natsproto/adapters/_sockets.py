"""A non-blocking socket without an event loop: for the adapters `blocking` and `threads`.

A SocketTransport goes from CONNECTING to OPEN and, for TLS, through SECURING to OPEN again. In each
stage `SocketDriver` does everything that is possible without waiting; `wants` returns what to wait
for.
"""

from __future__ import annotations

import math
import os
import select
import socket
import time

from .driver import TRANSPORT_ERRORS, Driver, SystemRng

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext
    from typing import Any, TypeAlias

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls

    Addresses: TypeAlias = "list[Any] | Exception"

READ = getattr(select, "POLLIN", 1)
WRITE = getattr(select, "POLLOUT", 4)

CONNECTING = "CONNECTING"
SECURING = "SECURING"
OPEN = "OPEN"

_DAY = 86400.0  # poll accepts at most 24 days


def look_up(effect: Dial) -> Addresses:
    """Return the addresses to try, as from getaddrinfo, or the error. May take long."""
    # Passed as bytes: for a str, Python imports the IDNA codec, which takes 3.4 ms.
    host = effect.host.encode() if effect.host.isascii() else effect.host
    try:
        addresses = socket.getaddrinfo(host, effect.port, type=socket.SOCK_STREAM)
    except TRANSPORT_ERRORS as error:
        return error
    if effect.shuffle:
        SystemRng().shuffle(addresses)
    return addresses


class SocketTransport:
    """One transport. An OSError from any method means that it is lost."""

    # Raised when the socket would block. TLS adds its own errors, and only then is ssl imported.
    _again: tuple[type[OSError], ...] = (BlockingIOError,)

    def __init__(self, addresses: list[Any]) -> None:
        self._addresses = addresses
        self.unsent: list[bytes | memoryview] = []  # not accepted by the system yet
        self._tls: tuple[SSLContext, str] | None = None  # requested, but not begun
        self._tls_wants = WRITE
        self.broken: BaseException | None = None  # why nothing more can be sent
        self._next_address()

    def wants(self) -> int:
        """Return what to wait for: READ, WRITE or both."""
        if self.stage is OPEN:
            return READ | WRITE if self.unsent else READ
        return WRITE if self.stage is CONNECTING else self._tls_wants

    def fileno(self) -> int:
        """Return the file descriptor to wait with."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket, without close_notify; without FIN if another process has it open."""
        self._sock.close()

    def _next_address(self) -> None:
        """Begin to connect to the next address that can be tried; OSError if there is none."""
        family, kind, proto, _, address = self._addresses.pop(0)
        self.stage = CONNECTING
        try:
            self._sock = socket.socket(family, kind, proto)
        except OSError as error:  # the system does not support such addresses
            self._failed(error)
            return
        try:
            self._sock.setblocking(False)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock.connect(address)
        except BlockingIOError:
            pass  # under way
        except OSError as error:
            self._sock.close()
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if not self._addresses:
            raise error
        self._next_address()

    def connected(self) -> bool:
        """Resume connecting; return True when it is done."""
        error = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._sock.close()
            self._failed(OSError(error, os.strerror(error)))
            return False
        try:
            self._sock.getpeername()
        except OSError:
            return False  # not yet
        self.stage = OPEN
        return True

    def start_tls(self, context: SSLContext, hostname: str) -> None:
        """Request a TLS handshake; `secured` does it."""
        self.stage = SECURING
        self._tls = context, hostname

    def secured(self) -> bool:
        """Resume the handshake; return True when it is done."""
        from ssl import SSLSocket, SSLWantReadError, SSLWantWriteError

        if self._tls is not None:
            (context, hostname), self._tls = self._tls, None
            self._again = (BlockingIOError, SSLWantReadError, SSLWantWriteError)
            try:
                self._sock = context.wrap_socket(
                    self._sock, server_hostname=hostname, do_handshake_on_connect=False
                )
            except ValueError as error:  # a name that no certificate can have
                raise OSError(str(error)) from error
        assert isinstance(self._sock, SSLSocket)
        try:
            self._sock.do_handshake()
        except (SSLWantReadError, SSLWantWriteError) as error:
            self._tls_wants = READ if isinstance(error, SSLWantReadError) else WRITE
            return False
        self.stage = OPEN
        return True

    def receive(self, size: int) -> bytes | None:
        """Return received data, None if there is none yet, or b"" at the end of the transport."""
        try:
            return self._sock.recv(size)
        except self._again:
            if self.broken is not None:
                raise OSError(str(self.broken)) from self.broken
            return None

    def send(self, take: Callable[[], list[bytes]]) -> None:
        """Send as much as the system accepts; take new data only after the last was accepted.

        D-CONN-26: when this returns, the connection has nothing left to take, or `unsent` is not
        empty and `wants` includes WRITE. Otherwise a caller that waits for room would never wake.

        A failure is kept for `receive`, because the server's last message may explain it.
        """
        unsent = self.unsent
        try:
            while self.broken is None:
                if not unsent:
                    unsent += take()
                    if not unsent:
                        break
                size = self._sock.send(unsent[0])
                if size == len(unsent[0]):
                    del unsent[0]
                else:
                    unsent[0] = memoryview(unsent[0])[size:]
        except self._again:
            pass
        except OSError as error:
            self.broken = error
            unsent.clear()


class SocketDriver(Driver):
    """Runs a connection on a SocketTransport.

    A Dial effect waits in `_dialing`: look up its host name, which may take long, and call
    `_begin`. Then repeatedly wait for what the transport wants, or for `_timeout`, and call
    `_step`.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._dialing: Dial | None = None
        self._transport: SocketTransport | None = None

    # The function itself, not a method that calls it: 4 % of a publish in a `corked()` block.
    if not TYPE_CHECKING:
        now = staticmethod(time.monotonic)

    def dial(self, effect: Dial) -> None:
        """Store the effect; `_begin` connects."""
        self._dialing = effect

    def _begin(self, effect: Dial, addresses: Addresses) -> None:
        """Begin to connect, after the name was looked up."""
        if self._dialing is not effect:
            return  # hung up in the meantime
        self._dialing = None
        try:
            if isinstance(addresses, Exception):
                raise addresses
            self._transport = SocketTransport(addresses)
        except TRANSPORT_ERRORS as error:
            self.on_closed(error)

    def start_tls(self, effect: StartTls) -> None:
        """Request a handshake; `_step` does it."""
        from .tls import tls_context

        assert self._transport is not None
        self._transport.start_tls(tls_context(self.connection.options), effect.hostname)

    def hang_up(self) -> None:
        """Close the transport, and discard a Dial effect that is still waiting."""
        self._dialing = None
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def send(self) -> None:
        """Send as much as the system accepts."""
        if self._transport is not None and self._transport.stage is OPEN:
            self._transport.send(self.connection.data_to_send)

    def set_timer(self, deadline: float) -> None:
        """Ignore the deadline: `_timeout` returns it before every wait."""

    def _step(self, ready: bool = True) -> None:
        """Do the work of a ready transport, with at most one read, and handle the timer."""
        transport = self._transport
        if ready and transport is not None:
            try:
                self._advance(transport)
            except OSError as error:
                self.hang_up()
                self.on_closed(error)
        deadline = self.connection.next_deadline()
        if deadline is not None and deadline <= self.now():
            self.on_timer()

    def _advance(self, transport: SocketTransport) -> None:
        if transport.stage is CONNECTING:
            if transport.connected():
                self.on_opened()
        elif transport.stage is SECURING:
            if transport.secured():
                self.on_tls()
        else:
            data = transport.receive(self.read_size)
            if data:
                self.on_data(data)
            elif data is None:
                self.pump()
            else:
                self.hang_up()
                self.on_closed(transport.broken)

    def _timeout(self) -> float:
        """Return the seconds until the deadline; infinity if there is none."""
        deadline = self.connection.next_deadline()
        return math.inf if deadline is None else max(0.0, deadline - self.now())


def wait_for(
    transport: SocketTransport | None, wakeup: socket.socket | None, timeout: float
) -> bool:
    """Wait until the transport is ready (True), the wake-up socket is readable, or time is up.

    Return at once if the transport is closed, which other threads may do before this begins.
    """
    fd = -1 if transport is None else transport.fileno()
    if transport is not None and fd < 0:
        return False
    poll = select.poll()
    if transport is not None:
        poll.register(fd, transport.wants())
    if wakeup is not None:
        poll.register(wakeup, READ)
    # Rounded up: waking just before the deadline would be useless.
    events = poll.poll(math.ceil(min(timeout, _DAY) * 1000))
    return any(each == fd for each, _ in events)


def _wait_on_windows(
    transport: SocketTransport | None, wakeup: socket.socket | None, timeout: float
) -> bool:
    read = [] if wakeup is None else [wakeup.fileno()]
    write: list[int] = []
    fd = -1 if transport is None else transport.fileno()
    if transport is not None:
        if fd < 0:
            return False
        wants = transport.wants()
        read += [fd] if wants & READ else []
        write += [fd] if wants & WRITE else []
    if not read and not write:
        time.sleep(min(timeout, _DAY))
        return False
    # Windows reports a failed attempt to connect as an exceptional condition.
    ready = select.select(read, write, write, min(timeout, _DAY))
    return transport is not None and any(fd in each for each in ready)


if not hasattr(select, "poll"):
    wait_for = _wait_on_windows
