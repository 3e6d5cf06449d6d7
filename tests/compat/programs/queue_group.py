"""Workers of a queue group that answer requests, as in the README of nats-py."""

import asyncio
import sys

import nats
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, NoRespondersError, TimeoutError


async def main(url: str) -> None:
    async def on_error(error: Exception) -> None:
        print("error:", type(error).__name__, error)

    async def on_closed() -> None:
        print("closed")

    nc = await nats.connect(url, name="workers", error_cb=on_error, closed_cb=on_closed)
    print("connected:", nc.is_connected, nc.connected_url.scheme, nc.max_payload)
    handled = {"a": 0, "b": 0}

    def worker(name: str):
        async def handle(msg: Msg) -> None:
            handled[name] += 1
            if msg.data == b"break":
                raise RuntimeError("cannot handle this")
            await msg.respond(msg.data.upper())

        return handle

    subs = [await nc.subscribe("work.*", "workers", cb=worker(name)) for name in handled]
    await nc.flush()
    answers = [await nc.request(f"work.{n}", b"job %d" % n, timeout=5) for n in range(20)]
    print(
        "answers:", answers[0].data, answers[-1].data, len({answer.subject for answer in answers})
    )
    print("shared:", sum(handled.values()), all(handled.values()))
    try:
        await nc.request("work.x", b"break", timeout=0.3)
    except TimeoutError as error:
        print("no answer:", error)
    try:
        await nc.request("nobody", b"", timeout=5)
    except NoRespondersError as error:
        print("nobody:", error)

    log = await nc.subscribe("log.>")
    await nc.publish("log.info", b"one", headers={"Level": "info"})
    await nc.publish("log.warn", b"two")
    first = await log.next_msg(timeout=5)
    print("log:", first.subject, first.data, first.headers, first.reply == "")
    await log.unsubscribe(limit=2)
    print("rest:", [msg.subject async for msg in log.messages])

    await subs[0].drain()
    print("one left:", (await nc.request("work.1", b"last", timeout=5)).data)
    await nc.drain()
    print("state:", nc.is_closed, nc.is_connected, nc.is_reconnecting)
    try:
        await nc.publish("work.1", b"late")
    except ConnectionClosedError as error:
        print("late:", error)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
