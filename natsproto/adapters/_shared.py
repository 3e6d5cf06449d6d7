"""What adapters have in common: the options, and reading the four outputs of a connection."""

from __future__ import annotations

import os
import random
import socket
import ssl
import sys
import warnings
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natsproto.client import Client
from natsproto.connection import Connection
from natsproto.connection.effects import Dial, StartTls
from natsproto.errors import InvalidValue
from natsproto.options import Options
from natsproto.port import run_sync
from natsproto.wire.text import shorten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeAlias

    from natsproto.options import ServersLike
    from natsproto.port import Port

    Worker: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

RANDOM = random.SystemRandom()
READ_SIZE = 64 * 1024
FORKED = "this client belongs to the process before the fork: connect again"
# How long the end of a canceled block may take: enough to send what is on its way.
GOODBYE = 0.5
# For how long an iterator that finds messages keeps the loop to itself.
_TURN = 0.02
# A name that cannot be encoded for DNS is a ValueError; so is one that TLS cannot check.
FAILURES = (OSError, ValueError)


def make_connection(servers: ServersLike, options: dict[str, Any]) -> Connection:
    """A new connection with these options; `creds` is the path of a file here."""
    creds: object = options.get("creds")
    if isinstance(creds, (str, Path)) and str(creds):
        path = Path(creds)
        if not path.is_file():
            raise InvalidValue(f"creds: there is no file {shorten(str(path))}")
        # Read anew at every attempt: credentials are renewed by replacing the file.
        options = {**options, "creds": path.read_text}
    try:
        made = Options(servers=servers, **options)
    except TypeError:
        _refuse_unknown(options)
        raise
    if made.tls is not None and made.tls is not True and not isinstance(made.tls, ssl.SSLContext):
        # OPT-16: the type alone, for the object may hold the path or the password of a key.
        name = type(made.tls).__name__
        raise InvalidValue(f"tls is {name}, not True or an ssl.SSLContext", "OPT-16")
    return Connection(made, rng=RANDOM)


def _refuse_unknown(options: dict[str, Any]) -> None:
    known = list(signature(Options).parameters)
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; do you mean {close[0]!r}?" if close else ""
            raise InvalidValue(f"there is no option {shorten(name)}{hint}") from None


def tls_context(options: Options) -> ssl.SSLContext:
    """The user's context, or the system's defaults where none was given but TLS is needed."""
    if options.tls is None or options.tls is True:
        return ssl.create_default_context()
    assert isinstance(options.tls, ssl.SSLContext)
    return options.tls


async def open_client(connection: Connection, port: Port) -> Client:
    """Connect; if that fails or is given up, everything is given back."""
    client = Client(connection, port)
    connection.connect(port.now())
    try:
        await client.session.settle(connection.opened)
    except BaseException:
        connection.close(port.now())
        port.flush_soon()
        await port.aclose()
        raise
    return client


def run_worker(worker: Worker) -> None:
    """One worker of `together`, where nothing is async."""
    run_sync(worker())


async def first_answer(
    addresses: list[Any], shuffle: bool, connect: Callable[[Any], Awaitable[None]]
) -> None:
    """Connect to the first address (as from getaddrinfo) that answers; the last error if none."""
    if shuffle:
        RANDOM.shuffle(addresses)
    *others, last = addresses
    for address in others:
        with suppress(OSError):
            return await connect(address)
    await connect(last)


class Carrier(ABC):
    """Hands inputs to a connection and carries out what it orders; adapters say how.

    After every input and command the four outputs are read, in this order: effects, data, ready,
    deadline.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._turned_at = 0.0
        self._later: list[Callable[[], object]] = []
        _carriers.add(self)

    def run_soon(self, work: Callable[[], object]) -> None:
        # No lock: the caller may be a finalizer, which interrupts whoever holds it.
        self._later.append(work)
        self._nudge()

    def _nudge(self) -> None:  # noqa: B027 - an adapter without it still works
        """Have `carry_out` called soon; from any thread. If not, its next call will do."""

    def warn(self, text: str) -> None:
        if not sys.is_finalizing():
            warnings.warn(text, ResourceWarning, stacklevel=3)

    def carry_out(self) -> None:
        connection = self.connection
        while self._later:
            self._later.pop(0)()
        for effect in connection.take_effects():
            if isinstance(effect, Dial):
                self._dial(effect)
            elif isinstance(effect, StartTls):
                self._start_tls(effect)
            else:
                self._hang_up()
        self._send()
        for waitable in connection.take_ready():
            waiters, waitable.waiters = waitable.waiters, []
            for wake in waiters:
                wake()
        deadline = connection.next_deadline()
        if deadline is not None:
            self._arm(deadline)

    def opened(self) -> None:
        self.connection.transport_opened(self.now())
        self.carry_out()

    def secured(self) -> None:
        self.connection.tls_started(self.now())
        self.carry_out()

    def received(self, data: bytes) -> None:
        self.connection.receive_data(data, self.now())
        self.carry_out()
        self._turned_at = self.now()

    def _turn_is_over(self) -> bool:
        """Whether others should run before an iterator gives its next message."""
        # By time, not by count: a turn of the loop reads another 64 KiB. Iterators that gave way
        # every 64 messages lost 890,000 of a million that came at once, to overflow.
        now = self._time()
        over = now - self._turned_at > _TURN
        if over:
            self._turned_at = now
        return over

    def lost(self, error: BaseException | None) -> None:
        if error is not None:
            # A frame that raised a variable of its own is a cycle, and would keep the frames of all
            # callers alive: among others the reader of a loop over events (EVENT-8).
            error.__traceback__ = None
        self.connection.transport_closed(self.now(), error)
        self.carry_out()

    def ring(self) -> None:
        self.connection.handle_timer(self.now())
        self.carry_out()

    def forked(self) -> None:
        """This process is a copy: the transport belongs to the other one. See `part_from`."""
        self.connection.abandon(FORKED, copied=True)

    @abstractmethod
    def now(self) -> float: ...

    def _time(self) -> float:
        """The same for those who are known to be where they belong."""
        return self.now()

    @abstractmethod
    def _dial(self, order: Dial) -> None:
        """Begin; then `opened`, or `lost`."""

    @abstractmethod
    def _start_tls(self, order: StartTls) -> None:
        """Begin; then `secured`, or `lost`."""

    @abstractmethod
    def _hang_up(self) -> None:
        """Drop the transport, and whatever was begun, and report nothing more about it."""

    @abstractmethod
    def _send(self) -> None:
        """If the transport has room, take `connection.data_to_send()`."""

    @abstractmethod
    def _arm(self, deadline: float) -> None:
        """Call `ring` at that time, or earlier; a later time may be ignored."""


def part_from(fd: int) -> None:
    """Make a socket that was copied by a fork lead nowhere, and leave the other process's alone.

    An event loop shares what it waits with, so it must neither close nor unregister the socket. And
    it must not read from it or write to it: that would be the other process's data.
    """
    here, there = socket.socketpair()
    there.close()
    os.dup2(here.fileno(), fd, inheritable=False)
    here.close()


_carriers: weakref.WeakSet[Carrier] = weakref.WeakSet()


def _forked() -> None:
    for carrier in list(_carriers):
        carrier.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
