"""All calls of the table on one runtime, each with clients of its own, and their verdict.

A theater brings every call to the point where it is ready, and its curtain says what happens then.
Each public coroutine that runs then may take its timeout and a tenth of it, and an allowance for a
busy machine (limits.py).
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from jetstream.errors import FastBatchFailed, PublishesFailed, PublishInDoubt
from natsproto.adapters import poll
from natsproto.errors import ConnectFailed, MessagesUnconfirmed, NatsError, TimeoutExpired
from tests.conformance.runners import RUNNERS, make_runner
from tests.sweep.coroutines import CONNECT
from tests.sweep.limits import TIMEOUT, limit, may_wait
from tests.sweep.stage import Stage
from tests.sweep.tracing import Record, Traced, note, tracing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from natsproto.client import Client
    from natsproto.testing.runner import Runner, Task
    from tests.sweep.coroutines import Call

AT_ONCE = 6
PATIENCE = 90.0
ATTEMPTS = 10
LONGEST = 180.0
# Some calls are made one after the other: each of them may take its timeout.
SILENCE = 12.0
# What a call may raise that got no answer.
EXPECTED = (TimeoutExpired, ConnectFailed, PublishInDoubt, PublishesFailed, FastBatchFailed)


class Over(Exception):
    """The call has been measured: the rest of the function is not needed."""


class Curtain:
    """Counts the calls that are ready, and knows when the server is silent for all of them."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._missing = count
        #: All calls are ready.
        self.raised = False
        #: When the server began to answer again; None: it is silent.
        self.fallen_at: float | None = None

    def arrive(self) -> None:
        """Count a call that is ready, or that failed before."""
        with self._lock:
            self._missing -= 1
            if not self._missing:
                self.silence()
                self.raised = True

    def fall(self) -> None:
        """End the silence."""
        self.fallen_at = time.monotonic()
        self.thaw()

    def silence(self) -> None:
        """Silence the server, if all calls need that at once."""

    def thaw(self) -> None:
        """Let the server answer."""
        raise NotImplementedError


class Idle:
    """A task that does nothing."""

    async def result(self) -> None:
        """Return at once."""

    async def stop(self) -> None:
        """Return at once."""


class _Opening(AbstractAsyncContextManager["Client"]):
    """Connects a client, which is noted as if it were a coroutine."""

    def __init__(self, opening: AbstractAsyncContextManager[Client]) -> None:
        self._opening = opening

    async def __aenter__(self) -> Client:
        client: Client = await note((CONNECT,), self._opening.__aenter__())
        return client

    async def __aexit__(self, *exc: Any) -> bool | None:
        return await self._opening.__aexit__(*exc)


class SilentStage(Stage):
    """Runs the coroutine while the server is silent, and measures it."""

    def __init__(self, theater: Theater, client: Client, other: Client, folder: Path) -> None:
        super().__init__(client, other, folder, theater.timeout)
        self._theater = theater
        self.ready = False
        self.ended = False
        #: The public coroutines that ran.
        self.records: list[Record] = []
        self.error: BaseException | None = None

    async def __call__(self, work: Awaitable[Any]) -> Any:
        theater = self._theater
        self.ready = True
        theater.leave_queue()
        theater.curtain.arrive()
        await theater.begin(self.tag)
        try:
            await Traced(work, self.records)
        except Exception as error:
            self.error = error
        self.ended = True
        theater.end(self.tag)
        raise Over

    def opening(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        return self._theater.opening(self.tag, True, options)

    def waits(self) -> bool:
        """Return whether it waits for something without a timeout."""
        return any(may_wait(each.names) and each.ended is None for each in self.records)

    def start(self, work: Callable[[], Any]) -> Task[Any]:
        async def helping() -> None:
            with suppress(NatsError):  # it ends with its client
                await work()

        if self._theater.adapter == "blocking":
            return Idle()  # its client has one thread, and a frozen server needs no answers
        return self._theater.runner.start(helping)

    async def settled(self) -> None:
        """Do nothing: this is not reached."""


class Theater:
    """Calls on one runtime, by the names of their runs."""

    #: How long calls that are still waiting may take to end when the server answers again.
    aftermath = TIMEOUT

    def __init__(
        self, adapter: str, folder: Path, calls: dict[str, Call], timeout: float = TIMEOUT
    ) -> None:
        self.adapter = adapter
        self.timeout = timeout
        self.runner: Runner = make_runner(adapter)
        self._connect = importlib.import_module(f"natsproto.adapters.{RUNNERS[adapter][0]}").connect
        self._folder = folder
        self.calls = calls
        self.curtain: Curtain
        self.stages: dict[str, SilentStage] = {}
        self.broken: dict[str, str] = {}
        #: How late this machine was, and when that was over.
        self.lags: list[tuple[float, float]] = []
        self._lock = threading.Lock()
        self._preparing = 0

    def address(self, name: str, swept: bool) -> tuple[str, Any]:
        """Return the URL and the options with which a client of a run connects."""
        raise NotImplementedError

    def opening(self, name: str, swept: bool, more: Any) -> _Opening:
        """Return what connects a client of a run."""
        url, options = self.address(name, swept)
        return _Opening(self.runner.open(self._connect, url, options | more))

    async def prepare(self, stage: SilentStage) -> None:
        """Prepare what the run needs, before the call does."""

    async def begin(self, name: str) -> None:
        """Wait until a call that is ready may begin."""

    def silent_at(self, name: str) -> float:
        """Return when the server fell silent for a call; 0.0: before it began."""
        return 0.0

    def end(self, name: str) -> None:
        """Note that a call has ended."""

    async def sleep(self, seconds: float) -> None:
        """Sleep as the runtime does."""
        if self.adapter in ("blocking", "threads"):
            time.sleep(seconds)  # noqa: ASYNC251 - there is no loop
        elif self.adapter == "poll":
            await poll.sleep(seconds)
        elif "trio" in self.adapter:
            import trio

            await trio.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    def _enter_queue(self) -> bool:
        """Return whether a call may prepare itself: with a short timeout, not all can at once."""
        with self._lock:
            free = self._preparing < AT_ONCE
            self._preparing += free
            return free

    def leave_queue(self) -> None:
        """Let another call prepare itself."""
        with self._lock:
            self._preparing -= 1

    async def main(self) -> None:
        tasks = [self.runner.start(lambda name=name: self._run(name)) for name in self.calls]
        deadline = time.monotonic() + PATIENCE
        while not self.curtain.raised:
            assert time.monotonic() < deadline, "the calls do not get ready"
            await self._nap()
        try:
            await self._watch(SILENCE)
        finally:
            self.curtain.fall()
        deadline = time.monotonic() + self.aftermath
        while time.monotonic() < deadline and not self._over():
            await self.sleep(0.01)
        for task in tasks:
            await task.stop()

    async def _watch(self, seconds: float) -> None:
        """Let the calls run, until none of them should."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._settled():
            await self._nap()

    async def _nap(self) -> None:
        """Sleep for a moment, and measure how late this machine is."""
        began = time.monotonic()
        await self.sleep(0.01)
        now = time.monotonic()
        self.lags.append((now - began - 0.01, now))

    def _lag(self, began: float, ended: float) -> float:
        """Return how late this machine was, at most, between these times."""
        return max((lag for lag, when in self.lags if began <= when <= ended + lag), default=0.0)

    def _over(self) -> bool:
        """Return whether all calls have ended."""
        stages = self.stages
        return all(
            name in self.broken or (name in stages and stages[name].ended) for name in self.calls
        )

    def _settled(self) -> bool:
        """Return whether all calls have ended, or wait without a timeout."""
        return all(stage.ended or stage.waits() for stage in self.stages.values())

    async def _perform(self, name: str, stage: SilentStage) -> None:
        for _ in range(ATTEMPTS):
            try:
                await stage.open()
                await self.calls[name].work(stage)
            except TimeoutExpired:  # noqa: PERF203 - of a preparation, on a busy machine
                if stage.ready:
                    raise
        raise AssertionError(f"{name} did not get ready in {ATTEMPTS} attempts")

    async def _run(self, name: str) -> None:
        folder = self._folder / name
        folder.mkdir()
        while not self._enter_queue():
            await self.sleep(0.01)
        try:
            async with AsyncExitStack() as stack:

                async def connect(swept: bool = True, **options: Any) -> Client:
                    return await stack.enter_async_context(self.opening(name, swept, options))

                stage = SilentStage(self, await connect(), await connect(swept=False), folder)
                stage.new_client = connect  # type: ignore[method-assign]
                stage.tag = name
                self.stages[name] = stage
                await self.prepare(stage)
                await self._perform(name, stage)
        except (Over, MessagesUnconfirmed):
            pass  # the server may still be silent when the clients are closed
        except Exception as error:
            self.broken[name] = repr(error)
        finally:
            if name not in self.stages or not self.stages[name].ready:
                self.leave_queue()
                self.curtain.arrive()

    def problems(self) -> list[str]:
        """Run all calls, and return what is wrong with them."""
        with tracing():
            self.runner.run(self.main, LONGEST)
        found = [f"{name}: {error}" for name, error in self.broken.items()]
        for name, stage in self.stages.items():
            if name not in self.broken:
                found += [f"{name}: {problem}" for problem in self._judge(name, stage)]
        return found

    def _judge(self, name: str, stage: SilentStage) -> list[str]:
        """Return what is wrong with a call."""
        if stage.error is not None and not self.expects(self.calls[name], stage.error):
            return [repr(stage.error)]
        return [problem for each in stage.records if (problem := self._late(name, each))]

    def _late(self, name: str, record: Record) -> str:
        """Return what is wrong with the end of a coroutine, or ""."""
        if may_wait(record.names):
            return ""
        fallen_at = self.curtain.fallen_at
        assert fallen_at is not None
        ended = min(record.ended or fallen_at, fallen_at)
        began = max(record.began, self.silent_at(name))
        lag = self._lag(began, ended)
        if ended - began <= limit(record.names) + 2 * lag:
            return ""
        return f"{record.names[0]} took {ended - began:.2f} s (lag {lag:.2f} s)"

    def expects(self, call: Call, error: BaseException) -> bool:
        """Return whether a call may raise this."""
        return isinstance(error, EXPECTED)
