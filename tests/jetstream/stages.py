"""The API on a connection without I/O: a script plays while a call waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.pull.api import Puller
from natsproto.errors import NatsError
from natsproto.port import run_sync
from natsproto.session import Session
from tests.connection.support import Wire, hmsg

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from natsproto.connection.waitable import Waitable

ACK = "$JS.ACK.S.C.1.%d.%d.1794786870000000000.0"


class Cancelled(BaseException):
    """The exception that an event loop throws into a canceled coroutine."""


class Stage:
    """A port and everything behind it: its `wait` plays one step of the script."""

    def __init__(self, up: bool = True) -> None:
        self.wire = Wire()
        if up:
            self.wire.up()
        self.session = Session(self.wire.connection, self)
        self.prefix = "$JS.API"
        self.timeout = 5.0
        self.script: list[Callable[[], object]] = []
        self.checkpoints = 0
        self.warned: list[str] = []
        self.later: list[Callable[[], object]] = []

    # The port

    def now(self) -> float:
        return self.wire.now

    async def wait(self, waitable: Waitable) -> None:
        assert self.script, "it would wait for ever"
        self.wire.ready()
        while self.script:
            self.script.pop(0)()
            if waitable in self.wire.ready():
                return
        raise AssertionError("it was not woken")

    async def checkpoint(self) -> None:
        self.checkpoints += 1

    def flush_soon(self) -> None:
        self.wire.look()

    def ticks(self) -> float:
        return self.wire.now

    def utc_ns(self) -> int:
        return int(self.wire.now * 10**9)

    def run_soon(self, work: Callable[[], object]) -> None:
        self.later.append(work)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    async def aclose(self) -> None:
        pass

    # The script

    def run(self, call: Coroutine[Any, Any, Any], *script: Callable[[], object]) -> Any:
        """Return the result, or the error; all of the script is played."""
        self.script = list(script)
        try:
            result = run_sync(call)
        except (NatsError, Cancelled, StopAsyncIteration) as error:
            result = error
        assert self.script == []
        return result

    def puller(self, **options: Any) -> Puller:
        return Puller(self, "S", "C", options.pop("ack_none", False), **options)

    def sent(self) -> list[str]:
        """Return what was sent: SUB, UNSUB, PING, the bodies of pulls, and other payloads."""
        words = []
        for line in self.wire.sent().decode().split("\r\n"):
            if line.startswith("{"):
                body = json.loads(line)
                words.append("pull %d" % body["batch"])
            elif line and not line.startswith(("PUB", "CONNECT")):
                words.append(line.split(" ")[0])
        return words


def messages(stage: Stage, *numbers: int, sid: int = 1, at: float | None = None) -> Any:
    """Return a step: these messages arrive together."""

    def step() -> None:
        frames = []
        for number in numbers:
            reply = ACK % (number, number)
            frames.append(b"MSG s %d %s 1\r\nx\r\n" % (sid, reply.encode()))
        stage.wire.data(b"".join(frames), at=at)

    return step


def status(stage: Stage, token: int, line: str, sid: int = 1, at: float | None = None) -> Any:
    block = f"NATS/1.0 {line}\r\n\r\n".encode()
    inbox = "_INBOX." + "0" * 22
    return lambda: stage.wire.data(hmsg(f"{inbox}.{token}", sid, block), at=at)


def timer(stage: Stage, at: float) -> Any:
    return lambda: stage.wire.timer(at=at)


def cancel() -> None:
    raise Cancelled
