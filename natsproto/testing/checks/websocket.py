"""NATS over WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import AuthorizationFailed, ConnectFailed, TlsFailed
from natsproto.events import Connected, Disconnected, Discovered
from natsproto.testing.context import WAIT, Context, answer, arrived, next_event, raises, take
from natsproto.testing.server import free_port
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.testing.server import Server

_NEEDS = ("wsproto",)
_NEEDS_TLS = ("wsproto", "trustme")


def _server(ctx: Context) -> Server:
    return ctx.shared_server(websocket={"listen": "127.0.0.1:-1", "no_tls": True})


def _secure_server(ctx: Context) -> Server:
    tls = ctx.certificates.server("127.0.0.1")
    return ctx.shared_server(websocket={"listen": "127.0.0.1:-1", "tls": tls})


@check(needs=_NEEDS)
async def check_websocket(ctx: Context) -> None:
    """A WebSocket client and a plain one exchange messages in both directions."""
    server = _server(ctx)
    alice = await ctx.connect(server.urls["websocket"])
    bob = await ctx.connect(server)
    assert alice.connected_url == server.urls["websocket"]
    at_alice = await alice.subscribe(ctx.subject + ".alice")
    at_bob = await bob.subscribe(ctx.subject + ".bob")
    await arrived(alice, bob)
    for n in range(1000):
        await alice.publish(ctx.subject + ".bob", b"%d" % n, headers={"Key": "value"})
        await bob.publish(ctx.subject + ".alice", b"%d" % n, headers={"Key": "value"})
    await arrived(alice, bob)
    await arrived(bob, alice)
    assert await take(at_alice, 1000) == [b"%d" % n for n in range(1000)]
    assert await take(at_bob, 1000) == [b"%d" % n for n in range(1000)]


@check(needs=_NEEDS)
async def check_websocket_large_payloads(ctx: Context) -> None:
    """Payloads of all sizes that change the form of a WebSocket frame arrive unchanged."""
    client = await ctx.connect(_server(ctx).urls["websocket"])
    sub = await client.subscribe(ctx.subject)
    for size in [0, 100, 125, 126, 127, 65_500, 65_535, 65_536, 1024 * 1024]:
        await client.publish(ctx.subject, b"x" * size)
        assert (await sub.next(WAIT)).data == b"x" * size


@check(needs=_NEEDS)
async def check_websocket_request(ctx: Context) -> None:
    """Requests work over a WebSocket."""
    alice = await ctx.connect(_server(ctx).urls["websocket"])
    bob = await ctx.connect(_server(ctx).urls["websocket"])
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(answer, bob, sub, 10)
    for n in range(10):
        assert (await alice.request(ctx.subject, b"%d" % n, timeout=WAIT)).data == b"%d" % n


@check(needs=_NEEDS)
async def check_websocket_reconnect(ctx: Context) -> None:
    """A lost WebSocket is opened again, and subscriptions continue."""
    server = ctx.own_server(websocket={"listen": f"127.0.0.1:{free_port()}", "no_tls": True})
    client = await ctx.connect(server.urls["websocket"])
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    for end in (server.kill, server.terminate):
        end()
        await next_event(client, Disconnected)
        await client.publish(ctx.subject, b"1")
        server.restart()
        while not (await next_event(client, Connected)).again:
            pass
        assert await take(sub, 1) == [b"1"]


@check(needs=_NEEDS)
async def check_websocket_cluster(ctx: Context) -> None:
    """The WebSocket addresses of other members are discovered and used after a loss."""
    cluster = ctx.own_cluster(2, websocket={"listen": "127.0.0.1:-1", "no_tls": True})
    urls = [member.urls["websocket"] for member in cluster.members]
    client = await ctx.connect(urls[0])
    assert (await next_event(client, Discovered)).urls == [urls[1]]
    cluster.members[0].kill()
    while not (await next_event(client, Connected)).again:
        pass
    assert client.connected_url == urls[1]


@check(needs=_NEEDS)
async def check_websocket_at_a_plain_server(ctx: Context) -> None:
    """A server that does not speak WebSocket is rejected, and the other way around."""
    with raises(ConnectFailed):
        await ctx.connect(f"ws://127.0.0.1:{ctx.server.port}", connect_timeout=0.5)
    port = _server(ctx).urls["websocket"].rpartition(":")[2]
    with raises(ConnectFailed):
        await ctx.connect(f"nats://127.0.0.1:{port}", connect_timeout=0.2)


@check(needs=_NEEDS)
async def check_websocket_compression(ctx: Context) -> None:
    """Messages of every size arrive compressed, and uncompressed if the server does not agree."""
    compressing = ctx.shared_server(
        websocket={"listen": "127.0.0.1:-1", "no_tls": True, "compression": True}
    )
    for server in (compressing, _server(ctx)):
        client = await ctx.connect(server.urls["websocket"], ws_compression=True)
        sub = await client.subscribe(ctx.subject)
        for size in [0, 1, 64, 125, 126, 65_536, 1024 * 1024]:
            await client.publish(ctx.subject, b"x" * size)
            assert (await sub.next(WAIT)).data == b"x" * size


@check(needs=_NEEDS, since=(2, 11))
async def check_websocket_headers(ctx: Context) -> None:
    """The server reads headers of the upgrade request: here a token in a cookie."""
    server = ctx.shared_server(
        authorization={"token": "s3cr3t"},
        websocket={"listen": "127.0.0.1:-1", "no_tls": True, "token_cookie": "token"},
    )
    url = server.urls["websocket"]
    client = await ctx.connect(url, ws_headers={"Cookie": "token=s3cr3t"})
    await client.flush(WAIT)
    with raises(AuthorizationFailed):
        await ctx.connect(url, ws_headers={"Cookie": "token=other"})


@check(needs=_NEEDS_TLS)
async def check_websocket_over_tls(ctx: Context) -> None:
    """wss is WebSocket over TLS, with the same checks of certificates."""
    url = _secure_server(ctx).urls["websocket"]
    assert url.startswith("wss://")
    client = await ctx.connect(url, tls=ctx.certificates.client())
    sub = await client.subscribe(ctx.subject)
    payload = bytes(range(256)) * 1000
    await client.publish(ctx.subject, payload)
    assert await take(sub, 1) == [payload]
    with raises(ConnectFailed) as caught:
        await ctx.connect(url, tls=ctx.certificates.stranger())
    assert isinstance(caught.error.errors[0][1], TlsFailed)
