"""JetStream on MicroPython against a real server: publish, pull, ack, ordered, key-value."""

import asyncio
import json

import device_sensor
import sensor
from core import error_of
from harness import check
from network import OPTIONS, dial, host_line

from jetstream import JetStream


async def publish(url):
    async with dial(url) as client:
        js = JetStream(client)
        await js.create_or_update_stream(name="PUB", subjects=["pub.>"], storage="memory")
        for i in range(10):
            ack = await js.publish("pub.%d" % i, b"x", msg_id=str(i))
            check("sequence", (ack.stream, ack.seq), ("PUB", i + 1))
        check("duplicate", (await js.publish("pub.1", b"x", msg_id="1")).duplicate, True)
        wrong = await error_of(js.publish("pub.1", b"x", expect_last_seq=3))
        check("expected sequence", wrong, "WrongLastSequence")
        check("no stream", await error_of(js.publish("elsewhere", b"x")), "NoStreamResponse")
        await js.delete_stream("PUB")


async def pull(url):
    async with dial(url) as client:
        js = JetStream(client)
        stream = await js.create_or_update_stream(
            name="PULL", subjects=["pull.>"], storage="memory"
        )
        for i in range(30):
            await js.publish("pull.a", b"%d" % i)
        consumer = await stream.create_or_update_consumer(durable_name="worker")
        batch = await consumer.fetch(5, expires=5.0)
        check("fetched", [msg.data for msg in batch], [b"%d" % i for i in range(5)])
        for msg in batch:
            await msg.ack()
        seen = []
        async with consumer.consume(max_messages=8, stop_after=25) as messages:
            async for msg in messages:
                seen.append(msg.metadata.stream_seq)
                await msg.ack()
        check("consumed", seen, list(range(6, 31)))
        check("nothing left", len(await consumer.fetch(5, expires=0.5)), 0)
        check("next", await consumer.next(expires=0.5), None)
        await js.publish("pull.b", b"last")
        msg = await consumer.next(expires=5.0)
        await msg.nak()
        again = await consumer.next(expires=5.0)
        check("delivered twice", (again.data, again.metadata.delivered), (b"last", 2))
        await again.ack_sync()
        info = await consumer.info()
        check("acknowledged", info.ack_floor.stream_seq, 31)
        check("none pending", info.num_ack_pending, 0)
        await stream.delete()


async def ordered(url):
    async with dial(url) as client:
        js = JetStream(client)
        stream = await js.create_or_update_stream(name="ORD", subjects=["ord"], storage="memory")
        for i in range(50):
            await js.publish("ord", b"%d" % i)
        consumer = await stream.ordered_consumer()
        seen = []
        async with consumer.consume(max_messages=16, stop_after=50) as messages:
            async for msg in messages:
                seen.append(msg.metadata.stream_seq)
        check("in order", seen, list(range(1, 51)))
        await stream.delete()


async def key_value(url):
    async with dial(url) as client:
        js = JetStream(client)
        kv = await js.create_or_update_key_value(bucket="settings", history=5)
        revision = await kv.put("led", b"on")
        check("value", (await kv.get("led")).value, b"on")
        revision = await kv.update("led", b"off", revision)
        wrong = await error_of(kv.update("led", b"dim", revision - 1))
        check("compare and set", wrong != "", True)
        check("unchanged", (await kv.get("led")).value, b"off")
        check("exists", await error_of(kv.create("led", b"x")) != "", True)
        async with await kv.watch("*") as watcher:
            first = await watcher.next(timeout=5.0)
            check("present value", (first.key, first.value), ("led", b"off"))
            await kv.put("fan", b"1")
            change = await watcher.next(timeout=5.0)
            while change is None:  # the end of the present values
                change = await watcher.next(timeout=5.0)
            check("change", (change.key, change.value), ("fan", b"1"))
            await kv.delete("fan")
            check("deleted", (await watcher.next(timeout=5.0)).operation, "DEL")
        check("gone", await error_of(kv.get("fan")) != "", True)
        await js.delete_key_value("settings")


async def example(url):
    """The program of docs/embedding.md."""
    async with dial(url) as client:
        js = JetStream(client)
        stream = await js.create_or_update_stream(
            name="SENSORS", subjects=["sensor.*.temperature"], storage="memory"
        )
        program = sensor.main(url, lambda: b"21.5", **OPTIONS)
        task = asyncio.create_task(program)
        while True:
            try:
                reply = await client.request("sensor.7.command", b"blink", timeout=0.5)
                break
            except Exception:  # it is not connected yet
                await asyncio.sleep(0.02)
        check("command", reply.data, b"done: blink")
        await task
        info = await stream.info()
        check("stored", info.state.messages, 3)
        await stream.delete()


async def device(url):
    """The program of examples/: the other side kills the server while the sensor measures."""
    async with dial(url) as client:
        stream = await JetStream(client).create_or_update_stream(
            name="DEVICE", subjects=[device_sensor.SUBJECT]
        )
        values = iter(range(1000))
        made = device_sensor.Sensor("boot", lambda: next(values), every=0.05)
        options = dict(OPTIONS)
        options.update(reconnect_wait=0.05, reconnect_wait_max=0.2)
        task = asyncio.create_task(device_sensor.main(url, made, **options))
        await until(lambda: made.stored >= 3)
        print("kill")
        await until(lambda: client.state != "CONNECTED")
        before = made.stored
        await asyncio.sleep(0.5)  # measurements that cannot be stored now
        print("restart")
        check("told to go on", await host_line(), "restarted")
        await until(lambda: made.stored >= before + 15)
        task.cancel()
        check("nothing dropped", made.dropped, 0)
        seen = []
        consumer = await stream.ordered_consumer()
        async with consumer.consume(stop_after=made.stored) as messages:
            async for msg in messages:
                seen.append(json.loads(msg.data)["n"])
        check("each once, in order", seen, list(range(1, made.stored + 1)))
        await stream.delete()


async def until(true):
    for _ in range(600):
        if true():
            return
        await asyncio.sleep(0.05)
    raise RuntimeError("it did not happen within 30 s")
