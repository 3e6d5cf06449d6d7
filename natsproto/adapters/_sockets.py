"""A non-blocking socket without an event loop: for the adapters `blocking` and `threads`.

A Wire goes from CONNECTING to OPEN, and over SECURING to OPEN again if TLS is wanted. In each stage
`SocketCarrier` does what can be done without waiting, and `wants` tells what to wait for.
"""

from __future__ import annotations

import math
import os
import select
import socket
import time
from ssl import SSLSocket, SSLWantReadError, SSLWantWriteError
from typing import TYPE_CHECKING, Any

from ._shared import FAILURES, RANDOM, READ_SIZE, Carrier, tls_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext
    from typing import TypeAlias

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls

    Addresses: TypeAlias = "list[Any] | Exception"

READ = getattr(select, "POLLIN", 1)
WRITE = getattr(select, "POLLOUT", 4)

CONNECTING = "CONNECTING"
SECURING = "SECURING"
OPEN = "OPEN"

_AGAIN = (BlockingIOError, SSLWantReadError, SSLWantWriteError)
_DAY = 86400.0  # poll takes no larger numbers than 24 days


def look_up(order: Dial) -> Addresses:
    """The addresses to try, as from getaddrinfo, or why there are none. May take its time."""
    try:
        addresses = socket.getaddrinfo(order.host, order.port, type=socket.SOCK_STREAM)
    except FAILURES as error:
        return error
    if order.shuffle:
        RANDOM.shuffle(addresses)
    return addresses


class Wire:
    """One transport. OSError from any method: it is lost."""

    def __init__(self, addresses: list[Any]) -> None:
        self._addresses = addresses
        self.unsent: list[bytes | memoryview] = []  # what the system did not take yet
        self._tls: tuple[SSLContext, str] | None = None  # wanted and not begun
        self._tls_wants = WRITE
        self.broken: BaseException | None = None  # why nothing can be sent any more
        self._next_address()

    def wants(self) -> int:
        """What to wait for: READ, WRITE or both."""
        if self.stage is OPEN:
            return READ | WRITE if self.unsent else READ
        return WRITE if self.stage is CONNECTING else self._tls_wants

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        """Without a goodbye, neither of TCP if others have it open, nor of TLS."""
        self._sock.close()

    def _next_address(self) -> None:
        """Begin to connect to it, or to the one after it; OSError: there is none left."""
        family, kind, proto, _, address = self._addresses.pop(0)
        self.stage = CONNECTING
        try:
            self._sock = socket.socket(family, kind, proto)
        except OSError as error:  # the system does not know such addresses
            self._failed(error)
            return
        try:
            self._sock.setblocking(False)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock.connect(address)
        except BlockingIOError:
            pass  # on its way
        except OSError as error:
            self._sock.close()
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if not self._addresses:
            raise error
        self._next_address()

    def connected(self) -> bool:
        """Go on with connecting; True: done."""
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
        self.stage = SECURING
        self._tls = context, hostname

    def secured(self) -> bool:
        """Go on with the handshake; True: done."""
        if self._tls is not None:
            (context, hostname), self._tls = self._tls, None
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

    def receive(self) -> bytes | None:
        """What has arrived; None: nothing has, b"": nothing will."""
        try:
            return self._sock.recv(READ_SIZE)
        except _AGAIN:
            if self.broken is not None:
                raise OSError(str(self.broken)) from self.broken
            return None

    def send(self, take: Callable[[], list[bytes]]) -> None:
        """Send as much as the system accepts; take new data only after the last was accepted.

        CONN-26: when this returns, the connection has nothing left to take, or `unsent` is not
        empty and `wants` asks for WRITE. Otherwise nothing would wake up whoever waits for room.

        A failure is kept for `receive`: the server's last words may explain it.
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
        except _AGAIN:
            pass
        except OSError as error:
            self.broken = error
            unsent.clear()


class SocketCarrier(Carrier):
    """Orders and inputs on a Wire.

    An order to dial waits in `_order`: look its name up, which may take long, and `_begin`. Then
    wait for what the wire wants, or `_timeout`, and `_step`, again and again.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._order: Dial | None = None
        self._wire: Wire | None = None

    def now(self) -> float:
        return time.monotonic()

    def _dial(self, order: Dial) -> None:
        self._order = order

    def _begin(self, order: Dial, addresses: Addresses) -> None:
        """The name of the order was looked up."""
        if self._order is not order:
            return  # hung up meanwhile
        self._order = None
        try:
            if isinstance(addresses, Exception):
                raise addresses
            self._wire = Wire(addresses)
        except FAILURES as error:
            self.lost(error)

    def _start_tls(self, order: StartTls) -> None:
        assert self._wire is not None
        self._wire.start_tls(tls_context(self.connection.options), order.hostname)

    def _hang_up(self) -> None:
        self._order = None
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _send(self) -> None:
        if self._wire is not None and self._wire.stage is OPEN:
            self._wire.send(self.connection.data_to_send)

    def _step(self, ready: bool = True) -> None:
        """Do what can be done on a wire that is ready, one read at most, and see to the time."""
        wire = self._wire
        if ready and wire is not None:
            try:
                self._advance(wire)
            except OSError as error:
                self._hang_up()
                self.lost(error)
        deadline = self.connection.next_deadline()
        if deadline is not None and deadline <= self.now():
            self.ring()

    def _advance(self, wire: Wire) -> None:
        if wire.stage is CONNECTING:
            if wire.connected():
                self.opened()
        elif wire.stage is SECURING:
            if wire.secured():
                self.secured()
        else:
            data = wire.receive()
            if data:
                self.received(data)
            elif data is None:
                self.carry_out()
            else:
                self._hang_up()
                self.lost(wire.broken)

    def _timeout(self) -> float:
        """Until the deadline."""
        deadline = self.connection.next_deadline()
        return math.inf if deadline is None else max(0.0, deadline - self.now())


def wait_for(wire: Wire | None, bell: socket.socket | None, timeout: float) -> bool:
    """Until the wire can go on (True), the bell rings, or the time is over."""
    fd = -1 if wire is None else wire.fileno()
    poll = select.poll()
    if wire is not None:
        poll.register(fd, wire.wants())
    if bell is not None:
        poll.register(bell, READ)
    # Rounded up: a wake-up just before the deadline would be one in vain.
    events = poll.poll(math.ceil(min(timeout, _DAY) * 1000))
    return any(each == fd for each, _ in events)


def _wait_on_windows(wire: Wire | None, bell: socket.socket | None, timeout: float) -> bool:
    read = [] if bell is None else [bell.fileno()]
    write: list[int] = []
    if wire is not None:
        wants = wire.wants()
        read += [wire.fileno()] if wants & READ else []
        write += [wire.fileno()] if wants & WRITE else []
    if not read and not write:
        time.sleep(min(timeout, _DAY))
        return False
    # A failed attempt to connect counts as exceptional there.
    ready = select.select(read, write, write, min(timeout, _DAY))
    return wire is not None and any(wire.fileno() in each for each in ready)


if not hasattr(select, "poll"):
    wait_for = _wait_on_windows
