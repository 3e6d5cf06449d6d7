"""Subscribing, canceled at any moment: no consumer is left."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from natsproto.testing import Server
from tests.adapters.canceling import FOR_GOOD, Canceler, until_empty

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}
CREATED = "$JS.EVENT.ADVISORY.CONSUMER.CREATED.S.*"
DELETED = "$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.*"


@pytest.fixture
def js_server():
    with Server(jetstream=True) as server:
        yield server


def subscriptions(server, name):
    """Return how many subscriptions a client has, as counted by the server."""
    connections = server.monitor("/connz")["connections"]
    [found] = [each for each in connections if each.get("name") == name]
    return found["subscriptions"]


@pytest.mark.rule("D-JSSUB-12")
@pytest.mark.parametrize("asked", [{}, {"durable": "d"}], ids=["ephemeral", "durable"])
def test_canceled_while_the_server_is_silent(runtime, js_server, asked):
    """A canceled call does not wait for an answer; a consumer created anyway is deleted."""

    async def main():
        async with (
            runtime.connect(js_server.url, name="ours") as client,
            runtime.connect(js_server.url) as other,
        ):
            js = JetStream(client)
            await JetStream(other).create_stream(CONFIG)
            created = await other.subscribe(CREATED)
            deleted = await other.subscribe(DELETED)
            await other.flush()
            if asked:
                port = client.session.port

                async def wait(waitable):
                    """Freeze the server between the lookup and the creation of the consumer."""
                    del port.wait
                    await port.wait(waitable)
                    js_server.freeze()

                port.wait = wait
            else:
                js_server.freeze()
            sent = client.stats.out_msgs
            running = runtime.start(lambda: js.subscribe("s", stream="S", **asked))
            while client.stats.out_msgs < sent + (2 if asked else 1):
                await runtime.sleep(0.01)
            await running.stop()
            js_server.thaw()
            await created.next(5.0)
            await deleted.next(5.0)
            await client.flush()
            assert await JetStream(other).consumer_names("S") == []
            while subscriptions(js_server, "ours") > 1:  # the inbox of requests
                await runtime.sleep(0.01)

    runtime.run(main)


POINTS = 2  # at which it suspends: the stream of the subject is looked up, the consumer created


@pytest.mark.rule("D-JSSUB-12")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_canceled_at_each_suspension(runtime, js_server, before):
    async def main():
        async with (
            runtime.connect(js_server.url, name="ours") as client,
            runtime.connect(js_server.url) as another,
        ):
            js, other = JetStream(client), JetStream(another)
            await js.create_stream(CONFIG)
            made = []

            async def subscribe():
                made.append(await js.subscribe("s", inactive_threshold=FOR_GOOD))

            async def leftovers():
                inboxes = subscriptions(js_server, "ours") - 1  # without that of requests
                return [*await other.consumer_names("S"), *["a subscription"] * inboxes]

            for nth in range(1, POINTS + 1):
                canceler = Canceler(runtime, client, nth, before)
                assert await canceler.run(subscribe())
                assert (canceler.suspensions, made) == (nth, [])
                await until_empty(runtime, leftovers)
            canceler = Canceler(runtime, client, POINTS + 1, before)
            assert not await canceler.run(subscribe())
            assert (canceler.suspensions, len(made)) == (POINTS, 1)
            await made[0].unsubscribe()
            await until_empty(runtime, leftovers)

    runtime.run(main)
