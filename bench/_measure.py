"""One contender, one scenario, in a process of its own: core.py starts it and reads its lines.

    python bench/_measure.py CONTENDER SCENARIO URL COUNT SIZE

It says `ready` and `go` when the other side may send what warms it up and what is measured, and
`absent` if the library is not installed; its last line is the result in JSON.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from typing import Any

from _contenders import CONTENDERS, Contender

WARM_UP = 20  # one in so many messages goes ahead


class Clock:
    """Wall time and the CPU time of the whole process, system time and other threads included."""

    def __init__(self) -> None:
        gc.collect()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self, count: int) -> dict[str, float]:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return {"rate": count / wall, "cpu": cpu / count * 1e6}


async def publish(peer: Contender, count: int, size: int) -> dict[str, float]:
    data = bytes(size)
    await peer.publish(data, count // WARM_UP)
    clock = Clock()
    await peer.publish(data, count)
    return clock.stop(count)


async def subscribe(peer: Contender, count: int, size: int) -> dict[str, float]:
    return await receive(peer, count, await peer.subscribe(), peer.take)


async def callback(peer: Contender, count: int, size: int) -> dict[str, float]:
    return await receive(peer, count, await peer.subscribe_callback(), peer.take_callback)


async def receive(peer: Contender, count: int, subscription: Any, take: Any) -> dict[str, float]:
    await peer.flush()
    say("ready")
    await take(subscription)
    clock = Clock()
    say("go")
    got = await take(subscription)
    result = clock.stop(count)
    result["lost"] = count - got
    return result


async def request(peer: Contender, count: int, size: int) -> dict[str, float]:
    data = bytes(size)
    await peer.request(data, max(20, count // WARM_UP))
    clock = Clock()
    times = sorted(await peer.request(data, count))
    result = clock.stop(count)
    result["p50"] = times[count // 2] * 1e6
    result["p99"] = times[count * 99 // 100] * 1e6
    return result


async def memory(peer: Contender, count: int, size: int) -> dict[str, float]:
    """Megabytes after connecting, and how many more after `count` subscriptions."""
    before = resident()
    subscriptions = [await peer.subscribe(f"bench.many.{number}") for number in range(count)]
    await peer.flush()
    return {"connected": before, "more": resident() - before, "count": len(subscriptions)}


def resident() -> float:
    gc.collect()
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:  # not Linux: the most there ever was, in kilobytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def say(word: str) -> None:
    print(word, flush=True)


SCENARIOS = {each.__name__: each for each in [publish, subscribe, callback, request, memory]}


async def main(peer: Contender) -> None:
    _, _, scenario, url, count, size = sys.argv
    try:
        await peer.open(url)
    except ImportError:
        say("absent")
        return
    result = await SCENARIOS[scenario](peer, int(count), int(size))
    say(json.dumps(result))
    await peer.close()


if __name__ == "__main__":
    contender = CONTENDERS[sys.argv[1]][0]()
    try:
        contender.run(main(contender))
    except ImportError:  # of the event loop
        say("absent")
