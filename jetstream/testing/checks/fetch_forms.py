"""The forms of fetch: message by message, without waiting, bound by name; and its bounds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import ConsumerDeleted, ConsumerUnavailable
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import LONGEST, reachable, share_replicated
from jetstream.testing.streams import (
    fill,
    js_server,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
    settled,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import PermissionDenied
from natsproto.events import SlowConsumer
from natsproto.testing.context import SOON, WAIT, Context, arrived, next_event, raises

if TYPE_CHECKING:
    from jetstream import BoundConsumer, Consumer, JetStream

_FLOOD = 5000


async def _no_pull_waits(ctx: Context, consumer: Consumer) -> None:
    async def look() -> bool:
        return (await consumer.info()).num_waiting == 0

    await until(await ctx.connect(js_server(ctx)), look, SOON)


@check()
async def check_fetch_message_by_message(ctx: Context) -> None:
    """An iterated fetch returns each message when it arrives, and ends with the batch."""
    _, consumer = await new_consumer(ctx, 1)
    other = await open_js(ctx)
    begin = time.monotonic()
    taken: list[bytes] = []
    async for msg in consumer.fetch(3, expires=2 * WAIT):
        taken.append(msg.data)
        await msg.ack()
        if len(taken) < 3:
            await fill(ctx, other, [b"%d" % len(taken)])
    assert taken == numbers(3)
    assert time.monotonic() - begin < WAIT
    async for msg in consumer.iter_fetch(3, expires=0.05):
        raise AssertionError(f"unexpected message: {msg!r}")


@check()
async def check_fetch_message_by_message_left_early(ctx: Context) -> None:
    """Untaken messages are kept for the next fetch, and the server no longer has a pull."""
    _, consumer = await new_consumer(ctx, 3)
    other = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    taken: list[bytes] = []
    async for msg in consumer.fetch(10, expires=2 * WAIT):
        taken.append(msg.data)
        break
    # A blocking client does nothing between calls, so make one.
    taken += [msg.data for msg in await consumer.fetch(2, expires=WAIT)]
    assert taken == numbers(3)
    await _no_pull_waits(ctx, other)


@check(since=(2, 11))
async def check_fetch_message_by_message_that_fails(ctx: Context) -> None:
    """The error of a pull is raised after the messages that arrived before it."""
    _, consumer = await new_consumer(ctx, 2)
    other = await open_js(ctx)
    taken: list[bytes] = []
    with raises(ConsumerDeleted, within=WAIT) as caught:
        async for msg in consumer.fetch(10, expires=2 * WAIT):
            taken.append(msg.data)
            if len(taken) == 2:
                await other.delete_consumer(name_of(ctx), "c")
    assert taken == numbers(2)
    assert f"consumer 'c' of stream '{name_of(ctx)}'" in str(caught.error)


@check()
async def check_fetch_that_is_not_awaited(ctx: Context) -> None:
    """A fetch that is neither awaited nor iterated sends nothing."""
    client = await ctx.connect(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(client))
    consumer = await stream.create_consumer(durable_name="c")
    sent = client.stats.out_msgs
    consumer.iter_fetch(3)
    assert client.stats.out_msgs == sent


@check()
async def check_fetch_by_default_ends_before_ack_wait(ctx: Context) -> None:
    """A batch that is not full is returned before any of its messages is delivered again."""
    _, consumer = await new_consumer(ctx, 3, ack_wait=1.0)
    batch = await consumer.fetch(10)
    assert [msg.data for msg in batch] == numbers(3)
    for msg in batch:
        await msg.ack()
    await settled(ctx, consumer, 3)
    assert (await consumer.info()).num_redelivered == 0


@check()
async def check_fetch_no_wait_at_max_ack_pending(ctx: Context) -> None:
    """If the server does not answer, a no_wait fetch ends soon, and without an error."""
    _, consumer = await new_consumer(ctx, 6, max_ack_pending=2)
    other = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    begin = time.monotonic()
    batch = await consumer.fetch(5, no_wait=True)
    assert ([msg.data for msg in batch], batch.error) == (numbers(2), None)
    empty = await consumer.fetch(5, no_wait=True)
    assert (len(empty), empty.error) == (0, None)
    assert time.monotonic() - begin < SOON
    # No pull is left to take the messages that become available now.
    await _no_pull_waits(ctx, other)
    for msg in batch:
        await msg.ack()
    await settled(ctx, other, 2)
    assert [msg.data for msg in await other.fetch(2, no_wait=True)] == numbers(4)[2:]


@check(slow=True, longest=LONGEST)
async def check_fetch_no_wait_in_a_cluster(ctx: Context) -> None:
    """The same holds for each member of a cluster, one of which leads the consumer."""
    cluster, stream, _ = await share_replicated(ctx)
    for number, member in enumerate(cluster.members):
        made = await stream.create_consumer(durable_name=f"n{number}", max_ack_pending=2)
        client = await ctx.connect(member)
        await reachable(client, made)
        consumer = jetstream_of(client).bind_consumer(stream.name, made.name)
        begin = time.monotonic()
        batch = await consumer.fetch(5, no_wait=True)
        assert ([msg.data for msg in batch], batch.error) == (numbers(2), None)
        assert len(await consumer.fetch(5, no_wait=True)) == 0
        assert time.monotonic() - begin < SOON


@check(since=(2, 11))
async def check_fetch_errors_name_the_consumer(ctx: Context) -> None:
    """Errors name the consumer and the possible reason."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    bound = js.bind_consumer(name_of(ctx), "none")
    with raises(ConsumerUnavailable, within=SOON) as caught:
        await bound.fetch(1, expires=WAIT)
    text = str(caught.error)
    assert f"consumer 'none' of stream '{name_of(ctx)}'" in text
    assert "does not exist" in text


@check()
async def check_fetch_drops_unrequested_messages(ctx: Context) -> None:
    """Whatever is sent to its inbox, a fetch keeps no more than it requested."""
    client = await ctx.connect(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(client))
    consumer = await stream.create_consumer(durable_name="c")
    liar = await ctx.connect(js_server(ctx))
    pulls = await liar.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{stream.name}.c")
    await liar.flush()

    async def flood() -> None:
        reply = (await pulls.next(WAIT)).reply
        for _ in range(_FLOOD):
            await liar.publish(reply, b"x" * 100, reply="nobody")
        await liar.flush(WAIT)

    task = ctx.start(flood)
    assert len(await consumer.fetch(10, expires=WAIT)) == 10
    await task.result()
    await arrived(client, client)
    assert (await next_event(client, SlowConsumer)).dropped > 0
    kept = 0
    while batch := await consumer.fetch(500, no_wait=True):
        kept += len(batch)
    assert kept < 500, kept


def _users(ctx: Context) -> dict[str, Any]:
    """Return an account with JetStream, an owner and a limited worker, and a guest account."""
    api = f"$JS.API.CONSUMER.MSG.NEXT.{name_of(ctx)}.c"
    acks = f"$JS.ACK.{name_of(ctx)}.c.>"
    rights = {"publish": [api, acks], "subscribe": ["_INBOX.>"]}
    return {
        "A": {
            "jetstream": "enabled",
            "users": [
                {"user": "owner", "password": "p"},
                {"user": "worker", "password": "p", "permissions": rights},
            ],
            "exports": [
                {"service": api, "response": "stream"},
                {"service": acks},
            ],
        },
        "B": {
            "users": [{"user": "guest", "password": "p"}],
            "imports": [
                {"service": {"account": "A", "subject": api}},
                {"service": {"account": "A", "subject": acks}},
            ],
        },
    }


async def _few_rights(ctx: Context, user: str) -> tuple[JetStream, JetStream]:
    """Return JetStream of the owner, with a stream and a consumer, and of that user."""
    server = ctx.own_server(jetstream="enabled", accounts=_users(ctx))
    owner = jetstream_of(await ctx.connect(server, user="owner", password="p"))
    stream = await new_stream(ctx, owner)
    await fill(ctx, owner, numbers(6))
    await stream.create_consumer(durable_name="c")
    client = await ctx.connect(server, user=user, password="p")
    return owner, jetstream_of(client, timeout=1.0)


async def _use(ctx: Context, bound: BoundConsumer) -> None:
    """Make all calls that need only the rights to pull and to acknowledge."""
    assert bound.cached_info is None
    for msg in await bound.fetch(2, expires=WAIT):
        await msg.ack()
    async for msg in bound.fetch(2, expires=WAIT):
        await msg.ack()
    one = await bound.next(expires=WAIT)
    assert one is not None
    await one.ack()
    async with bound.consume(max_messages=1) as messages:
        last = await messages.next(WAIT)
        assert last.data == b"5"
        await last.ack()


async def _bound(ctx: Context, user: str) -> None:
    owner, js = await _few_rights(ctx, user)
    await _use(ctx, js.bind_consumer(name_of(ctx), "c"))
    consumer = await owner.consumer(name_of(ctx), "c")

    async def acknowledged() -> bool:
        return (await consumer.info()).ack_floor.stream_seq == 6

    await until(await ctx.connect(js_server(ctx)), acknowledged)


@check()
async def check_bound_consumer_with_few_rights(ctx: Context) -> None:
    """The rights to pull and to acknowledge are enough for a consumer that is bound by name."""
    await _bound(ctx, "worker")


@check()
async def check_bound_consumer_of_another_account(ctx: Context) -> None:
    """An import of the services for pulling and acknowledging is enough, too."""
    await _bound(ctx, "guest")


async def _bound_subscription(ctx: Context, user: str) -> None:
    _, js = await _few_rights(ctx, user)
    sub = await js.pull_subscribe("", stream=name_of(ctx), durable="c", bind=True)
    assert sub.cached_info is None
    batch = await sub.fetch(10, timeout=WAIT)
    assert [msg.data for msg in batch] == numbers(6)
    for msg in batch:
        await msg.ack()
    await sub.unsubscribe()


@check()
async def check_pull_subscribe_with_few_rights(ctx: Context) -> None:
    """pull_subscribe with `bind` proceeds if it is not allowed to look up the consumer."""
    await _bound_subscription(ctx, "worker")


@check()
async def check_pull_subscribe_of_another_account(ctx: Context) -> None:
    """pull_subscribe binds to a consumer of another account, whose API it cannot reach."""
    await _bound_subscription(ctx, "guest")


@check()
async def check_pull_subscribe_without_rights(ctx: Context) -> None:
    """Without `bind`, a denied lookup is an error."""
    _, js = await _few_rights(ctx, "worker")
    with raises(PermissionDenied, within=SOON):
        await js.pull_subscribe("", stream=name_of(ctx), durable="c")
