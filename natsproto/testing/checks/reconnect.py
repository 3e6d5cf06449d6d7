"""Servers that stop and return, or do not return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import (
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    TimeoutExpired,
)
from natsproto.events import AttemptFailed, Closed, Connected, Disconnected, ServerChoiceFailed
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises, take
from natsproto.testing.server import free_port
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.choice import KnownServer
    from natsproto.client import Client
    from natsproto.events import Event
    from natsproto.wire.frames import Info


async def back(client: Client) -> None:
    """Wait until the client is connected again."""
    event = await next_event(client, Connected)
    while not event.again:
        event = await next_event(client, Connected)


@check()
async def check_reconnect_after_kill(ctx: Context) -> None:
    """Subscriptions survive a crash of the server and work again once it is back."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    wild = await client.subscribe(ctx.subject + ".>")
    await client.flush(WAIT)
    for turn in (1, 2):
        server.kill()
        await next_event(client, Disconnected)
        assert client.connected_url == ""
        server.restart()
        await back(client)
        await client.publish(ctx.subject, b"%d" % turn)
        await client.publish(ctx.subject + ".x", b"%d" % turn)
        assert await take(sub, 1) == await take(wild, 1) == [b"%d" % turn]
        assert client.stats.reconnects == turn
    assert client.connected_url == server.url


@check()
async def check_reconnect_after_terminate(ctx: Context) -> None:
    """The client also reconnects after an orderly stop of the server."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.terminate()
    await next_event(client, Disconnected)
    server.restart()
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_ping_timeout(ctx: Context) -> None:
    """A silent server is abandoned after max_pings_out, and used again after a thaw."""
    server = ctx.own_server()
    client = await ctx.connect(server, ping_interval=0.05, max_pings_out=2, connect_timeout=0.3)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.freeze()
    event = await next_event(client, Disconnected, timeout=SOON)
    assert isinstance(event.error, ConnectionLost)
    server.thaw()
    await back(client)
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_ping_timeout_with_another_server(ctx: Context) -> None:
    """If there is another server, the client moves to it from a silent one."""
    servers = [ctx.own_server(), ctx.own_server()]
    client = await ctx.connect(
        [server.url for server in servers], shuffle=False, ping_interval=0.05, max_pings_out=1
    )
    sub = await client.subscribe(ctx.subject)
    servers[0].freeze()
    await next_event(client, Disconnected, timeout=SOON)
    await back(client)
    assert client.connected_url == servers[1].url
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_pings_keep_an_idle_connection(ctx: Context) -> None:
    """PINGs in both directions are answered, so an idle connection stays open."""
    # Without answers it would be lost after 0.6 s; a busy machine may be late with some.
    server = ctx.own_server(ping_interval="100ms", ping_max=5)
    client = await ctx.connect(server, ping_interval=0.1, max_pings_out=5)
    sub = await client.subscribe(ctx.subject)
    with raises(TimeoutExpired):
        await sub.next(timeout=1.0)
    await client.flush(WAIT)
    assert client.stats.connects == 1


@check()
async def check_retry_on_first_connect(ctx: Context) -> None:
    """With retry_on_first_connect a client can be created before its server starts."""
    server = ctx.own_server()
    server.kill()
    client = await ctx.connect(server, retry_on_first_connect=True)
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    await next_event(client, AttemptFailed)
    assert client.info is None
    server.restart()
    assert await take(sub, 1) == [b"1"]
    assert not (await next_event(client, Connected)).again
    assert client.stats.reconnects == 0


@check()
async def check_max_reconnects(ctx: Context) -> None:
    """After max_reconnects attempts the client is closed, and all its users get the reason."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_reconnects=2)
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    server.kill()
    events = [event async for event in client.events]
    assert [type(event) for event in events] == [
        Connected,
        Disconnected,
        AttemptFailed,
        AttemptFailed,
        Closed,
    ]
    assert isinstance(events[-1], Closed)
    assert isinstance(events[-1].error, ConnectFailed)
    assert await take(sub, 1) == [b"1"]
    with raises(ConnectionClosed):
        await sub.next(WAIT)
    with raises(ConnectionClosed):
        await client.publish(ctx.subject)


@check()
async def check_no_reconnects(ctx: Context) -> None:
    """With max_reconnects=0, the first lost connection ends the client."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_reconnects=0)
    server.kill()
    events = [event async for event in client.events]
    assert [type(event) for event in events] == [Connected, Disconnected, Closed]
    assert client.state == "CLOSED"


@check()
async def check_force_reconnect(ctx: Context) -> None:
    """force_reconnect connects to another server; messages published before are not lost."""
    servers = [ctx.own_server(), ctx.own_server()]
    client = await ctx.connect([server.url for server in servers], shuffle=False)
    sub = await client.subscribe(ctx.subject)
    for expected in (servers[1], servers[0], servers[1]):
        await client.force_reconnect()
        assert (await next_event(client, Disconnected)).error is None
        await back(client)
        assert client.connected_url == expected.url
        await client.publish(ctx.subject, b"1")
        assert await take(sub, 1) == [b"1"]


@check()
async def check_force_reconnect_while_data_flows(ctx: Context) -> None:
    """Repeated reconnects under load lose messages in flight, and nothing else goes wrong."""
    client = await ctx.connect(ctx.server)
    sub = await client.subscribe(ctx.subject)
    for _ in range(20):
        for _ in range(200):
            await client.publish(ctx.subject, b"x" * 1000)
        await take(sub, 1)
        await client.force_reconnect()
        await client.flush(WAIT)
    await client.publish(ctx.subject, b"last")
    while (await sub.next(WAIT)).data != b"last":
        pass
    assert client.stats.connects == 21


@check()
async def check_set_servers(ctx: Context) -> None:
    """set_servers replaces the servers to reconnect to."""
    old, new = ctx.own_server(), ctx.own_server()
    client = await ctx.connect(old)
    client.set_servers([new.url])
    assert client.servers == [new.url]
    old.kill()
    await back(client)
    assert client.connected_url == new.url


@check()
async def check_events_in_order(ctx: Context) -> None:
    """The events of a client report its whole life, in order."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    server.kill()
    await client.subscribe(ctx.subject)
    seen: list[Event] = []
    while not any(isinstance(event, AttemptFailed) for event in seen):
        seen.append(await client.events.next(WAIT))
    server.restart()
    await client.flush(WAIT)
    await client.close()
    seen += [event async for event in client.events]
    kinds = [type(event) for event in seen if not isinstance(event, AttemptFailed)]
    assert kinds == [Connected, Disconnected, Connected, Closed]
    attempts = [n for n, event in enumerate(seen) if isinstance(event, AttemptFailed)]
    assert attempts == list(range(2, len(seen) - 2))


@check()
async def check_failing_servers_are_passed_over(ctx: Context) -> None:
    """Unreachable servers are tried and reported until a reachable one is found."""
    server = ctx.own_server()
    dead = [f"nats://127.0.0.1:{free_port()}" for _ in range(2)]
    client = await ctx.connect([server.url, *dead], shuffle=False)
    server.kill()
    failed = [await next_event(client, AttemptFailed) for _ in range(2)]
    assert [event.url for event in failed] == dead
    server.restart()
    await back(client)
    assert client.connected_url == server.url


@check()
async def check_reconnect_to_the_chosen_server(ctx: Context) -> None:
    """The program chooses the server of each reconnect, and sees the pool and the last INFO."""
    servers = [ctx.own_server() for _ in range(3)]
    seen: list[tuple[str, list[str]]] = []

    def choose(known: list[KnownServer], info: Info | None) -> str:
        assert info is not None
        seen.append((info.server_id, [each.url for each in known if each.current]))
        return servers[2].url

    urls = [server.url for server in servers]
    client = await ctx.connect(urls, shuffle=False, choose_server=choose)
    assert (client.connected_url, seen, client.info is not None) == (urls[0], [], True)
    first = client.info
    servers[0].kill()
    await back(client)
    assert client.connected_url == urls[2]
    assert first is not None
    assert seen[0] == (first.server_id, [urls[0]])


@check()
async def check_reconnect_after_a_bad_choice(ctx: Context) -> None:
    """A choice that is not in the pool is reported, and the client chooses by itself."""
    servers = [ctx.own_server(), ctx.own_server()]
    urls = [server.url for server in servers]
    client = await ctx.connect(
        urls, shuffle=False, choose_server=lambda known, info: "nats://127.0.0.1:1"
    )
    await client.force_reconnect()
    failed = await next_event(client, ServerChoiceFailed)
    assert "not in the pool: 'nats://127.0.0.1:1'" in str(failed.error)
    await back(client)
    assert client.connected_url == urls[1]
