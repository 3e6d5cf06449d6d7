"""A sensor: it stores measurements in a stream, and answers commands."""

import asyncio

from jetstream import JetStream
from natsproto.adapters.micropython import connect
from natsproto.errors import NatsError


async def answer(client):
    commands = await client.subscribe("sensor.7.command")
    async for msg in commands:
        await client.respond(msg, b"done: " + msg.data)


async def main(url, measure, **options):
    async with connect(url, name="sensor-7", **options) as client:
        commands = asyncio.create_task(answer(client))
        js = JetStream(client)
        for number in range(3):
            try:
                await js.publish("sensor.7.temperature", measure(), msg_id="7-%d" % number)
            except NatsError as error:
                print("not stored:", error)
            await asyncio.sleep(0.2)
        commands.cancel()
