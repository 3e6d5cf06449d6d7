"""A minimal server without I/O for a dialogue, and the cable to it, which may be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from natsproto import Parser
from natsproto.connection.effects import Dial
from natsproto.wire.frames import Connect, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.subjects import matches
from tests.connection.support import NO_RESPONDERS, PONG, hmsg, info, msg

if TYPE_CHECKING:
    from tests.connection.support import Wire


class Server:
    """Routes messages, counts auto-unsubscribes, answers PING, and plays a few services.

    `echo` answers once, `many` three times, `silent` never, and `nobody` has no subscriber.
    """

    def __init__(self) -> None:
        self.output = info()
        self.seen: list[Any] = []
        self._parser = Parser(peer="client")
        self._subs: dict[int, list[Any]] = {}  # subject, messages left or None

    def receive(self, data: bytes) -> None:
        for frame in self._parser.feed(data):
            self.seen.append(frame)
            if isinstance(frame, Ping):
                self.output += PONG
            elif isinstance(frame, Sub):
                assert frame.sid not in self._subs, "a subscription was sent twice"
                self._subs[frame.sid] = [frame.subject, None]
            elif isinstance(frame, Unsub):
                self._unsub(frame)
            elif isinstance(frame, Pub):
                self._publish(frame)
            else:
                assert isinstance(frame, (Connect, Pong))

    def _unsub(self, frame: Unsub) -> None:
        if frame.after and frame.sid in self._subs:
            self._subs[frame.sid][1] = frame.after
        else:
            self._subs.pop(frame.sid, None)

    def _publish(self, frame: Pub) -> None:
        answers = {"echo": 1, "many": 3}.get(frame.subject, 0)
        for _ in range(answers):
            self.send(frame.reply, frame.data)
        if frame.subject == "nobody":
            self.send(frame.reply, b"", NO_RESPONDERS)
        elif not answers:
            self.send(frame.subject, frame.data)

    def send(self, subject: str, data: bytes, block: bytes = b"") -> None:
        for sid, sub in list(self._subs.items()):
            if matches(sub[0], subject):
                args = (block, data) if block else (data,)
                self.output += (hmsg if block else msg)(subject, sid, *args)
                if sub[1] is not None:
                    sub[1] -= 1
                    if sub[1] == 0:
                        del self._subs[sid]


class Cable:
    """Carries bytes between a wire and its server until both are idle.

    After `cut` bytes from the server the transport is lost, and the next one leads to a new server,
    uncut. The last `slow` bytes before that are read one by one, all others as they were sent.
    """

    def __init__(self, wire: Wire, cut: int | None = None, slow: int = 0) -> None:
        self.wire = wire
        self.servers: list[Server] = []
        self.carried = 0
        self._left = cut
        self._slow = slow

    def pump(self) -> None:
        wire = self.wire
        while True:
            if wire.state == "WAITING":
                wire.ring()
            if any(isinstance(effect, Dial) for effect in wire.effects()):
                self.servers.append(Server())
                wire.opened()
            server = self.servers[-1]
            if wire.state in ("GREETING", "CONNECTED"):
                server.receive(wire.sent())
            data, server.output = server.output, b""
            if not data:
                return
            self._carry(data)

    def _carry(self, data: bytes) -> None:
        if self._left is None:
            self.wire.data(data)
            self.carried += len(data)
            return
        data = data[: self._left]
        fast = max(0, min(len(data), self._left - self._slow))
        chunks = [data[:fast]] * (fast > 0) + [data[i : i + 1] for i in range(fast, len(data))]
        self.wire.data(*chunks)
        self._left -= len(data)
        if self._left == 0:
            self._left = None
            # Data that the adapter has taken belongs to this transport, whether it arrives or not.
            self.servers[-1].receive(self.wire.sent())
            self.wire.lost()
