"""What core.py asks of a client, and natsproto on every runtime as one; others are in _peers.py.

Each client is used in the form that its own users write, and loops that are measured call the
library directly. Those of a blocking client are coroutines here that never suspend, so that one
driver runs all of them. A client whose library is not installed raises ImportError when it opens.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import Any

from _client import timed, timed_plainly

from natsproto.port import run_sync

SUBJECT = "bench.orders.new"
SERVICE = "bench.service"
NO_LIMIT = 1 << 40  # nobody is to drop messages for want of room


class Contender:
    """Messages are taken until an empty one comes, which only the other side's last one is."""

    run: Any = staticmethod(asyncio.run)
    client: Any
    payload: Any = attrgetter("data")  # of a message

    async def open(self, url: str) -> None:
        raise NotImplementedError

    async def publish(self, data: bytes, count: int) -> None:
        """Publish that many and wait until the server has seen them."""
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        raise NotImplementedError

    async def take(self, subscription: Any) -> int:
        """Iterate; returns how many came before the empty one."""
        count = 0
        async for msg in subscription:
            if not msg.data:
                break
            count += 1
        return count

    async def subscribe_callback(self) -> Any:
        """The same with a callback, where the library has such a thing."""
        return await self.subscribe()

    async def take_callback(self, subscription: Any) -> int:
        return await self.take(subscription)

    async def request(self, data: bytes, count: int) -> list[float]:
        """One request after the other; returns how long each took."""
        return await timed(
            self.client.request,
            SERVICE,
            data,
            timeout=2.0,
            count=count,
            check=lambda msg: self.payload(msg) == data,
        )

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
        with self.client.corked():  # else each of them is a system call
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
    """Every runtime, with what a benchmark adds: to those with an event loop, to the others."""
    return {
        name: type(name, (plain if issubclass(runtime, Blocking) else awaited, runtime), {})
        for name, runtime in RUNTIMES.items()
    }
