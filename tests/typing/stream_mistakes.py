"""Mistakes with JetStream that a type checker has to find, by the name that mypy has for each."""

from __future__ import annotations

import jetstream
from jetstream import blocking as js_blocking
from natsproto import blocking, client


async def asynchronous(nc: client.Client, js: jetstream.JetStream) -> None:
    jetstream.Jetstream(nc)  # type: ignore[attr-defined]
    jetstream.JetStream(nc, "hub")  # type: ignore[call-arg]
    jetstream.JetStream(nc, domain=1)  # type: ignore[arg-type]
    await js.create_stream(nmae="S")  # type: ignore[call-arg]
    await js.create_stream(name="S", storage="disk")  # type: ignore[arg-type]
    await js.create_consumer("S", ack_policy="sometimes")  # type: ignore[arg-type]
    await js.publish("s", "text")  # type: ignore[arg-type]
    await js.publish("s", msgid="1")  # type: ignore[call-arg]
    await js.publish("s", expect_last_seq="1")  # type: ignore[arg-type]
    await js.schedule("s", when="@daily")  # type: ignore[call-arg]
    stream = await js.stream("S")
    await stream.purge("s.a")  # type: ignore[call-arg]
    await stream.get_msgs()  # type: ignore[call-arg]
    await stream.delete_msg("1")  # type: ignore[arg-type]
    stream.info()  # type: ignore[unused-coroutine]
    await js.subscribe("s", ack_policy="sometimes")  # type: ignore[arg-type]
    await js.subscribe("s", "S")  # type: ignore[arg-type]
    await js.subscribe("s", qeue="q")  # type: ignore[call-arg]
    with js.publisher():  # type: ignore[attr-defined]
        pass


def synchronous(nc: blocking.Client, js: js_blocking.JetStream) -> None:
    jetstream.JetStream(nc)  # type: ignore[arg-type]
    js_blocking.JetStream(nc, "hub")  # type: ignore[call-arg]
    js.create_stream(nmae="S")  # type: ignore[call-arg]
    js.publish("s", "text")  # type: ignore[arg-type]
    js.publish("s", msgid="1")  # type: ignore[call-arg]
    stream = js.stream("S")
    stream.purge("s.a")  # type: ignore[call-arg]
    stream.create_consumer(durable="C")  # type: ignore[call-arg]
    stream.name = "T"  # type: ignore[misc]
    consumer = stream.consumer("C")
    consumer.fetch(5, 5)  # type: ignore[call-arg]
    consumer.next().ack()  # type: ignore[union-attr]
    js.publisher().publish("s", msgid="1")  # type: ignore[call-arg]
    js.subscribe("s", qeue="q")  # type: ignore[call-arg]
    js.subscribe("s").next("1")  # type: ignore[arg-type]
