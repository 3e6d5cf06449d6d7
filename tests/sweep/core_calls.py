"""Calls of the client, its subscriptions and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from natsproto.connection.states import CLOSED

from .coroutines import call, plain

if TYPE_CHECKING:
    from natsproto.client import Client

    from .stage import Stage

plain(
    {
        "Client.flush": lambda on: on.client.flush(on.timeout),
        "Client.rtt": lambda on: on.client.rtt(on.timeout),
    }
)

PAYLOAD = bytes(1024)


@call("connect")
async def connect(on: Stage) -> None:
    async def use() -> None:
        async with on.opening(connect_timeout=on.timeout) as client:
            await client.publish("sweep")

    await on(use())


@call("Client.publish", local=True)
async def publish(on: Stage) -> None:
    """Publish more than the client sends in one turn."""

    async def send() -> None:
        for _ in range(400):
            await on.client.publish("sweep", PAYLOAD)

    await on(send())


async def _responder(on: Stage, subject: str, count: int = 1) -> Any:
    """Answer requests, each `count` times."""
    sub = await on.friend.subscribe(subject)
    await on.friend.flush()

    async def respond(msg: Any) -> None:
        for _ in range(count):
            await on.friend.publish(msg.reply, b"yes")

    return sub, on.start(lambda: sub.run(respond))


async def _end(sub: Any, task: Any) -> None:
    await sub.unsubscribe()
    await task.result()


@call("Client.request")
async def request(on: Stage) -> None:
    responder = await _responder(on, "sweep.request")
    await on(on.client.request("sweep.request", timeout=on.timeout))
    await _end(*responder)


@call("Client.request_many")
async def request_many(on: Stage) -> None:
    responder = await _responder(on, "sweep.many", 3)
    await on(on.client.request_many("sweep.many", max_msgs=3, timeout=on.timeout))
    await _end(*responder)


@call("Replies.__anext__", "Replies.aclose")
async def iter_request_many(on: Stage) -> None:
    responder = await _responder(on, "sweep.many", 3)

    async def take() -> None:
        replies = on.client.iter_request_many("sweep.many", max_msgs=3, timeout=on.timeout)
        async for _ in replies:
            pass
        if hasattr(replies, "aclose"):  # not without an event loop
            await replies.aclose()

    await on(take())
    await _end(*responder)


@call("Client.respond", local=True)
async def respond(on: Stage) -> None:
    sub = await on.client.subscribe("sweep.respond")
    await on.client.flush()
    await on.friend.publish("sweep.respond", reply="sweep.reply")
    msg = await sub.next(10.0)
    await on(on.client.respond(msg, b"yes"))
    await sub.unsubscribe()


@call("Client.trace_message")
async def trace_message(on: Stage) -> None:
    await on(on.client.trace_message("sweep.trace", timeout=on.timeout))


@call(
    "Client.subscribe",
    "Subscription.__aenter__",
    "Subscription.__aexit__",
    "Subscription.next",
)
async def subscribe(on: Stage) -> None:
    async def use() -> None:
        async with await on.client.subscribe("sweep.next") as sub:
            await on.client.publish("sweep.next")
            await sub.next(on.timeout)

    await on(use())


@call("Subscription.unsubscribe", local=True)
async def unsubscribe(on: Stage) -> None:
    sub = await on.client.subscribe("sweep.gone")
    await on(sub.unsubscribe())
    await sub.unsubscribe()


@call("Subscription.__anext__")
async def iterate(on: Stage) -> None:
    """Messages that the iteration did not return are there for the next one."""
    sub = await on.client.subscribe("sweep.iterate")
    got: list[int] = []

    async def take() -> None:
        for number in range(200):
            await on.client.publish("sweep.iterate", b"%d" % number)
        async for msg in sub:
            got.append(int(msg.data))
            if len(got) == 200:
                return

    await on(take())
    await on.client.flush()
    while sub.pending:
        got.append(int((await sub.next(0)).data))
    assert got == list(range(200))
    await sub.unsubscribe()


@call("Subscription.run")
async def run(on: Stage) -> None:
    """Canceling it ends the subscription; messages that have arrived can still be taken."""
    sub = await on.client.subscribe("sweep.run")
    got: list[int] = []

    async def take(msg: Any) -> None:
        got.append(int(msg.data))
        if len(got) == 20:
            await sub.unsubscribe()

    async def use() -> None:
        for number in range(20):
            await on.client.publish("sweep.run", b"%d" % number)
        await sub.run(take)

    await on(use())
    await on.client.flush()
    while sub.pending:
        got.append(int((await sub.next(0)).data))
    assert got == list(range(len(got)))
    await sub.unsubscribe()


@call("Subscription.drain")
async def drain_subscription(on: Stage) -> None:
    sub = await on.client.subscribe("sweep.drain")
    await on.client.publish("sweep.drain")

    async def use() -> None:
        await sub.drain(on.timeout)

    await on(use())
    # The drain continues without its caller; the message is still there.
    assert (await sub.next(10.0)).data == b""
    await sub.drain()


async def _own_client(on: Stage, end: str, *args: Any) -> None:
    """End a client of its own: it is closed afterwards, and what was published has arrived."""
    sub = await on.friend.subscribe("sweep.last")
    await on.friend.flush()
    client = await on.new_client()
    await client.publish("sweep.last", b"1")
    await on(getattr(client, end)(*args))
    if client.state != CLOSED:
        await client.close()
    assert client.state == CLOSED
    assert (await sub.next(10.0)).data == b"1"
    await sub.unsubscribe()


@call("Client.close")
async def close(on: Stage) -> None:
    await _own_client(on, "close", on.timeout)


@call("Client.drain")
async def drain(on: Stage) -> None:
    await _own_client(on, "drain", on.timeout)


@call("Client.__aenter__", "Client.__aexit__")
async def client_block(on: Stage) -> None:
    """The end of the block takes two seconds at most."""
    client = await on.new_client()

    async def use() -> None:
        async with client:
            await client.publish("sweep.block")

    await on(use())
    if client.state != CLOSED:
        await client.close()


@call("Client.force_reconnect", local=True)
async def force_reconnect(on: Stage) -> None:
    client: Client = await on.new_client()
    await on(client.force_reconnect())
    await client.flush()
    await client.close()


@call("Events.next", "EventReader.next", "Events.__anext__", "EventReader.__anext__")
async def events(on: Stage) -> None:
    """An attempt to connect that fails is an event, too."""
    client = await on.new_client(connect_timeout=on.timeout)
    await client.events.next(10.0)

    async def take() -> None:
        await client.force_reconnect()
        await client.events.next(on.timeout)
        await client.events.__anext__()

    await on(take())
    reader = client.events.__aiter__()
    await client.close()
    rest = [type(event).__name__ async for event in reader]
    assert rest[-1] == "Closed"
