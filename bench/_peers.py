"""The other clients that are compared, with the interface of _contenders.py."""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import Any, ClassVar

from _contenders import NO_LIMIT, SUBJECT, Contender, on_uvloop


class NatsPy(Contender):
    limits: ClassVar = {"pending_msgs_limit": NO_LIMIT, "pending_bytes_limit": NO_LIMIT}

    async def open(self, url: str) -> None:
        import nats

        self.client = await nats.connect(url)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return (await self.client.subscribe(subject, **self.limits)).messages

    async def subscribe_callback(self) -> Any:
        results: asyncio.Queue[int] = asyncio.Queue()
        count = 0

        async def callback(msg: Any) -> None:
            nonlocal count
            if msg.data:
                count += 1
            else:
                results.put_nowait(count)
                count = 0

        await self.client.subscribe(SUBJECT, cb=callback, **self.limits)
        return results

    async def take_callback(self, subscription: Any) -> int:
        count: int = await subscription.get()
        return count

    async def flush(self) -> None:
        await self.client.flush(60)


class NatsCore(Contender):
    async def open(self, url: str) -> None:
        from nats.client import connect

        self.client = await connect(url)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(
            subject, max_pending_messages=None, max_pending_bytes=None
        )


class Natsrpy(Contender):
    """natsrpy, which is written in Rust and awaited from asyncio."""

    run = staticmethod(on_uvloop)
    payload = attrgetter("payload")

    async def open(self, url: str) -> None:
        from natsrpy import Nats

        self.client = Nats([url])
        await self.client.startup()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(subject).detatch()

    async def take(self, subscription: Any) -> int:
        count = 0
        async for msg in subscription:
            if not msg.payload:
                break
            count += 1
        return count

    async def close(self) -> None:
        await self.client.shutdown()


def nats_py(client: type[Any]) -> dict[str, type[Any]]:
    """Return nats-py on both event loops."""
    uvloop = type("uvloop", (client,), {"run": staticmethod(on_uvloop)})
    return {"nats-py": client, "nats-py uvloop": uvloop}
