"""A connection and an adapter without I/O: every input is followed by all four outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from natsproto.connection import Connection
from natsproto.connection.tokens import Numbers
from natsproto.options import Options

if TYPE_CHECKING:
    from natsproto.connection.effects import Effect
    from natsproto.connection.receiver import Mailbox
    from natsproto.connection.tokens import Tokens
    from natsproto.connection.waitable import Waitable
    from natsproto.events import Event

PONG = b"PONG\r\n"
PING = b"PING\r\n"


def info(**fields: Any) -> bytes:
    """Return INFO as a server writes it."""
    known = {"server_id": "S", "version": "2.15.1", "headers": True, "max_payload": 1048576}
    return b"INFO " + json.dumps({**known, **fields}).encode() + b" \r\n"


def msg(subject: str, sid: int, data: bytes = b"", reply: str = "") -> bytes:
    to = reply + " " if reply else ""
    return f"MSG {subject} {sid} {to}{len(data)}\r\n".encode() + data + b"\r\n"


def hmsg(subject: str, sid: int, block: bytes, data: bytes = b"") -> bytes:
    sizes = f"{len(block)} {len(block) + len(data)}"
    return f"HMSG {subject} {sid} {sizes}\r\n".encode() + block + data + b"\r\n"


def err(text: str) -> bytes:
    return f"-ERR '{text}'\r\n".encode()


NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"


class Script:
    """Scripted randomness: the given fractions, and then 0.0 forever."""

    def __init__(self, *fractions: float) -> None:
        self.fractions = list(fractions)

    def random(self) -> float:
        return self.fractions.pop(0) if self.fractions else 0.0

    def randrange(self, limit: int) -> int:
        return 0


class Wire:
    """Short forms of the inputs; the outputs are kept until they are read.

    `now` is the time of the last input; `at` moves it. Servers are a, b, c in this order, unless
    the options say otherwise.
    """

    def __init__(self, rng: Any = None, *, tokens: Tokens | None = None, **options: Any) -> None:
        options.setdefault("servers", "nats://a:4222")
        options.setdefault("shuffle", False)
        # Numbers, so that tests know every reply subject.
        tokens = tokens or Numbers()
        self.connection = Connection(Options(**options), rng=rng or Script(), tokens=tokens)
        self.now = 0.0
        self.writable = True
        self._effects: list[Effect] = []
        self._sent: list[bytes] = []
        self._ready: list[Waitable] = []

    # Inputs

    def connect(self, at: float | None = None) -> Wire:
        return self.tell("connect", at=at)

    def opened(self, at: float | None = None) -> Wire:
        return self.tell("transport_opened", at=at)

    def secured(self, at: float | None = None) -> Wire:
        return self.tell("tls_started", at=at)

    def tell_signed(
        self,
        signature: bytes = b"",
        key: bytes = b"",
        error: BaseException | None = None,
        at: float | None = None,
    ) -> Wire:
        self.now = self.now if at is None else at
        self.connection.nonce_signed(self.now, signature, key, error)
        return self.look()

    def data(self, *data: bytes, at: float | None = None) -> Wire:
        """Feed the data in one read, or in several if there are several pieces."""
        for chunk in data:
            self.tell("receive_data", chunk, at=at)
        return self

    def lost(self, error: BaseException | None = None, at: float | None = None) -> Wire:
        self.now = self.now if at is None else at
        self.connection.transport_closed(self.now, error)
        return self.look()

    def timer(self, at: float | None = None) -> Wire:
        return self.tell("handle_timer", at=at)

    def ring(self) -> Wire:
        """Fire the timer when it is due, until it has an effect: some entries are out of date."""
        before = self._outcome()
        for _ in range(10):
            deadline = self.connection.next_deadline()
            assert deadline is not None
            self.timer(at=deadline)
            if self._outcome() != before:
                return self
        raise AssertionError("the timer rings and rings, and nothing happens")

    def _outcome(self) -> tuple[object, ...]:
        return self.state, self.alarm, len(self._effects), len(self._sent), len(self._ready)

    def tell(self, name: str, *args: Any, at: float | None = None) -> Wire:
        self.now = self.now if at is None else at
        getattr(self.connection, name)(*args, self.now)
        return self.look()

    def look(self) -> Wire:
        """Do what an adapter does after every input and command."""
        connection = self.connection
        self._effects += connection.take_effects()
        if self.writable:
            self._sent += connection.data_to_send()
        self._ready += connection.take_ready()
        connection.next_deadline()
        return self

    # Outputs

    def effects(self) -> list[Effect]:
        self.look()
        taken, self._effects = self._effects, []
        return taken

    def sent(self) -> bytes:
        self.look()
        taken, self._sent = self._sent, []
        return b"".join(taken)

    def ready(self) -> list[Waitable]:
        self.look()
        taken, self._ready = self._ready, []
        return taken

    def events(self) -> list[Event]:
        found = []
        while (event := self.connection.events.pop()) is not None:
            found.append(event)
        return found

    def forget(self) -> Wire:
        """Forget everything that happened so far."""
        self.effects(), self.sent(), self.ready(), self.events()
        return self

    @property
    def state(self) -> str:
        return self.connection.state

    @property
    def deadline(self) -> float | None:
        return self.connection.next_deadline()

    @property
    def alarm(self) -> float | None:
        """The deadline of the state; next_deadline may be earlier."""
        return self.connection.lifecycle.alarm.deadline

    # Ways through the handshake

    def greet(self, at: float | None = None, **fields: Any) -> Wire:
        """Go from DIALING to GREETING."""
        return self.opened(at).data(info(**fields))

    def up(self, at: float | None = None, **fields: Any) -> Wire:
        """Go from NEW, DIALING or WAITING to CONNECTED, and forget the outputs."""
        if self.state == "NEW":
            self.connect(at)
        if self.state == "WAITING":
            self.ring()
        return self.greet(**fields).data(PONG).forget()

    # Commands

    def subscribe(
        self, subject: str, queue: str = "", max_msgs: int = 0, max_bytes: int = 0
    ) -> Mailbox:
        mailbox = self.connection.mailbox(max_msgs, max_bytes)
        self.connection.subscribe(subject, mailbox, queue=queue)
        return mailbox


def texts(mailbox: Mailbox) -> list[bytes]:
    """Take all payloads out of it."""
    return [mailbox.pop().data for _ in range(mailbox.pending())]


def names(things: list[Any]) -> list[str]:
    return [type(thing).__name__ for thing in things]
