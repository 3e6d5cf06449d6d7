"""A push consumer of the layer has its subscriber from the start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.compat import nats
from natsproto.compat.nats.js.errors import APIError
from natsproto.testing import Server
from tests.compat.both import run

if TYPE_CHECKING:
    pass

SOON = 5.0


async def bound_when_created(url: str) -> bool:
    """Return whether the consumer has a subscriber before its creation is answered."""
    nc, proxy = await nats.connect(url), await nats.connect(url)
    await nc.jetstream().add_stream(name="S", subjects=["a"])
    found: list[bool] = []

    async def create(msg: Any) -> None:
        answer = await proxy.request(msg.subject.replace("api.", "$JS.API.", 1), msg.data)
        info = await proxy.jetstream().consumer_info("S", json.loads(answer.data)["name"])
        found.append(bool(info.push_bound))
        await msg.respond(answer.data)

    await proxy.subscribe("api.CONSUMER.CREATE.>", cb=create)
    await proxy.flush()
    sub = await nc.jetstream(prefix="api").subscribe("a", stream="S")
    await nc.jetstream().publish("a", b"hello")
    assert (await sub.next_msg(timeout=SOON)).data == b"hello"
    await nc.close()
    await proxy.close()
    return found == [True]


def test_a_consumer_is_created_for_a_subscription(server: Server):
    assert run(bound_when_created, server.url)


async def refused(url: str) -> int:
    """Return how many subscriptions a consumer leaves that the server refuses to create."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    await js.add_stream(name="R", subjects=["r"])
    config = nats.js.api.ConsumerConfig(max_deliver=1, backoff=[1.0, 2.0])
    before = len(nc._session.connection.subscriptions.by_sid)
    with pytest.raises(APIError):
        await js.subscribe("r", config=config)
    after = len(nc._session.connection.subscriptions.by_sid)
    await nc.close()
    return after - before


def test_a_refused_consumer_leaves_no_subscription(server: Server):
    assert run(refused, server.url) == 0
