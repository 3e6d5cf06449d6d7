"""The core on MicroPython against a real server: messages, requests, limits, drain, reconnects."""

import asyncio

from harness import check
from network import dial, host_line

from natsproto.adapters.micropython import tls_context
from natsproto.errors import ConnectFailed, InvalidSubject, NoResponders, TimeoutExpired
from natsproto.events import Connected, Disconnected


async def error_of(awaitable):
    try:
        await awaitable
    except Exception as error:
        return type(error).__name__
    return ""


async def pubsub(url):
    async with dial(url, name="device") as client:
        check("state", client.state, "CONNECTED")
        sub = await client.subscribe("greet.*")
        await client.publish("greet.ada", b"hello", headers={"Trace-Id": "7f"})
        await client.publish("greet.bob", b"")
        msg = await sub.next(timeout=5.0)
        check("subject", msg.subject, "greet.ada")
        check("data", msg.data, b"hello")
        check("header", msg.headers["Trace-Id"], "7f")
        msg = await sub.next(timeout=5.0)
        check("no data", (msg.subject, msg.data, msg.headers), ("greet.bob", b"", None))
        check("timeout", await error_of(sub.next(timeout=0.05)), TimeoutExpired.__name__)
        for i in range(100):  # more than fit into one read
            await client.publish("greet.many", b"%d" % i + bytes(100))
            if i % 20 == 19:
                for _ in range(20):
                    msg = await sub.next(timeout=5.0)
                check("in order", msg.data[:2], b"%d" % i)
        await sub.unsubscribe()
        await client.flush()
        check("counts", (client.stats.in_msgs, client.stats.out_msgs), (102, 102))
    check("closed", client.state, "CLOSED")


async def large(url):
    """A message of many reads, both ways, above the default limit of a subscription."""
    async with dial(url, max_bytes=200_000, max_pending_out=200_000) as client:
        sub = await client.subscribe("large")
        data = bytes(range(256)) * 400
        await client.publish("large", data)
        check("data", (await sub.next(timeout=5.0)).data == data, True)


async def requests(url):
    async with dial(url) as client:
        upper = await client.subscribe("upper")

        async def serve():
            async for msg in upper:
                await client.respond(msg, msg.data.upper())

        server = asyncio.create_task(serve())
        check("response", (await client.request("upper", b"hello")).data, b"HELLO")
        many = await client.request_many("upper", b"a", timeout=5.0, max_msgs=1)
        check("responses", [msg.data for msg in many], [b"A"])
        check("503", await error_of(client.request("nobody")), NoResponders.__name__)
        silent = await client.subscribe("silent")
        late = await error_of(client.request("silent", timeout=0.1))
        check("no response", late, TimeoutExpired.__name__)
        await silent.unsubscribe()
        await upper.unsubscribe()
        await server  # the loop ends with its subscription
        check("round trip", 0 < await client.rtt() < 5, True)


async def run(url):
    """Callbacks, several at a time, until the drain."""
    client = await dial(url)
    seen = []
    sub = await client.subscribe("work")

    async def work(msg):
        await asyncio.sleep(0)
        seen.append(msg.data)

    runner = asyncio.create_task(sub.run(work, concurrency=3))
    for i in range(10):
        await client.publish("work", b"%d" % i)
    await client.drain()
    await runner
    check("callbacks", sorted(seen), [b"%d" % i for i in range(10)])


async def failing(url):
    """Errors of callbacks reach on_error, and errors have texts: builds change both."""
    failed = []
    async with dial(url) as client:
        sub = await client.subscribe("work")

        async def work(msg):
            raise ValueError(msg.data)

        async def on_error(msg, error):
            failed.append((msg.data, type(error).__name__))

        runner = asyncio.create_task(sub.run(work, on_error=on_error))
        await client.publish("work", b"1")
        await client.publish("work", b"2")
        await sub.drain()
        await runner
        check("on_error", failed, [(b"1", "ValueError"), (b"2", "ValueError")])
        try:
            await client.publish("two words", b"")
        except InvalidSubject as error:
            check("text", str(error).startswith("subject 'two words' contains a space"), True)


async def refused(url):
    """No server listens here; the first connect fails, and the error says why."""
    host = url.rpartition(":")[0]
    check("refused", await error_of(dial(host + ":1")), ConnectFailed.__name__)
    client = await dial(host + ":1", retry_on_first_connect=True)
    check("retrying", client.state in ("DIALING", "WAITING"), True)
    await client.publish("held", b"")
    check("held", client.session.connection.held, 1)
    await error_of(client.close(timeout=0))
    check("closed", client.state, "CLOSED")


async def canceled(url):
    """A canceled task releases the client."""
    clients = []

    async def wait_forever():
        async with dial(url) as client:
            clients.append(client)
            sub = await client.subscribe("never")
            await client.publish("last", b"words")
            await sub.next()

    async with dial(url) as observer:
        last = await observer.subscribe("last")
        await observer.flush()
        task = asyncio.create_task(wait_forever())
        check("published", (await last.next(timeout=5.0)).data, b"words")
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            check("closed", clients[0].state, "CLOSED")


async def reconnect(url):
    """The other side kills and restarts the server whenever this one prints `kill`."""
    async with dial(url, reconnect_wait=0.05, reconnect_wait_max=0.2) as client:
        sub = await client.subscribe("after")
        await client.flush()
        for i in range(3):
            print("kill")
            while not isinstance(await client.events.next(timeout=30.0), Disconnected):
                pass
            await client.publish("after", b"held %d" % i)
            print("restart")
            check("told to go on", await host_line(), "restarted")
            while True:
                event = await client.events.next(timeout=30.0)
                if isinstance(event, Connected):
                    break
            check("again", event.again, True)
            check("held", (await sub.next(timeout=5.0)).data, b"held %d" % i)
        check("connects", client.stats.connects, 4)


async def secured(url, first, authority, stranger):
    """TLS, before or after INFO: only a server that the authority has certified is accepted."""
    async with dial(url, tls=read_authority(authority), tls_first=first) as client:
        sub = await client.subscribe("secret")
        data = bytes(range(256)) * 8
        await client.publish("secret", data)
        check("data", (await sub.next(timeout=5.0)).data == data, True)
        check("round trip", 0 < await client.rtt() < 5, True)
    refused = dial(url, tls=read_authority(stranger), tls_first=first)
    check("another authority", await error_of(refused), ConnectFailed.__name__)
    refused = dial(url, tls_first=first)
    check("no authority", await error_of(refused), ConnectFailed.__name__)


def read_authority(path):
    with open(path, "rb") as file:
        return tls_context(file.read())
