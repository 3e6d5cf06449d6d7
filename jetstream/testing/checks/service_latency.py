"""The latency of services that an account exports, as servers measure it (ADR-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.advisories import ServiceLatencyMetric, read_advisory
from jetstream.testing.suite import check
from natsproto.errors import NoResponders
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.subscription import Subscription

# Account A exports a service, of which every request is measured; account B imports it.
_LATENCY = {"sampling": 100, "subject": "latency"}
ACCOUNTS: dict[str, Any] = {
    "A": {
        "users": [{"user": "a", "password": "a"}],
        "exports": [{"service": "service", "latency": _LATENCY}],
    },
    "B": {
        "users": [{"user": "b", "password": "b"}],
        "imports": [{"service": {"account": "A", "subject": "service"}}],
    },
}


async def _serve(client: Client, requests: Subscription) -> None:
    await client.respond(await requests.next(WAIT), b"answer")


@check()
async def check_service_latency(ctx: Context) -> None:
    """A server measures a request to an exported service, and its failure; both are typed."""
    server = ctx.own_server(accounts=ACCOUNTS)
    responder = await ctx.connect(server, user="a", password="a", name="responder")
    watcher = await ctx.connect(server, user="a", password="a")
    requestor = await ctx.connect(server, user="b", password="b")
    metrics = await watcher.subscribe("latency")
    await watcher.flush()
    requests = await responder.subscribe("service")
    await responder.flush()
    task = ctx.start(_serve, responder, requests)
    assert (await requestor.request("service", timeout=WAIT)).data == b"answer"
    await task.result()
    found = read_advisory(await metrics.next(WAIT))
    assert isinstance(found, ServiceLatencyMetric)
    assert (found.status, found.extra) == (200, {})
    assert found.requestor is not None
    assert found.responder is not None
    assert (found.requestor.acc, found.responder.name) == ("B", "responder")
    assert 0 <= found.service <= found.total < WAIT

    await requests.unsubscribe()
    await responder.flush()
    with raises(NoResponders):
        await requestor.request("service", timeout=WAIT)
    found = read_advisory(await metrics.next(WAIT))
    assert isinstance(found, ServiceLatencyMetric)
    assert (found.status, found.description) == (503, "Service Unavailable")
