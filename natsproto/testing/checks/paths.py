"""Message paths: the reports of real servers on a traced message (ADR-41)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.errors import TimeoutExpired
from natsproto.paths import (
    Egress,
    Ingress,
    ServiceImport,
    StreamExport,
    SubjectMapping,
)
from natsproto.testing.context import WAIT, Context, arrived, raises
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.paths import MessagePath

SINCE = (2, 11)
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
# The user `a` publishes; account B imports a stream of A, and A imports a service of B.
ACCOUNTS: dict[str, Any] = {
    "accounts": {
        "A": {
            "users": [
                {"user": "a", "password": "a"},
                {"user": "d", "password": "d", "permissions": {"publish": {"deny": ["deny.x"]}}},
            ],
            "mappings": {"m.*": "mapped.$1"},
            "exports": [{"stream": "tick.>"}],
            "imports": [{"service": {"account": "B", "subject": "add"}, "to": "my.add"}],
            "msg_trace": {"dest": "reports", "sampling": "100%"},
        },
        "B": {
            "users": [{"user": "b", "password": "b"}],
            "exports": [{"service": "add", "allow_trace": True}],
            "imports": [
                {
                    "stream": {"account": "A", "subject": "tick.>"},
                    "to": "from_a.tick.>",
                    "allow_trace": True,
                }
            ],
        },
    }
}


@check(since=SINCE)
async def check_traced_message_is_not_delivered(ctx: Context) -> None:
    """A traced message shows its receivers, none of which receives it."""
    sender, receiver = await ctx.pair()
    sub = await receiver.subscribe(ctx.subject)
    await receiver.flush(WAIT)
    path = await sender.trace_message(ctx.subject, b"x", timeout=WAIT)
    assert path.complete
    assert path.origin is not None
    ingress, egress = path.origin.steps
    assert isinstance(ingress, Ingress)
    assert isinstance(egress, Egress)
    assert (ingress.kind, ingress.subject, ingress.error) == ("client", ctx.subject, "")
    assert (egress.kind, egress.subscription, egress.hop) == ("client", ctx.subject, "")
    assert sender.info is not None
    assert path.origin.server.id == sender.info.server_id
    await arrived(sender, receiver)
    with raises(TimeoutExpired):
        await sub.next(timeout=0)


@check(since=SINCE)
async def check_traced_message_is_delivered_on_request(ctx: Context) -> None:
    """With `deliver=True` the message arrives, and its path is the same."""
    sender, receiver = await ctx.pair()
    sub = await receiver.subscribe(ctx.subject, queue="workers")
    await receiver.flush(WAIT)
    headers = {"K": "v"}
    path = await sender.trace_message(
        ctx.subject, b"x", deliver=True, timeout=WAIT, headers=headers
    )
    assert [each.queue for each in path.deliveries] == ["workers"]
    assert path.origin is not None
    assert path.origin.header("k") == "v"
    msg = await sub.next(WAIT)
    assert msg.data == b"x"
    assert msg.headers is not None
    assert msg.headers["K"] == "v"


@check(since=SINCE)
async def check_traced_message_without_receivers(ctx: Context) -> None:
    """A message without receivers enters the server and does not leave it."""
    client = await ctx.client()
    path = await client.trace_message(ctx.subject, timeout=WAIT)
    assert path.complete
    assert [type(step) for hop in path.hops for step in hop.steps] == [Ingress]
    assert path.deliveries == []


@check(since=SINCE)
async def check_traced_message_between_accounts(ctx: Context) -> None:
    """Mappings, stream exports, service imports and denied subjects are steps of their own."""
    server = ctx.own_server(**ACCOUNTS)
    sender = await ctx.connect(server, user="a", password="a")
    other = await ctx.connect(server, user="b", password="b")
    denied = await ctx.connect(server, user="d", password="d")
    for subject in ("from_a.>", "add"):
        await other.subscribe(subject)
    await other.flush(WAIT)
    await sender.subscribe("mapped.*")

    [_, mapping, _] = (await _steps(sender, "m.q"))[1]
    assert isinstance(mapping, SubjectMapping)
    assert mapping.subject == "mapped.q"
    [_, export, egress] = (await _steps(sender, "tick.q"))[1]
    assert isinstance(export, StreamExport)
    assert isinstance(egress, Egress)
    assert (export.account, export.subject, egress.account) == ("B", "from_a.tick.q", "B")
    [_, service, _] = (await _steps(sender, "my.add"))[1]
    assert isinstance(service, ServiceImport)
    assert (service.account, service.from_subject, service.to_subject) == ("B", "my.add", "add")
    path, [_] = await _steps(denied, "deny.x")
    assert len(path.errors) == 1
    assert "Permissions Violation" in path.errors[0]


async def _steps(client: Client, subject: str) -> tuple[MessagePath, list[object]]:
    path = await client.trace_message(subject, timeout=WAIT)
    assert path.complete
    assert path.origin is not None
    return path, list(path.origin.steps)


@check(since=SINCE)
async def check_trace_context(ctx: Context) -> None:
    """A sampled traceparent is reported to the destination of the account."""
    server = ctx.own_server(**ACCOUNTS)
    client = await ctx.connect(server, user="a", password="a")
    sub = await client.subscribe(ctx.subject)
    path = await client.trace_message(
        ctx.subject, b"x", deliver=True, timeout=WAIT, traceparent=PARENT, dest="reports"
    )
    assert path.complete
    assert [each.subscription for each in path.deliveries] == [ctx.subject]
    assert (await sub.next(WAIT)).data == b"x"


@check(since=SINCE)
async def check_traced_message_in_a_cluster(ctx: Context) -> None:
    """Every member that the message reaches is a hop after the first one."""
    cluster = ctx.own_cluster()
    first, second, third = [await ctx.connect(url) for url in cluster.urls]
    await second.subscribe(ctx.subject)
    await third.subscribe(ctx.subject)
    await second.flush(WAIT)
    await third.flush(WAIT)
    deadline = time.monotonic() + WAIT
    while True:  # until the interest has spread between the members
        path = await first.trace_message(ctx.subject, b"x", timeout=WAIT)
        assert path.complete
        assert path.origin is not None
        if len(path.origin.next) == 2:
            break
        assert time.monotonic() < deadline, str(path)
    assert path.origin.server.name == "s1"
    assert path.origin.count == 2
    assert sorted(hop.server.name for hop in path.origin.next) == ["s2", "s3"]
    for hop in path.origin.next:
        assert hop.ingress is not None
        assert (hop.ingress.kind, hop.ingress.name) == ("router", "s1")
    assert len(path.deliveries) == 2
