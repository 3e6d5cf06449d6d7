"""What typical programs use, to see which modules that loads and how much memory these take."""

import sys

PACKAGES = ("natsproto", "jetstream")


def loaded():
    return sorted([name for name in sys.modules if name.split(".")[0] in PACKAGES])


async def wire(url):
    import natsproto

    natsproto.Parser().feed(b"PING\r\n")
    print(*loaded())


async def messages(url):
    from network import dial

    async with dial(url) as client:
        sub = await client.subscribe("usage")
        await client.publish("usage", b"x", headers={"A": "b"})
        await sub.next(timeout=5.0)
        await client.flush()
    print(*loaded())


async def pull(url):
    from network import dial

    from jetstream import JetStream

    async with dial(url) as client:
        js = JetStream(client)
        await js.publish("usage.stream", b"x")
        consumer = js.bind_consumer("USAGE", "worker")
        async with consumer.consume(max_messages=5, stop_after=1) as messages:
            async for msg in messages:
                await msg.ack()
    print(*loaded())


async def buckets(url):
    from network import dial

    from jetstream import JetStream

    async with dial(url) as client:
        kv = await JetStream(client).key_value("usage")
        revision = await kv.put("led", b"on")
        await kv.update("led", b"off", revision)
        await kv.get("led")
        async with await kv.watch("led") as watcher:
            await watcher.next(timeout=5.0)
    print(*loaded())
