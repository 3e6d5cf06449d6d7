"""Publish and subscribe with asyncio. Argument: the URL of a server, if it is not the usual one."""

from __future__ import annotations

import asyncio
import sys

from natsproto.adapters.asyncio import connect


async def main(url: str) -> None:
    async with connect(url) as client, await client.subscribe("greet.*") as sub:
        await client.publish("greet.ada", b"hello")
        msg = await sub.next(timeout=2.0)
        print(f"{msg.subject}: {msg.data.decode()}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["nats://127.0.0.1:4222"]))
