"""Reaching JetStream: domains, prefixes, servers that are too old or do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import JetStreamNotAvailable
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import fill, name_of, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue, LocalError, NotSupported, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises
from natsproto.testing.peers import Listener

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_OLD = b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1000}\r\n'
_WELCOME = (b"PING\r\n", b"PONG\r\n")
_GOODBYE = (b"PING\r\nPING\r\n", b"PONG\r\n")  # nothing was sent in between


@check()
async def check_domain(ctx: Context) -> None:
    """A domain is reached by its name, and messages have it."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="hub")
    assert (await js.account_info()).domain == "hub"
    stream = await new_stream(ctx, js, allow_direct=True)
    assert (await js.publish(ctx.subject + ".x", b"1")).domain == "hub"
    assert (await stream.get_msg(1)).data == b"1"
    consumer = await stream.create_consumer(durable_name="c")
    assert (await consumer.info()).num_pending == 1
    [msg] = await consumer.fetch(1, expires=WAIT)
    assert msg.data == b"1"
    await msg.ack_sync()
    assert (await consumer.info()).ack_floor.stream_seq == 1


@check()
async def check_domain_that_is_not_there(ctx: Context) -> None:
    """A domain without a server raises an error at once."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="elsewhere")
    with raises(JetStreamNotAvailable, within=SOON) as caught:
        await js.account_info()
    assert "$JS.elsewhere.API" in str(caught.error)


@check(since=(2, 11))
async def check_api_prefix(ctx: Context) -> None:
    """A custom prefix, such as that of a domain, is used for every call."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, prefix="$JS.hub.API")
    stream = await new_stream(ctx, js, allow_direct=True)
    await fill(ctx, js, numbers(3))
    assert [msg.data for msg in await stream.get_msgs(batch=3)] == numbers(3)
    consumer = await stream.create_consumer(durable_name="c")
    assert [msg.data for msg in await consumer.fetch(3, expires=WAIT)] == numbers(3)


@check()
async def check_api_prefix_of_another_account(ctx: Context) -> None:
    """An account may offer its API to another one under a prefix."""
    api = {"account": "A", "subject": "$JS.API.>"}
    accounts = {
        "A": {
            "jetstream": "enabled",
            "users": [{"user": "a", "password": "a"}],
            "exports": [{"service": "$JS.API.>"}],
        },
        "B": {
            "users": [{"user": "b", "password": "b"}],
            "imports": [{"service": api, "to": "A.JS.>"}],
        },
    }
    server = ctx.shared_server(jetstream="enabled", accounts=accounts)
    owner = jetstream_of(await ctx.connect(server, user="a", password="a"))
    guest = jetstream_of(await ctx.connect(server, user="b", password="b"), prefix="A.JS")
    stream = await new_stream(ctx, guest)
    assert (await owner.stream(stream.name)).name == name_of(ctx)
    await guest.create_consumer(stream.name, durable_name="c", filter_subject=ctx.subject + ".*")
    assert await owner.consumer_names(stream.name) == ["c"]


@check()
async def check_domain_rejected_locally(ctx: Context) -> None:
    """A domain is one token, a prefix is a subject, and only one of them can be given."""
    client = await ctx.client()
    with raises(InvalidValue):
        jetstream_of(client, domain="hub", prefix="x")
    for wrong in ({"domain": "a.b"}, {"domain": "*"}, {"prefix": "a.>"}, {"prefix": "a b"}):
        with raises(LocalError):
            jetstream_of(client, **wrong)


@check()
async def check_api_level(ctx: Context) -> None:
    """Calls for which a server is too old are rejected locally, as it might ignore fields."""
    listener = ctx.enter(Listener(_OLD, _WELCOME, _GOODBYE))
    client = await ctx.connect(f"nats://{listener.address}")
    js = jetstream_of(client)
    sent = client.stats.out_msgs
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: js.resume_consumer("S", "c"),
        lambda: js.unpin_consumer("S", "c", "group"),
        lambda: js.reset_consumer("S", "c"),
        lambda: js.publish("s", b"", ttl=1),
        lambda: js.add_to_counter("s", 1),
        lambda: js.schedule("s", b"", when="@every 1s", target="t"),
        lambda: js.create_stream(name="S", allow_msg_ttl=True),
        lambda: js.create_consumer("S", priority_policy="overflow", priority_groups=["g"]),
    ]
    for call in calls:
        with raises(NotSupported):
            await call()
    with raises(NotSupported):
        js.atomic_batch()
    assert client.stats.out_msgs == sent


@check()
async def check_api_timeout(ctx: Context) -> None:
    """A request to a silent server ends at its timeout."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server, timeout=0.1)
    server.freeze()
    for call in (js.account_info, js.stream_names):
        with raises(TimeoutExpired, within=SOON):
            await call()
    with raises(TimeoutExpired, within=SOON):
        await js.publish(ctx.subject, b"1")
    server.thaw()
    await js.account_info()
