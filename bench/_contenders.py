"""The interface of a client for core.py, and natsproto on every runtime; others are in _peers.py.

Each client is used in the way that its own users would write, and measured loops call the library
directly. The loops of a blocking client are coroutines that never suspend, so that one driver runs
all of them. A client whose library is not installed raises ImportError when it is opened.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from _client import timed, timed_plainly

from natsproto.port import run_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SUBJECT = "bench.orders.new"
SERVICE = "bench.service"
NO_LIMIT = 1 << 40  # so that no client drops messages


class Tally:
    """Counts messages; `done` is set when the expected number has arrived."""

    def __init__(self, expected: int, done: Any) -> None:
        self._left = expected
        self.done = done

    def add(self) -> None:
        self._left -= 1
        if not self._left:
            self.done.set()


class Contender:
    """A client to compare.

    It takes messages until an empty one arrives, which is the last of the other side.
    """

    run: Any = staticmethod(asyncio.run)
    client: Any
    payload: Any = attrgetter("data")  # of a message

    async def open(self, url: str) -> None:
        raise NotImplementedError

    async def publish(self, data: bytes, count: int) -> None:
        """Publish that many messages and wait until the server has received them."""
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        raise NotImplementedError

    async def take(self, subscription: Any) -> int:
        """Iterate; return how many messages arrived before the empty one."""
        count = 0
        async for msg in subscription:
            if not msg.data:
                break
            count += 1
        return count

    async def subscribe_callback(self) -> Any:
        """Subscribe with a callback, if the library supports that."""
        return await self.subscribe()

    async def take_callback(self, subscription: Any) -> int:
        return await self.take(subscription)

    async def request(self, data: bytes, count: int) -> list[float]:
        """Make one request after the other; return how long each took."""
        return await timed(
            self.client.request,
            SERVICE,
            data,
            timeout=2.0,
            count=count,
            check=lambda msg: self.payload(msg) == data,
        )

    async def beside(self, work: list[Callable[[], Awaitable[Any]]], main: Any) -> None:
        """Run each piece of work in a task, and cancel them all when `main()` returns."""
        tasks = [asyncio.ensure_future(each()) for each in work]
        await main()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def event(self) -> Any:
        return asyncio.Event()

    async def flush(self) -> None:
        await self.client.flush()

    async def close(self) -> None:
        await self.client.close()


def on_uvloop(main: Any) -> Any:
    import uvloop

    return uvloop.run(main)


class OnAsyncio(Contender):
    """natsproto on asyncio."""

    async def open(self, url: str) -> None:
        from natsproto.adapters.asyncio import connect

        self.client = await connect(url)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(subject, max_msgs=NO_LIMIT, max_bytes=NO_LIMIT)

    async def take(self, subscription: Any) -> int:
        count = await super().take(subscription)
        assert not subscription.dropped
        return count

    async def flush(self) -> None:
        await self.client.flush(60.0)


class OnUvloop(OnAsyncio):
    run = staticmethod(on_uvloop)


class OnTrio(OnAsyncio):
    """natsproto on trio."""

    @staticmethod
    def run(main: Any) -> Any:
        import trio

        async def wait_for() -> Any:
            return await main

        return trio.run(wait_for)

    async def open(self, url: str) -> None:
        from natsproto.adapters.trio import connect

        self._opening = connect(url)
        self.client = await self._opening.__aenter__()

    async def beside(self, work: list[Callable[[], Awaitable[Any]]], main: Any) -> None:
        import trio

        async with trio.open_nursery() as nursery:
            for each in work:
                nursery.start_soon(each)
            await main()
            nursery.cancel_scope.cancel()

    def event(self) -> Any:
        import trio

        return trio.Event()

    async def close(self) -> None:
        await self._opening.__aexit__(None, None, None)


class Blocking(Contender):
    """natsproto without an event loop."""

    run = staticmethod(run_sync)

    async def open(self, url: str) -> None:
        from natsproto.adapters.blocking import connect

        self.client = connect(url)

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        with self.client.corked():  # otherwise each of them is a system call
            for _ in range(count):
                publish(SUBJECT, data)
        await self.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return self.client.subscribe(subject, max_msgs=NO_LIMIT, max_bytes=NO_LIMIT)

    async def take(self, subscription: Any) -> int:
        count = 0
        for msg in subscription:
            if not msg.data:
                break
            count += 1
        assert not subscription.dropped
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(
            self.client.request, SERVICE, data, count=count, check=lambda msg: msg.data == data
        )

    async def flush(self) -> None:
        self.client.flush(60.0)

    async def close(self) -> None:
        self.client.close()


class Threads(Blocking):
    """natsproto with a thread that does the I/O."""

    async def open(self, url: str) -> None:
        from natsproto.adapters.threads import connect

        self.client = connect(url)


# In the order of the tables.
RUNTIMES: dict[str, type[Contender]] = {
    "natsproto asyncio": OnAsyncio,
    "natsproto uvloop": OnUvloop,
    "natsproto trio": OnTrio,
    "natsproto blocking": Blocking,
    "natsproto threads": Threads,
}


def natsproto(awaited: type, plain: type) -> dict[str, type[Any]]:
    """Return every runtime, with the given additions for those with and without an event loop."""
    return {
        name: type(name, (plain if issubclass(runtime, Blocking) else awaited, runtime), {})
        for name, runtime in RUNTIMES.items()
    }
