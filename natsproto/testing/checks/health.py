"""The health of a client: a record of its state."""

from __future__ import annotations

from natsproto.events import Disconnected
from natsproto.testing.context import WAIT, Context, arrived, next_event
from natsproto.testing.suite import check

from .reconnect import back


@check()
async def check_health_in_an_outage(ctx: Context) -> None:
    """The health follows the connection, even after the client is closed."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    first = client.health()
    assert first.connected, first
    assert (first.state, first.server, first.reason) == ("CONNECTED", server.url, "")
    assert (first.rtt, first.reconnects, first.pending_bytes) == (None, 0, 0), first
    assert first.pong_age is not None
    assert 0 <= first.pong_age < 2 * WAIT
    rtt = await client.rtt(WAIT)
    assert client.health().rtt == rtt
    server.kill()
    await next_event(client, Disconnected)
    await client.publish(ctx.subject, b"12345")
    down = client.health()
    assert (down.connected, down.pending_bytes > 5) == (False, True), down
    server.restart()
    await back(client)
    assert client.health().reconnects == 1
    await client.close()
    assert "closed" in client.health().reason


@check()
async def check_health_of_a_slow_consumer(ctx: Context) -> None:
    """A subscription that dropped messages counts as slow until it ends."""
    client, other = await ctx.pair()
    sub = await client.subscribe(ctx.subject, max_msgs=1)
    await client.flush(WAIT)
    for _ in range(3):
        await other.publish(ctx.subject)
    await arrived(other, client)
    slow = client.health()
    assert (slow.slow_consumers, slow.dropped) == (1, 2), slow
    assert client.stats.dropped == 2
    await sub.unsubscribe()
    assert client.health().slow_consumers == 0
