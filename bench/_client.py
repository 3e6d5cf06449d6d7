"""The code shared by scripts that run one client in one scenario, in a separate process.

    python bench/_SCRIPT.py CLIENT SCENARIO URL WHAT...

The last line is the result in JSON, or `absent` if the library is not installed.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from _contenders import Contender

WARM_UP = 20  # one in so many messages goes ahead


def main(clients: Mapping[str, type[Contender]], measure: Callable[..., Any]) -> None:
    """Run `measure(client, scenario, *what)`, which returns the result, with a client connected."""
    name, scenario, url, *what = sys.argv[1:]
    peer = clients[name]()

    async def run() -> None:
        try:
            await peer.open(url)
        except ImportError:
            say("absent")
            return
        say(json.dumps(await measure(peer, scenario, *what)))
        await peer.close()

    try:
        peer.run(run())
    except ImportError:  # of the event loop
        say("absent")


def say(word: str) -> None:
    print(word, flush=True)


class Clock:
    """Measures wall time and the CPU time of the process, including system time and all threads."""

    def __init__(self) -> None:
        gc.collect()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self, count: int) -> dict[str, float]:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return {"rate": count / wall, "cpu": cpu / count * 1e6}


async def latency(work: Callable[..., Any], data: bytes, count: int) -> dict[str, float]:
    """Time the calls of `work(data, count)`, which makes one after the other."""
    await work(data, warm_up(count))
    clock = Clock()
    times = sorted(await work(data, count))
    result = clock.stop(count)
    result["p50"] = times[count // 2] * 1e6
    result["p99"] = times[count * 99 // 100] * 1e6
    return result


def warm_up(count: int) -> int:
    """Return the number of warm-up calls for sequential scenarios."""
    return max(20, count // WARM_UP)


async def timed(
    call: Callable[..., Awaitable[Any]], *args: Any, count: int, check: Any = None, **options: Any
) -> list[float]:
    """Return how long each call took; `check` inspects each result while the clock is stopped."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        result = await call(*args, **options)
        times.append(time.perf_counter() - start)
        assert check is None or check(result), result
    return times


def timed_plainly(
    call: Callable[..., Any], *args: Any, count: int, check: Any = None
) -> list[float]:
    """Do the same for a call that blocks."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        result = call(*args)
        times.append(time.perf_counter() - start)
        assert check is None or check(result), result
    return times
