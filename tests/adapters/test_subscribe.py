"""Subscribing that is cancelled, at any moment: nothing is left behind."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from natsproto.testing import Server
from tests.adapters.runtimes import RUNTIMES, Runtime

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}
CREATED = "$JS.EVENT.ADVISORY.CONSUMER.CREATED.S.*"
DELETED = "$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.*"


@pytest.fixture
def js_server():
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(params=RUNTIMES)
def runtime(request) -> Runtime:
    return Runtime(request.param)


def subscriptions(server, name):
    """How many a client has, as the server counts."""
    connections = server.monitor("/connz")["connections"]
    [found] = [each for each in connections if each.get("name") == name]
    return found["subscriptions"]


@pytest.mark.rule("JSSUB-12")
@pytest.mark.parametrize("asked", [{}, {"durable": "d"}], ids=["ephemeral", "durable"])
def test_cancelled_while_the_server_is_silent(runtime, js_server, asked):
    """It does not wait for an answer; what was created all the same is deleted."""

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

                async def consumer(stream, name):
                    # Freezes between the look and the creation, where no test can get hold of it.
                    try:
                        return await JetStream.consumer(js, stream, name)
                    finally:
                        js_server.freeze()

                js.consumer = consumer
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


@pytest.mark.rule("JSSUB-12")
def test_cancelled_at_any_moment(runtime, js_server):
    """Sooner or later after its start, a hundred times."""

    async def main():
        async with runtime.connect(js_server.url, name="ours") as client:
            js = JetStream(client)
            await js.create_stream(CONFIG)
            made = []

            async def subscribe():
                made.append(await js.subscribe("s"))

            for n in range(100):
                running = runtime.start(subscribe)
                await runtime.sleep(n * 0.00003)
                await running.stop()
            for messages in made:
                await messages.unsubscribe()
            while await js.consumer_names("S") or subscriptions(js_server, "ours") > 1:
                await runtime.sleep(0.05)
            assert len(made) < 100

    runtime.run(main)
