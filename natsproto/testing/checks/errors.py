"""Errors that the client or the server reports, and their effect on the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from natsproto.errors import (
    ConnectFailed,
    InvalidSubject,
    InvalidValue,
    PayloadTooLarge,
    PermissionDenied,
    ServerFailed,
)
from natsproto.events import ServerError
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises, take
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client

_LIMITED = {
    "user": "limited",
    "password": "p",
    "permissions": {
        "publish": {"deny": ["secret.>"]},
        "subscribe": {"deny": ["secret.>", "work.> forbidden"]},
    },
}
_CONFIG: dict[str, Any] = {
    "authorization": {"users": [_LIMITED, {"user": "free", "password": "p"}]}
}


@check()
async def check_payload_too_large(ctx: Context) -> None:
    """A message above max_payload, including headers, is rejected before it is sent."""
    client = await ctx.connect(ctx.shared_server(max_payload=1000))
    sub = await client.subscribe(ctx.subject)
    with raises(PayloadTooLarge):
        await client.publish(ctx.subject, b"x" * 1001)
    with raises(PayloadTooLarge):
        await client.publish(ctx.subject, b"x" * 900, headers={"Key": "v" * 100})
    with raises(PayloadTooLarge):
        await client.request(ctx.subject, b"x" * 1001)
    assert client.stats.out_msgs == 0
    await client.publish(ctx.subject, b"x" * 1000)
    assert await take(sub, 1) == [b"x" * 1000]
    assert client.stats.connects == 1


@check()
async def check_bad_subjects(ctx: Context) -> None:
    """Invalid subjects are rejected before anything is sent."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    for bad in ["", " ", "a b", "a\r\nPING", "a\tb", ".a", "a.", "a..b", "a.*", "a.>", "a\0b"]:
        with raises(InvalidSubject):
            await client.publish(bad, b"bad")
        with raises(InvalidSubject):
            await client.request(bad, b"bad")
    for bad in ["a b", "a\r\nb", "a..b", "*"]:
        with raises(InvalidSubject):
            await client.publish(ctx.subject, b"bad", reply=bad)
    for bad in ["", "a b", "a\r\nSUB > 9", "a..b", "a.>.b", ".a"]:
        with raises(InvalidSubject):
            await client.subscribe(bad)
    for bad in ["q q", "q\r\nPING"]:
        with raises(InvalidSubject):
            await client.subscribe(ctx.subject, queue=bad)
    assert client.stats.out_msgs == 0
    await client.publish(ctx.subject, b"good")
    assert await take(sub, 1) == [b"good"]


@check()
async def check_bad_values(ctx: Context) -> None:
    """Negative timeouts and numbers, and payloads of a wrong type, are rejected."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    text: Any = "text"
    for call in (
        lambda: client.request(ctx.subject, timeout=-1),
        lambda: client.flush(timeout=-1),
        lambda: client.drain(timeout=-1),
        lambda: sub.next(timeout=-1),
        lambda: sub.unsubscribe(after=-1),
        lambda: client.subscribe(ctx.subject, max_msgs=-1),
        lambda: client.publish(ctx.subject, text),
    ):
        with raises(InvalidValue):
            await call()
    await client.flush(WAIT)


async def _limited(ctx: Context) -> tuple[Client, Client]:
    """Return a client with limited permissions and one with all."""
    server = ctx.shared_server(**_CONFIG)
    return (
        await ctx.connect(server, user="limited", password="p"),
        await ctx.connect(server, user="free", password="p"),
    )


async def denied(client: Client) -> PermissionDenied:
    """Return the subject of the next -ERR."""
    error = (await next_event(client, ServerError)).error
    assert isinstance(error, PermissionDenied), error
    return error


@check()
async def check_publishdenied(ctx: Context) -> None:
    """An event reports a message that may not be published; the connection continues."""
    limited, free = await _limited(ctx)
    sub = await free.subscribe(">")
    await free.flush(WAIT)
    await limited.publish("secret.x", b"1")
    await limited.publish(ctx.subject, b"2")
    assert (await denied(limited)).subject == "secret.x"
    assert await take(sub, 1) == [b"2"]
    assert limited.stats.connects == 1


@check()
async def check_subscribedenied(ctx: Context) -> None:
    """A denied subscription ends with PermissionDenied; the others continue."""
    limited, _ = await _limited(ctx)
    good = await limited.subscribe(ctx.subject)
    bad = await limited.subscribe("secret.x")
    with raises(PermissionDenied, within=SOON) as caught:
        async for _ in bad:
            pass
    assert caught.error.subject == "secret.x"
    with raises(PermissionDenied):
        await bad.next(WAIT)
    assert (await denied(limited)).subject == "secret.x"
    await limited.publish(ctx.subject, b"1")
    assert await take(good, 1) == [b"1"]


@check()
async def check_queuedenied(ctx: Context) -> None:
    """A queue that may not be joined ends that subscription, not another to the subject."""
    limited, free = await _limited(ctx)
    subject = "work." + ctx.subject
    good = await limited.subscribe(subject, queue="allowed")
    bad = await limited.subscribe(subject, queue="forbidden")
    with raises(PermissionDenied, within=SOON) as caught:
        await bad.next(WAIT)
    assert (caught.error.subject, caught.error.queue) == (subject, "forbidden")
    await free.publish(subject, b"1")
    assert await take(good, 1) == [b"1"]


@check()
async def check_requestdenied(ctx: Context) -> None:
    """A request that may not be published fails at once, not at its timeout."""
    limited, _ = await _limited(ctx)
    with raises(PermissionDenied, within=SOON) as caught:
        await limited.request("secret.x", timeout=WAIT)
    assert caught.error.subject == "secret.x"


@check()
async def check_maximum_subscriptions(ctx: Context) -> None:
    """An event reports one subscription too many; the connection continues."""
    client = await ctx.connect(ctx.shared_server(max_subscriptions=2))
    subs = [await client.subscribe(f"{ctx.subject}.{n}") for n in range(3)]
    error = (await next_event(client, ServerError)).error
    assert isinstance(error, ServerFailed)
    assert "maximum subscriptions exceeded" in error.text.lower()
    await client.publish(ctx.subject + ".0", b"1")
    assert await take(subs[0], 1) == [b"1"]
    assert client.stats.connects == 1


@check()
async def check_maximum_connections(ctx: Context) -> None:
    """The error of a server that is full names the reason."""
    server = ctx.own_server(max_connections=1)
    await ctx.connect(server)
    with raises(ConnectFailed) as caught:
        await ctx.connect(server)
    assert "maximum connections exceeded" in str(caught.error).lower()


@check()
async def check_verbose_and_pedantic(ctx: Context) -> None:
    """Verbose and pedantic mode do not change the behavior of the client."""
    client = await ctx.client(verbose=True, pedantic=True)
    sub = await client.subscribe(ctx.subject + ".>")
    for n in range(100):
        await client.publish(f"{ctx.subject}.{n}", b"%d" % n, headers={"Key": "value"})
    assert await take(sub, 100) == [b"%d" % n for n in range(100)]
    await sub.unsubscribe()
    await client.flush(WAIT)
    assert client.stats.connects == 1
