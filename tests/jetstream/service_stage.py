"""A service on a connection without I/O: tasks of a small loop, and a server that is a dict.

A waiting task runs again only if the core wakes it, so a missing wake-up makes a test hang.
`settle` runs all tasks until every one of them waits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.services.service import add_service
from natsproto import Parser, blocking
from natsproto.client import Client
from natsproto.errors import InvalidValue
from natsproto.wire import subjects
from natsproto.wire.frames import Ping, Pub, Sub, Unsub
from tests.connection.support import PONG, Wire
from tests.jetstream.support import Digits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from natsproto.connection.waitable import Waitable


class Cancelled(BaseException):
    """What an event loop throws into a coroutine."""


class Suspend:
    """Awaited: the task waits."""

    def __await__(self):
        yield


class Task:
    """A coroutine that runs whenever it was woken."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine
        self.awake = True
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiters: list[Callable[[], object]] = []

    def wake(self) -> None:
        self.awake = True

    def step(self, thrown: BaseException | None = None) -> None:
        self.awake = False
        try:
            if thrown is not None:
                self.coroutine.throw(thrown)
            else:
                self.coroutine.send(None)
        except StopIteration as stop:
            self.result = stop.value
            self._end()
        except (Exception, Cancelled) as error:
            self.error = error
            self._end()

    def _end(self) -> None:
        self.done = True
        for wake in self.waiters:
            wake()

    def outcome(self) -> Any:
        """Return the result, or the error as a value; it must be done."""
        assert self.done, "it waits"
        return self.result if self.error is None else self.error


class ServiceStage:
    """The port, the loop and the server.

    alone: there are no tasks; while a call waits, the steps of `script` are played
    """

    def __init__(self, up: bool = True, alone: bool = False, **options: Any) -> None:
        self.wire = Wire(Digits(), ping_interval=1e6, **options)
        if up:
            self.wire.up()
        self.connection = self.wire.connection
        self.client = Client(self.connection, self)
        self.alone = alone
        self.blocking = blocking.Client(self.client, self)
        self.locked = 0
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.script: list[Callable[[], object]] = []
        self.subs: dict[int, tuple[str, str]] = {}
        self.pubs: list[Pub] = []
        self.pongs = True
        self.held: list[bytes] = []
        self._parser = Parser(peer="client")

    def service(self, **options: Any) -> Any:
        made = add_service(self.client, **{"name": "s", "version": "1.0.0", **options})
        made.hub.one_thread = self.alone
        return made

    # The port

    @property
    def lock(self) -> ServiceStage:
        return self

    def __enter__(self) -> None:
        self.locked += 1

    def __exit__(self, *exc: object) -> None:
        self.locked -= 1

    def now(self) -> float:
        return self.wire.now

    def ticks(self) -> float:
        return self.wire.now

    def utc_ns(self) -> int:
        return int(self.wire.now * 10**9)

    async def wait(self, waitable: Waitable) -> None:
        if self.alone:
            assert self.script, "it would wait for ever"
            self.script.pop(0)()
            self.pump()
            return
        task = self.current
        assert task is not None
        waitable.waiters.append(task.wake)
        held, self.locked = self.locked, 0  # a wait releases the lock
        try:
            await Suspend()
        finally:
            self.locked = held
            if task.wake in waitable.waiters:
                waitable.waiters.remove(task.wake)

    async def checkpoint(self) -> None:
        pass

    async def turn(self) -> None:
        """Let other tasks run; for handlers."""
        assert self.current is not None
        self.current.awake = True
        await Suspend()

    async def run_all(self, workers: list[Any]) -> None:
        if self.alone:
            raise InvalidValue("one thread")
        me = self.current
        assert me is not None
        tasks = [self.start(worker()) for worker in workers]
        for task in tasks:
            task.waiters.append(me.wake)
        try:
            while not all(task.done for task in tasks):
                await Suspend()
        except Cancelled:
            for task in tasks:
                self.cancel(task)
            raise
        for task in tasks:
            if task.error is not None:
                raise task.error

    def flush_soon(self) -> None:
        self.pump()

    def run_soon(self, work: Callable[[], object]) -> None:
        work()

    def warn(self, text: str) -> None:
        raise AssertionError(text)

    async def aclose(self) -> None:
        pass

    # The loop

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Task:
        task = Task(coroutine)
        self.tasks.append(task)
        return task

    def cancel(self, task: Task) -> None:
        if not task.done:
            before, self.current = self.current, task
            task.step(Cancelled())
            self.current = before

    def settle(self) -> None:
        """Run every task that is awake, until none is."""
        for _ in range(1000):
            self.pump()
            awake = [task for task in self.tasks if task.awake and not task.done]
            if not awake:
                return
            for task in awake:
                self.current = task
                task.step()
                self.current = None
        raise AssertionError("the tasks run and run")

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a call to its end; return the result, or the error as a value."""
        task = self.start(coroutine)
        self.settle()
        return task.outcome()

    # The server

    def pump(self) -> None:
        while True:
            frames = self._parser.feed(self.wire.sent())
            for frame in frames:
                if isinstance(frame, Sub):
                    self.subs[frame.sid] = (frame.subject, frame.queue)
                elif isinstance(frame, Unsub):
                    self.subs.pop(frame.sid, None)
                elif isinstance(frame, Ping):
                    self.held.append(PONG)
                elif isinstance(frame, Pub):
                    self.pubs.append(frame)
            for waitable in self.wire.ready():
                waiters, waitable.waiters = waitable.waiters, []
                for wake in waiters:
                    wake()
            if not (self.held and self.pongs):
                if not frames:
                    return
                continue
            held, self.held = self.held, []
            self.wire.data(*held)

    def send(self, subject: str, data: bytes = b"", reply: str = "r", copies: int = 1) -> None:
        """Deliver a message to the subscription of the subject."""
        self.pump()
        for sid, (pattern, _) in sorted(self.subs.items()):
            if subjects.matches(pattern, subject):
                self.send_to(sid, subject, data, reply, copies)
                break
        else:
            raise AssertionError(f"no subscription to {subject}")

    def send_to(self, sid: int, subject: str, data: bytes, reply: str, copies: int = 1) -> None:
        to = reply + " " if reply else ""
        frame = f"MSG {subject} {sid} {to}{len(data)}\r\n".encode() + data + b"\r\n"
        self.wire.data(frame * copies)

    def deny(self, subject: str) -> None:
        """Have the server revoke the permission to subscribe."""
        self.pump()
        sid = next(sid for sid, pair in self.subs.items() if pair[0] == subject)
        _, queue = self.subs.pop(sid)
        group = f' using queue "{queue}"' if queue else ""
        text = f'Permissions Violation for Subscription to "{subject}"{group}'
        self.wire.data(f"-ERR '{text}'\r\n".encode())

    def answers(self) -> list[tuple[str, bytes, dict[str, str]]]:
        """Return the messages published since the last call: subject, payload, headers."""
        self.pump()
        pubs, self.pubs = self.pubs, []
        return [(pub.subject, pub.data, dict(_items(pub))) for pub in pubs]

    def ask(self, subject: str) -> Any:
        """Return the response to PING, INFO or STATS."""
        self.answers()
        self.send(subject, reply="monitor")
        if not self.alone:
            self.settle()
        [(reply, data, _)] = self.answers()
        assert reply == "monitor"
        return json.loads(data)

    def lose(self) -> None:
        """Break the connection."""
        self.pump()
        self.wire.lost()
        self._parser = Parser(peer="client")
        self.subs = {}
        self.held = []
        self.pump()

    def reconnect(self) -> None:
        if self.wire.state == "WAITING":
            self.wire.ring()
        self.wire.greet().data(PONG)
        self.wire.effects()
        self.pump()


def _items(pub: Pub) -> list[tuple[str, str]]:
    return [] if pub.headers is None else pub.headers.items()


UNAVAILABLE = {
    "Nats-Service-Error": "service stopped before it handled the request",
    "Nats-Service-Error-Code": "503",
}
OVERLOADED = {
    "Nats-Service-Error": "service has too many pending requests",
    "Nats-Service-Error-Code": "503",
}
