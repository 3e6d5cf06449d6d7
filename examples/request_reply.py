"""A service and those who ask it: one answer, many answers, none.

Argument: the URL of a server, if it is not the usual one.
"""

from __future__ import annotations

import asyncio
import sys

from natsproto import Client
from natsproto.adapters.asyncio import connect
from natsproto.errors import NoResponders


async def serve(client: Client, name: str) -> None:
    async with await client.subscribe("time.zone") as sub:
        async for msg in sub:
            await client.publish(msg.reply, f"{name} knows {msg.data.decode()}".encode())


async def main(url: str) -> None:
    async with connect(url) as client:
        tasks = [asyncio.create_task(serve(client, name)) for name in ("ada", "bob")]
        await asyncio.sleep(0)  # both subscribe

        reply = await client.request("time.zone", b"UTC", timeout=2.0)
        print(f"the first answer: {reply.data.decode()}")

        replies = await client.request_many("time.zone", b"CET", timeout=2.0, max_msgs=2)
        print(f"all answers: {sorted(reply.data.decode() for reply in replies)}")

        try:
            await client.request("time.machine", b"1985")
        except NoResponders as error:
            print(f"known at once: {error}")

        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["nats://127.0.0.1:4222"]))
