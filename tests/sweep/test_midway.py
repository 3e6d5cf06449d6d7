"""Every public call ends in time if the server falls silent in the middle of its dialogue.

Each run of a call has an account and a proxy of its own. The proxy counts the frames that the
server sends after the call has begun, and after some of them it holds back the rest: at the first,
the middle and the last boundary of the dialogue. At the middle one half of the next frame arrives.
The first boundary of all, before any answer, is that of test_liveness.py. The time of a
public coroutine counts from the silence on: until then it depends on how fast the server answers.

How many frames there are is found by running each call undisturbed, which must succeed.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from jetstream.streams import snapshot_machine
from natsproto.testing import Server
from tests.soak.partitions import Proxies, Proxy
from tests.sweep.limits import TIMEOUT
from tests.sweep.stage import furnish
from tests.sweep.test_coroutines import CALLS
from tests.sweep.theater import Curtain, Theater

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sweep.coroutines import Call
    from tests.sweep.theater import SilentStage

UNDISTURBED = 5.0  # the timeout of calls that are counted
RUNS = 3  # of a call, at most
CONTINUE = 15.0
ACCOUNTS = {
    f"A{number}": {"jetstream": "enabled", "users": [{"user": f"A{number}", "password": "pw"}]}
    for number in range(len(CALLS) * (1 + RUNS))
}


class Cut(NamedTuple):
    """Where a dialogue ends: after so many frames, and perhaps half of the next one."""

    frames: int
    inside: bool = False


NEVER = Cut(1_000_000)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return a line, with its payload if it has one."""
    line = await reader.readuntil(b"\r\n")
    if line.startswith((b"MSG ", b"HMSG ")):
        return line + await reader.readexactly(int(line.split()[-1]) + 2)
    return line


class Hush(Proxy):
    """Forwards frames to a client, and holds them back after some of those of the call."""

    def __init__(self, port: int, cut: Cut) -> None:
        super().__init__(port)
        self._cut = cut
        self.begun = False
        #: The frames of the call that were forwarded.
        self.frames = 0
        #: When the silence began; None: it has not.
        self.silent_at: float | None = None
        self._released = asyncio.Event()

    async def release(self) -> None:
        """Forward what was held back, and everything from now on."""
        self._released.set()

    async def _copy_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(reader)
                # The server pings when it likes.
                if self.begun and not frame.startswith(b"PING"):
                    if self.frames == self._cut.frames and self.silent_at is None:
                        self.silent_at = time.monotonic()
                        half = len(frame) // 2 * self._cut.inside
                        writer.write(frame[:half])
                        frame = frame[half:]
                    self.frames += self.silent_at is None
                if self.silent_at is not None:
                    await self._released.wait()
                writer.write(frame)
                await writer.drain()
        writer.transport.abort()


class Release(Curtain):
    """Ends the silence of all proxies. It begins with each call, in its own proxy."""

    def __init__(self, count: int, proxies: Proxies, hushes: dict[str, Hush]) -> None:
        super().__init__(count)
        self._proxies = proxies
        self._hushes = hushes

    def thaw(self) -> None:
        for each in self._hushes.values():
            self._proxies.call(each.release)


class Stalls(Theater):
    """Runs of calls, each with an account and a proxy."""

    aftermath = CONTINUE

    def __init__(
        self,
        adapter: str,
        stand: Stand,
        folder: Path,
        runs: dict[str, tuple[Call, Cut]],
        **options: Any,
    ) -> None:
        super().__init__(
            adapter, folder, {name: call for name, (call, _) in runs.items()}, **options
        )
        self._stand = stand
        self.hushes: dict[str, Hush] = {}
        #: How many frames of the dialogue the client got, by run.
        self.frames: dict[str, int] = {}
        self._urls: dict[str, str] = {}
        self._accounts: dict[str, str] = {}
        for name, (_, cut) in runs.items():
            hush = self.hushes[name] = Hush(stand.server.port, cut)
            self._urls[name] = stand.proxies.start(hush)
            self._accounts[name] = stand.accounts.pop()
        self.curtain = Release(len(runs), stand.proxies, self.hushes)

    def address(self, name: str, swept: bool) -> tuple[str, Any]:
        url = self._urls[name] if swept else self._stand.server.url
        return url, {"user": self._accounts[name], "password": "pw"}

    async def prepare(self, stage: SilentStage) -> None:
        await furnish(stage.other)

    async def begin(self, name: str) -> None:
        self.hushes[name].begun = True

    def silent_at(self, name: str) -> float:
        return self.hushes[name].silent_at or 0.0

    def end(self, name: str) -> None:
        self.frames[name] = self.hushes[name].frames

    def expects(self, call: Call, error: BaseException) -> bool:
        # A call that the server refuses may have got that answer.
        return call.fails or super().expects(call, error)


class Counting(Stalls):
    """Calls that nothing disturbs."""

    def expects(self, call: Call, error: BaseException) -> bool:
        return call.fails


class Stand:
    """A server with many accounts, and the proxies to it."""

    def __init__(self) -> None:
        # Hundreds of clients connect at once, on a machine that does other things, too.
        config = {"jetstream": "enabled", "accounts": ACCOUNTS, "authorization": {"timeout": 30}}
        self.server = Server(config=config)
        self.proxies = Proxies()
        self.accounts = list(ACCOUNTS)

    def stop(self) -> None:
        self.proxies.stop()
        self.server.stop()


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Counting:
    """Run each call undisturbed; `frames` has how many frames its dialogue has."""
    stand = Stand()
    try:
        runs = {name: (call, NEVER) for name, call in CALLS.items()}
        counting = Counting(
            "asyncio", stand, tmp_path_factory.mktemp("undisturbed"), runs, timeout=UNDISTURBED
        )
        problems = counting.problems()
    finally:
        stand.stop()
    assert not problems, "\n".join(problems)
    return counting


def test_calls_run_what_they_cover(undisturbed):
    ran = {
        name: {each for record in stage.records for each in record.names}
        for name, stage in undisturbed.stages.items()
    }
    assert {
        name: missing
        for name, call in CALLS.items()
        if (missing := sorted(set(call.covers) - ran[name]))
    } == {}


def cuts(frames: int) -> dict[str, Cut]:
    """Return the boundaries at which a dialogue is cut."""
    if frames < 2:
        return {}
    middle = Cut(frames // 2, inside=True)
    return {"first": Cut(1), "middle": middle, "last": Cut(frames - 1)}


@pytest.mark.parametrize(
    ("adapter", "places"),
    [("asyncio", ["first", "middle", "last"]), ("trio", ["middle"]), ("blocking", ["middle"])],
)
def test_a_server_that_falls_silent(adapter, places, undisturbed, stand, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_machine, "SILENCE", TIMEOUT)  # 30 s, which nothing else takes
    runs = {
        f"{name}-{place}": (CALLS[name], cut)
        for name, count in undisturbed.frames.items()
        for place, cut in cuts(count).items()
        if place in places
    }
    stalls = Stalls(adapter, stand, tmp_path, runs)
    problems = stalls.problems()
    assert not problems, "\n".join(problems)
    # Without helpers, some calls of the blocking client get no answers at all.
    cut = [name for name, hush in stalls.hushes.items() if hush.silent_at is not None]
    assert len(cut) > 0.9 * len(runs), sorted(set(runs) - set(cut))
    # Those that wait without a timeout continue.
    assert [name for name, stage in stalls.stages.items() if not stage.ended] == []
