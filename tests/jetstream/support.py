"""A client whose server is a list of answers, and whose time is simulated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from natsproto import Parser, blocking
from natsproto.client import Client
from natsproto.port import run_sync
from natsproto.wire import subjects
from natsproto.wire.frames import Ping, Pub, Sub, Unsub
from tests.connection.support import PONG, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.connection.waitable import Waitable


class Status:
    """An answer that is a header block, perhaps with a payload."""

    def __init__(self, line: str, data: bytes = b"", **headers: object) -> None:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.block = "\r\n".join([f"NATS/1.0 {line}".strip(), *lines, "", ""]).encode()
        self.data = data


NOBODY = Status("503")
SILENCE: list[Any] = []


class Delivery:
    """A message of a stream, as a consumer delivers it: under its own subject."""

    def __init__(self, subject: str, ack: str, data: bytes = b"", block: bytes = b"") -> None:
        size = len(block) + len(data)
        sizes = f"{len(block)} {size}" if block else f"{size}"
        self.line = f"{'HMSG' if block else 'MSG'} {subject} %d {ack} {sizes}"
        self.data = block + data


class Lost:
    """Breaks the connection instead of answering."""


class Digits:
    """Randomness for names: the first token is all 0, the next one all 1, and so on."""

    def __init__(self) -> None:
        self.count = 0

    def random(self) -> float:
        return 0.0

    def randrange(self, limit: int) -> int:
        self.count += 1
        return (self.count - 1) // 22 % limit


class Stage:
    """A stage that plays the port and the server of a client.

    Each publish with a reply subject takes the next of the answers: a dict, which is sent as JSON,
    bytes, a Status, a Delivery, a list of several, or SILENCE. `asked` has the messages published
    since the last call, as (subject, body): JSON is decoded, and an empty body is None. When a
    caller waits and no answer is left, time advances to the next deadline.
    """

    def __init__(self, *answers: Any, **info: Any) -> None:
        self.wire = Wire(Digits(), ping_interval=1e6).up(
            **{"jetstream": True, "api_lvl": 5, **info}
        )
        self.connection = self.wire.connection
        self.answers = list(answers)
        self.client = Client(self.connection, self)
        self.blocking = blocking.Client(self.client, self)
        self.waits = 0
        self._subs: dict[int, str] = {}
        self._parser = Parser(peer="client")
        self._pubs: list[Pub] = []

    # The port

    lock = property(lambda self: self)
    alone = True
    joins = False
    entered = 0  # how often the lock was taken

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *exc: object) -> None:
        pass

    def now(self) -> float:
        return self.wire.now

    def flush_soon(self) -> None:
        pass

    def ticks(self) -> float:
        return self.wire.now

    def utc_ns(self) -> int:
        return int(self.wire.now * 10**9)

    def run_soon(self, work: Callable[[], object]) -> None:
        work()

    def warn(self, text: str) -> None:
        """Ignore warnings: tests drop objects on purpose."""

    async def checkpoint(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def wait(self, waitable: Waitable) -> None:
        self.waits += 1
        assert self.waits < 10_000, "it waits for ever"
        if not self.serve():
            self.wire.ring()

    def serve(self) -> bool:
        """Answer the sent requests; return False if there were none."""
        frames = self._parser.feed(self.wire.sent())
        answered = False
        for frame in frames:
            if isinstance(frame, Sub):
                self._subs[frame.sid] = frame.subject
            elif isinstance(frame, Unsub):
                self._subs.pop(frame.sid, None)
            elif isinstance(frame, Ping):
                self.wire.data(PONG)
                answered = True
            elif isinstance(frame, Pub):
                self._pubs.append(frame)
                if frame.raw_reply:
                    answered = self._answer(frame.reply) or answered
        return answered

    def _answer(self, reply: str) -> bool:
        assert self.answers, f"nobody expects {self._pubs[-1]}"
        answer = self.answers.pop(0)
        if isinstance(answer, Lost):
            self.lose()
            return True
        answers = answer if isinstance(answer, list) else [answer]
        if not answers:
            return False
        subs = self._subs.items()
        sid = next(sid for sid, subject in subs if subjects.matches(subject, reply))
        for each in answers:
            if isinstance(each, Delivery):
                line = each.line % sid
                self.wire.data(line.encode() + b"\r\n" + each.data + b"\r\n")
                continue
            block, data = b"", each
            if isinstance(each, dict):
                data = json.dumps(each).encode()
            elif isinstance(each, Status):
                block, data = each.block, each.data
            head = f"HMSG {reply} {sid} {len(block)} {len(block) + len(data)}"
            if not block:
                head = f"MSG {reply} {sid} {len(data)}"
            self.wire.data(head.encode() + b"\r\n" + block + data + b"\r\n")
        return True

    def lose(self) -> None:
        """Break the connection and open the next one at once."""
        self.wire.lost()
        self.forget_transport()
        self.wire.greet(jetstream=True, api_lvl=5).data(PONG)
        self.wire.effects()

    def forget_transport(self) -> None:
        """Discard the server's state of the lost connection."""
        self._parser = Parser(peer="client")
        self._subs = {}

    # What tests ask

    def run(self, coroutine: Any) -> Any:
        return run_sync(coroutine)

    @property
    def pubs(self) -> list[Pub]:
        """Return the messages published since the last call."""
        self.serve()
        pubs, self._pubs = self._pubs, []
        return pubs

    @property
    def asked(self) -> list[tuple[str, Any]]:
        """The same in short."""
        return [(pub.subject, body(pub.data)) for pub in self.pubs]

    def quiet(self) -> bool:
        """Return whether nothing was sent and every answer was used."""
        return self.asked == [] and self.answers == []


def body(data: bytes) -> Any:
    if data[:1] in (b"{", b"["):
        return json.loads(data)
    return data or None


class SlowStage(Stage):
    """A server that takes two seconds for each answer."""

    def _answer(self, reply: str) -> bool:
        if self.answers[0] != SILENCE:
            self.wire.now += 2.0
        return super()._answer(reply)
