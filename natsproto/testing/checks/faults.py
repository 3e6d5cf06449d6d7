"""Connections that break at inconvenient times, and servers that send invalid data."""

from __future__ import annotations

from natsproto.errors import ConnectionLost, ProtocolError
from natsproto.events import Connected, Disconnected
from natsproto.testing.context import WAIT, Context, next_event, take
from natsproto.testing.peers import FOREVER, Listener
from natsproto.testing.suite import check

_INFO = b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1000}\r\n'
_WELCOME = (b"PING\r\n", b"PONG\r\n")


@check()
async def check_cut_within_a_message(ctx: Context) -> None:
    """Half a message is discarded; its rest is not read from the next connection."""
    script = (b"SUB ", b"MSG %s 1 2\r\nok\r\nMSG %s 1 100\r\nhalf" % ((ctx.subject.encode(),) * 2))
    with ctx.enter(Listener(_INFO, _WELCOME, script)) as listener:
        urls = [f"nats://{listener.address}", ctx.server.url]
        client = await ctx.connect(urls, shuffle=False)
        sub = await client.subscribe(ctx.subject)
        assert isinstance((await next_event(client, Disconnected)).error, ConnectionLost)
        assert (await next_event(client, Connected)).url == ctx.server.url
        await client.publish(ctx.subject, b"whole")
        assert await take(sub, 2) == [b"ok", b"whole"]


@check()
async def check_garbage_from_the_server(ctx: Context) -> None:
    """After garbage from the server the client reconnects; earlier messages are delivered."""
    script = (b"SUB ", b"MSG %s 1 2\r\nok\r\nGARBAGE\r\n" % ctx.subject.encode())
    with ctx.enter(Listener(_INFO, _WELCOME, script, FOREVER)) as listener:
        urls = [f"nats://{listener.address}", ctx.server.url]
        client = await ctx.connect(urls, shuffle=False)
        sub = await client.subscribe(ctx.subject)
        assert isinstance((await next_event(client, Disconnected)).error, ProtocolError)
        await client.publish(ctx.subject, b"whole")
        assert await take(sub, 2) == [b"ok", b"whole"]


@check()
async def check_hung_up_during_the_greeting(ctx: Context) -> None:
    """A server that hangs up in the middle of the handshake is skipped."""
    with ctx.enter(Listener(_INFO, (b"CONNECT ", b""))) as listener:
        urls = [f"nats://{listener.address}", ctx.server.url]
        client = await ctx.connect(urls, shuffle=False)
        assert client.connected_url == ctx.server.url


@check()
async def check_nothing_twice(ctx: Context) -> None:
    """Crashes while publishing may lose messages, but none is duplicated or out of order."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    sent = 0
    for _ in range(5):
        for _ in range(300):
            await client.publish(ctx.subject, b"%d" % sent)
            sent += 1
        server.kill()
        await next_event(client, Disconnected)  # from now on messages wait for a connection
        for _ in range(300):
            await client.publish(ctx.subject, b"%d" % sent)
            sent += 1
        server.restart()
        while not (await next_event(client, Connected)).again:
            pass
    await client.flush(WAIT)
    got = [int(payload) for payload in await take(sub, sub.pending)]
    assert got == sorted(set(got))
    assert got[-1] == sent - 1


@check()
async def check_a_thousand_subscriptions_over_reconnect(ctx: Context) -> None:
    """All subscriptions are restored before anything else is sent."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    subs = [await client.subscribe(f"{ctx.subject}.{n}") for n in range(1000)]
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    for n in range(1000):
        await client.publish(f"{ctx.subject}.{n}", b"%d" % n)
    server.restart()
    await client.flush(WAIT)
    for n, sub in enumerate(subs):
        assert await take(sub, sub.pending) == [b"%d" % n]
