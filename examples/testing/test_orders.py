"""Tests of an application on real servers: run them with `pytest examples/testing`."""

from __future__ import annotations

import asyncio

from jetstream import JetStream
from natsproto import Client
from natsproto.adapters.asyncio import connect
from natsproto.events import Connected


async def place_order(js: JetStream, number: int) -> None:
    """Publish an order: the code that the tests are for."""
    await js.publish("orders.new", b"%d" % number, msg_id=f"order-{number}")


async def reconnected(client: Client) -> None:
    """Wait until the client has connected again."""
    async for event in client.events:
        if isinstance(event, Connected) and event.again:
            return


def test_an_order_is_stored_once(jetstream_server):
    async def scenario() -> None:
        async with connect(jetstream_server.url) as client:
            js = JetStream(client)
            stream = await js.create_stream(name="ORDERS", subjects=["orders.>"])
            await place_order(js, 1)
            await place_order(js, 1)
            assert (await stream.info()).state.messages == 1

    asyncio.run(scenario())


def test_an_order_survives_a_crash_of_the_server(jetstream_server):
    async def scenario() -> None:
        async with connect(jetstream_server.url, reconnect_wait=0.05) as client:
            js = JetStream(client)
            await js.create_stream(name="ORDERS", subjects=["orders.>"])
            await place_order(js, 1)
            jetstream_server.kill()
            jetstream_server.restart()
            await reconnected(client)
            assert (await (await js.stream("ORDERS")).get_msg(1)).data == b"1"

    asyncio.run(scenario())


def test_there_is_no_stream_of_another_test(jetstream_server):
    async def scenario() -> None:
        async with connect(jetstream_server.url) as client:
            assert await JetStream(client).stream_names() == []

    asyncio.run(scenario())
