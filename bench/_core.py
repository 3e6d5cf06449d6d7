"""One client in one scenario of core.py, which starts it and reads its output.

    python bench/_core.py CLIENT SCENARIO URL COUNT SIZE

The arguments and the result are described in _client.py. It also prints `ready` and `go` when the
other side may send the warm-up messages and the measured ones.
"""

from __future__ import annotations

import gc
import resource
from typing import Any

from _client import WARM_UP, Clock, latency, main, say
from _contenders import RUNTIMES, Contender
from _peers import NatsCore, NatsPy, Natsrpy, nats_py
from _raw import Raw

# In the order of the tables.
CONTENDERS: dict[str, type[Contender]] = {
    **RUNTIMES,
    **nats_py(NatsPy),
    "nats-core": NatsCore,
    "natsrpy uvloop": Natsrpy,
    "raw socket": Raw,
}


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
    return await latency(peer.request, bytes(size), count)


async def memory(peer: Contender, count: int, size: int) -> dict[str, float]:
    """Return the megabytes after connecting, and the growth after `count` subscriptions."""
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


SCENARIOS = {each.__name__: each for each in [publish, subscribe, callback, request, memory]}


async def measure(peer: Contender, scenario: str, count: str, size: str) -> dict[str, float]:
    return await SCENARIOS[scenario](peer, int(count), int(size))


if __name__ == "__main__":
    main(CONTENDERS, measure)
