"""TransportStream: one transport of trio, with a task that reads and one that writes.

Data is sent in the publisher's task, without waiting. The writer sends data that the system did not
accept or that is published later in the same turn; with TLS it sends everything. A caller never
waits for the socket, so canceling it never leaves half a frame on the wire.

The reader lends the socket: while only one task waits, several times in a row, that task reads. A
response then takes one turn of the loop instead of two, and one task instead of two.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import trio
from trio.lowlevel import Abort, wait_readable, wait_task_rescheduled, wait_writable

from .driver import TRANSPORT_ERRORS, disown_socket, try_addresses
from .tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.connection.effects import Dial

    from .trio import TrioPort


# After so many waits in a row that no other task joined, the reader lends the socket.
_LONE = 4
# How long a loan lasts if no task uses it, in seconds.
_LOAN = 0.05


class TransportStream:
    """One transport and its two tasks. After `detach` it reports nothing more."""

    _sock: socket.socket  # without waiting; `_socket` is the same one, for trio

    def __init__(self, port: TrioPort) -> None:
        self._port = port
        self._scope = trio.CancelScope(shield=True)
        self._socket: trio.socket.SocketType | None = None
        self._tls: trio.SSLStream[trio.SocketStream] | None = None
        self._unsent: list[bytes | memoryview] = []  # not accepted by the system yet
        self._parked: trio.lowlevel.Task | None = None  # the writer, while it has nothing to do
        self._broken: BaseException | None = None  # why nothing more can be sent
        self.idle = False  # open, and everything was sent
        self.hostname = ""  # if set, TLS must be started
        # The loan
        self.lent = False  # no task reads: the next one that waits does
        self._lender: trio.lowlevel.Task | None = None  # the reader, while it waits for the socket
        self._borrower = False  # a task waits for data
        self._borrowed = False  # the same, or it was interrupted and has not run since
        self._used = False  # a task has read since the reader last looked
        self._asked = False  # the reader wants the socket back from a task that waits for long
        self._over = False  # a task has seen the end of the transport

    def detach(self) -> None:
        """Drop the transport at once."""
        self._scope.cancel()
        self._close()

    def disown(self) -> None:
        """Release the socket in the child of a fork: it belongs to the parent."""
        if self._socket is not None and self._socket.fileno() >= 0:
            disown_socket(self._socket.fileno())

    def _close(self) -> None:
        self.idle = self.lent = False
        if self._socket is not None:
            self._socket.close()

    def write(self, pieces: list[bytes]) -> None:
        """Send data on an idle stream; the writer sends what the system does not accept."""
        self._unsent += pieces
        if self._tls is None:
            self._send()
        if self._unsent:
            self.idle = False
            self.wake_writer()

    def _send(self) -> None:
        """Send as much as the system accepts."""
        unsent = self._unsent
        try:
            while unsent:
                size = self._sock.send(unsent[0])
                if size == len(unsent[0]):
                    del unsent[0]
                else:
                    unsent[0] = memoryview(unsent[0])[size:]
        except BlockingIOError:
            pass
        except OSError as error:
            # The reader reports the failure: the server's last message may say more.
            self._broken = error
            self.idle = False
            unsent.clear()

    def wake_writer(self) -> bool:
        """Wake the writer to look for work in this turn; return False if it was not waiting."""
        task, self._parked = self._parked, None
        if task is None:
            return False
        trio.lowlevel.reschedule(task)
        return True

    async def run(self, effect: Dial) -> None:
        """Dial, then read and write until the transport ends or is dropped."""
        with self._scope:
            try:
                found = await trio.socket.getaddrinfo(
                    effect.host, effect.port, type=socket.SOCK_STREAM
                )
                await try_addresses(found, effect.shuffle, self._connect)
                async with trio.open_nursery() as nursery:
                    self.idle = True
                    self._port.on_opened()
                    nursery.start_soon(self._write)
                    await self._read()
                    nursery.cancel_scope.cancel()
            except TRANSPORT_ERRORS as error:
                self._broken = error
            finally:
                self._close()
            if not self._scope.cancel_called:
                self._port.transport_lost(self._broken)

    async def _connect(self, address: Any) -> None:
        self._close()
        self._sock = socket.socket(*address[:3])
        self._socket = trio.socket.from_stdlib_socket(self._sock)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._socket.connect(address[4])

    async def _read(self) -> None:
        try:
            while not self._scope.cancel_called:
                if self.hostname:
                    await self._start_tls()
                if self._lends:
                    await self._lend()
                data = b"" if self._over else await self._receive()
                # A read that succeeds in the turn in which it is canceled still returns data.
                if not data or self._scope.cancel_called:
                    return
                self._port.on_data(data)
        except trio.ClosedResourceError:
            pass  # detached when this task was already scheduled, too late to be canceled
        except trio.BrokenResourceError as error:
            self._broken = error.__cause__ or error

    async def _receive(self) -> bytes:
        if self._tls is not None:
            return bytes(await self._tls.receive_some(self._port.read_size))
        # Wait first; otherwise a read that has to wait would be tried twice.
        while True:
            await wait_readable(self._sock)
            if self._scope.cancel_called:
                return b""
            try:
                return self._sock.recv(self._port.read_size)
            except BlockingIOError:
                pass
            except OSError as error:
                raise trio.BrokenResourceError from error

    @property
    def _lends(self) -> bool:
        """Whether one task waited alone several times, and no handshake is under way."""
        port = self._port
        if port.lone < _LONE or port.waiting or self._tls is not None:
            return False
        return port.connection.online  # or else the server may ask for TLS, which this task starts

    async def _lend(self) -> None:
        """Leave reading to the task that waits, until it is asked back or not used anymore."""
        self._used = True
        while self._used and not self._port.waiting:
            self._used = False
            self.lent = not self._borrowed  # or else it is lent when that task has run
            with trio.move_on_after(_LOAN):
                await self._wait_for_socket()
                return
        if self._borrower:
            # Two tasks cannot wait for the same socket: this one gives it back when it has read.
            self._asked = True
            await self._wait_for_socket()
        self.lent = self._asked = False
        self._port.lone = 0

    async def _wait_for_socket(self) -> None:
        """Wait for `_call_back`."""

        def abort(_: object) -> Abort:
            self._lender = None
            return Abort.SUCCEEDED

        self._lender = trio.lowlevel.current_task()
        await wait_task_rescheduled(abort)

    def _call_back(self) -> None:
        """Have the reader read again."""
        task, self._lender = self._lender, None
        self.lent = False
        self._port.lone = 0
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def borrow(self, waiters: list[Callable[[], object]]) -> None:
        """Read in the task of a caller, until its waiter, which is on this list, is called."""
        self.lent = False
        self._used = self._borrowed = True
        waiters.append(self._interrupt)
        self._port.waiting += 1
        try:
            while self._interrupt in waiters and not self._over:
                self._borrower = True
                await wait_readable(self._sock)
                self._borrower = False
                self._read_now()
        except trio.ClosedResourceError:
            pass  # interrupted, or the transport was dropped
        finally:
            self._borrower = self._borrowed = False
            if self._interrupt in waiters:
                waiters.remove(self._interrupt)
                self._port.waiting -= 1
            if self._over or self._asked or self._port.waiting:
                self._call_back()
            else:
                self.lent = self._lender is not None

    def _read_now(self) -> None:
        """Read once; the reader reports the end of the transport."""
        try:
            data = self._sock.recv(self._port.read_size)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken = error
            data = b""
        if data:
            self._port.on_data(data)
        # The data may have ended it as well.
        self._over = not data or self._scope.cancel_called

    def _interrupt(self) -> None:
        """Wake the borrower, if it still waits for data."""
        if self._borrower:
            self._borrower = False
            # The only call of trio that wakes another task's wait_readable. It wakes a task in
            # wait_writable too, as if the socket were being closed: `_send_rest` waits again.
            trio.lowlevel.notify_closing(self._sock)

    async def _start_tls(self) -> None:
        assert self._socket is not None
        context = tls_context(self._port.connection.options)
        try:
            tls = trio.SSLStream(
                trio.SocketStream(self._socket),
                context,
                server_hostname=self.hostname,
                https_compatible=True,
            )
        except ValueError as error:  # a name that no certificate can have
            raise trio.BrokenResourceError from error
        self.hostname = ""
        await tls.do_handshake()
        self._tls = tls
        if not self._scope.cancel_called:
            self._port.on_tls()

    async def _write(self) -> None:
        try:
            while self._broken is None and not self._scope.cancel_called:
                if self._unsent:
                    await self._send_rest()
                else:
                    await self._park()
                self._port.uncork()
        except trio.ClosedResourceError:
            pass  # as above
        except trio.BrokenResourceError as error:
            self._broken = error.__cause__ or error

    async def _send_rest(self) -> None:
        if self._tls is not None:
            while self._unsent:
                await self._tls.send_all(self._unsent[0])
                del self._unsent[0]
        else:
            while self._unsent:
                try:
                    await wait_writable(self._sock)
                except trio.ClosedResourceError:
                    if self._sock.fileno() < 0:
                        raise
                    continue  # see `_interrupt`
                if self._scope.cancel_called:
                    return
                self._send()
        self.idle = self._broken is None

    async def _park(self) -> None:
        """Wait for `wake_writer`."""

        def abort(_: object) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = trio.lowlevel.current_task()
        await wait_task_rescheduled(abort)
