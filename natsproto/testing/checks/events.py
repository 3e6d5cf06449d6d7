"""The events of a client: several readers, and floods of events."""

from __future__ import annotations

from natsproto.errors import ConnectionClosed
from natsproto.events import Closed, Connected, Disconnected, SlowConsumer
from natsproto.testing.context import SOON, WAIT, Context, arrived, raises
from natsproto.testing.suite import check


@check(shares=True)
async def check_two_readers_of_events(ctx: Context) -> None:
    """Readers at the same time see every event, and the loop of each ends after Closed."""
    client = await ctx.client()
    seen: list[list[type]] = [[], []]

    async def read(mine: list[type]) -> None:
        mine.extend([type(event) async for event in client.events])

    tasks = [ctx.start(read, each) for each in seen]
    for _ in range(3):
        await client.force_reconnect()
        await client.flush(WAIT)
    await client.close()
    for task in tasks:
        await task.result()
    assert seen[0] == seen[1]
    assert seen[0] == [Connected, *[Disconnected, Connected] * 3, Closed], seen[0]


@check()
async def check_events_of_one_loop_after_another(ctx: Context) -> None:
    """A loop continues where the previous one stopped, and `next` continues after the loop."""
    client = await ctx.client()
    seen: list[type] = []
    await client.force_reconnect()
    await client.flush(WAIT)
    for _ in range(2):
        async for event in client.events:
            seen.append(type(event))
            break
    seen.append(type(await client.events.next(WAIT)))
    assert seen == [Connected, Disconnected, Connected], seen


@check()
async def check_events_after_a_flood(ctx: Context) -> None:
    """With more slow subscriptions than events are kept, all drops and Closed are reported."""
    client, other = await ctx.pair()
    subs = [await client.subscribe(ctx.subject, max_msgs=1) for _ in range(300)]
    await client.flush(WAIT)
    for _ in range(3):
        await other.publish(ctx.subject)
        await arrived(other, client)
    await client.close()
    events = [event async for event in client.events]
    assert len(events) <= 256
    assert isinstance(events[0], Connected)
    assert events[-1] == Closed(None)
    dropped = sum(event.dropped for event in events if isinstance(event, SlowConsumer))
    assert dropped == sum(sub.dropped for sub in subs) == 600
    with raises(ConnectionClosed, within=SOON):
        await client.events.next(WAIT)
