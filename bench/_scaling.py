"""One client with many subscriptions or consumers; scaling.py starts it.

    python bench/_scaling.py CLIENT SCENARIO URL COUNT NUMBER

The arguments and the result are described in _client.py. In the scenario `tasks` it also prints
`ready` and `go`, like _core.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from _client import WARM_UP, Clock, main, say
from _contenders import RUNTIMES, Blocking, Contender, Tally
from _peers import NatsCore, NatsPy, nats_py

STREAM = "MANY"
BUFFER = 100


class Many(Contender):
    """A client that pulls from many consumers of one stream, each in a task."""

    async def bind(self, name: str) -> Any:
        raise NotImplementedError

    async def consume(self, consumer: Any, count: int, tally: Tally) -> None:
        """Take and acknowledge that many messages of one consumer."""
        async for msg in consumer:
            await msg.ack()
            tally.add()
            count -= 1
            if not count:
                break


class Ours(Many):
    async def bind(self, name: str) -> Any:
        from jetstream import JetStream

        consumer = JetStream(self.client).bind_consumer(STREAM, name)
        return consumer.consume(max_messages=BUFFER)


class ManyNatsPy(Many, NatsPy):
    async def bind(self, name: str) -> Any:
        return await self.client.jetstream().pull_subscribe_bind(name, STREAM)

    async def consume(self, consumer: Any, count: int, tally: Tally) -> None:
        while count:
            for msg in await consumer.fetch(min(BUFFER, count), timeout=5):
                await msg.ack()
                tally.add()
                count -= 1


class ManyNatsCore(Many, NatsCore):
    async def bind(self, name: str) -> Any:
        from nats.jetstream import new

        consumer = await new(self.client).get_consumer(STREAM, name)
        return await consumer.messages(max_messages=BUFFER)


# A task for each subscription needs an event loop. natsrpy is left out: after a flush, it does not
# receive from all of its subscriptions yet.
CONTENDERS: dict[str, Any] = {
    **{
        name: type(name, (Ours, runtime), {})
        for name, runtime in RUNTIMES.items()
        if not issubclass(runtime, Blocking)
    },
    **nats_py(ManyNatsPy),
    "nats-core": ManyNatsCore,
}


def ahead_of(count: int, number: int) -> int:
    """Return the number of warm-up messages: the same for each subscription."""
    return max(1, count // WARM_UP // number) * number


async def tasks(peer: Many, count: int, number: int) -> dict[str, float]:
    subscriptions = [await peer.subscribe(f"bench.many.{each}") for each in range(number)]
    await peer.flush()
    tally = Tally(ahead_of(count, number), peer.event())
    result: dict[str, float] = {}

    async def drain(subscription: Any) -> None:
        async for _ in subscription:
            tally.add()

    async def follow() -> None:
        nonlocal tally
        say("ready")
        await tally.done.wait()
        tally = Tally(count, peer.event())
        clock = Clock()
        say("go")
        await tally.done.wait()
        result.update(clock.stop(count))

    await peer.beside([partial(drain, each) for each in subscriptions], follow)
    return result


async def consumers(peer: Many, count: int, number: int) -> dict[str, float]:
    bound = [await peer.bind(f"c{each}") for each in range(number)]
    tally = Tally(count, peer.event())
    clock = Clock()
    work = [partial(peer.consume, each, count // number, tally) for each in bound]
    await peer.beside(work, tally.done.wait)
    await peer.flush()
    return clock.stop(count)


SCENARIOS = {each.__name__: each for each in [tasks, consumers]}


async def measure(peer: Any, scenario: str, count: str, number: str) -> dict[str, float]:
    return await SCENARIOS[scenario](peer, int(count), int(number))


if __name__ == "__main__":
    main(CONTENDERS, measure)
