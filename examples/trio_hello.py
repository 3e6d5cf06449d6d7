"""Publish and subscribe with trio. Argument: the URL of a server, if it is not the usual one."""

from __future__ import annotations

import sys

import trio

from natsproto.adapters.trio import connect


async def main(url: str) -> None:
    async with connect(url) as client, await client.subscribe("greet.*") as sub:
        await client.publish("greet.ada", b"hello")
        msg = await sub.next(timeout=2.0)
        print(f"{msg.subject}: {msg.data.decode()}")


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:] or ["nats://127.0.0.1:4222"])
