"""The simulated server and a real one: the same programs, the same results.

Each program is a coroutine that returns what it saw. It gets a JetStream and a function that waits.
Times, tokens and sizes differ, and are left out.
"""

from __future__ import annotations

import asyncio

import pytest

from jetstream import JetStream
from jetstream.testing.sim import Simulation
from natsproto.adapters.asyncio import connect
from natsproto.errors import NatsError
from natsproto.testing import Server


async def outcome(awaitable):
    """Return what a call returns, or the error with its code."""
    try:
        found = await awaitable
    except NatsError as error:
        return type(error).__name__, getattr(error, "err_code", 0)
    return found


def state_of(info):
    state = info.state
    return state.messages, state.first_seq, state.last_seq, state.num_subjects, state.num_deleted


def progress(info):
    return (
        (info.delivered.consumer_seq, info.delivered.stream_seq),
        info.ack_floor.stream_seq,
        (info.num_ack_pending, info.num_redelivered, info.num_pending),
    )


def seen(messages):
    return [
        (msg.subject, msg.data, msg.metadata.stream_seq, msg.metadata.delivered) for msg in messages
    ]


async def publishes(js, wait):
    stream = await js.create_stream(name="S", subjects=["s.>"])
    found = [await outcome(js.create_stream(name="S", subjects=["other"]))]
    found.append(await outcome(js.create_stream(name="T", subjects=["s.a"])))
    for options in (
        {},
        {"msg_id": "a"},
        {"msg_id": "a"},
        {"expect_last_seq": 9},
        {"expect_last_seq": 2},
        {"expect_last_subject_seq": 1},
        {"expect_last_subject_seq": 3},
        {"expect_stream": "T"},
        {"expect_last_msg_id": "a"},
    ):
        ack = await outcome(js.publish("s.x", b"1", **options))
        found.append(ack if isinstance(ack, tuple) else (ack.stream, ack.seq, ack.duplicate))
    found.append(await outcome(js.publish("nowhere", b"")))
    found.append(state_of(await stream.info()))
    return found


async def limits(js, wait):
    found = []
    for number, config in enumerate(
        (
            {"max_msgs": 3},
            {"max_msgs": 3, "discard": "new"},
            {"max_msgs_per_subject": 1},
            {
                "max_msgs_per_subject": 1,
                "max_msgs": 10,
                "discard": "new",
                "discard_new_per_subject": True,
            },
            {"max_msg_size": 3},
        )
    ):
        name = f"L{number}"
        stream = await js.create_stream(name=name, subjects=[f"{name}.>"], **config)
        for index in range(5):
            ack = await outcome(js.publish(f"{name}.{index % 2}", b"x" * index))
            found.append(ack if isinstance(ack, tuple) else ack.seq)
        found.append(state_of(await stream.info()))
    return found


async def stored(js, wait):
    stream = await js.create_stream(name="S", subjects=["s.>"], allow_direct=True)
    for index in range(6):
        await js.publish(f"s.{index % 3}", b"%d" % index, headers={"A": "b"} if index else None)
    found = [state_of(await stream.info())]
    await stream.delete_msg(3)
    found.append(await outcome(stream.delete_msg(3)))
    for direct in (True, False):
        for options in (
            {"seq": 2},
            {"seq": 3},
            {"last_by_subject": "s.0"},
            {"next_by_subject": "s.1", "seq": 3},
        ):
            msg = await outcome(stream.get_msg(**options))
            found.append(msg if isinstance(msg, tuple) else (msg.seq, msg.subject, msg.data))
        if direct:
            await js.update_stream((await stream.info()).config, allow_direct=False)
            stream = await js.stream("S")
    await js.update_stream((await stream.info()).config, allow_direct=True)
    stream = await js.stream("S")
    msgs = await stream.get_msgs(seq=2, batch=3)
    found.append([(msg.seq, msg.data, sorted((msg.headers or {}).items())) for msg in msgs])
    found.append([msg.seq for msg in await stream.get_last_msgs(["s.*"])])
    found.append(await stream.purge(subject="s.1", keep=1))
    found.append(state_of(await stream.info()))
    found.append(await stream.purge())
    found.append(state_of(await stream.info()))
    return found


async def policies(js, wait):
    stream = await js.create_stream(name="S", subjects=["s.>"])
    for index in range(6):
        await js.publish(f"s.{index % 3}", b"%d" % index)
    found = []
    for number, config in enumerate(
        (
            {},
            {"deliver_policy": "last"},
            {"deliver_policy": "new"},
            {"deliver_policy": "last_per_subject", "filter_subjects": ["s.>"]},
            {"deliver_policy": "by_start_sequence", "opt_start_seq": 4},
            {"filter_subjects": ["s.1", "s.2"]},
            {"filter_subject": "s.0", "headers_only": True},
            {"ack_policy": "none"},
            {"ack_policy": "all"},
            {"max_ack_pending": 2},
        )
    ):
        consumer = await stream.create_consumer(durable_name=f"C{number}", **config)
        found.append(progress(await consumer.info()))
        batch = await consumer.fetch(4, expires=0.3)
        found.append(seen(batch))
        if batch and config.get("ack_policy") != "none":
            await batch[-1].ack_sync()
        found.append(progress(await consumer.info()))
    found.append(await stream.consumer_names())
    return found


async def redeliveries(js, wait):
    stream = await js.create_stream(name="S", subjects=["s"])
    config = {"ack_wait": 0.6, "max_deliver": 2}
    consumer = await stream.create_consumer(durable_name="C", **config)
    for index in range(5):
        await js.publish("s", b"%d" % index)
    found = []
    batch = list(await consumer.fetch(5, expires=0.2))
    await batch[0].ack_sync()
    await batch[1].nak()
    await batch[2].nak(delay=0.4)
    await batch[3].term()
    found.append(seen(await consumer.fetch(5, expires=0.2)))
    found.append(seen(await consumer.fetch(5, expires=0.3)))
    found.append(seen(await consumer.fetch(5, expires=0.6)))
    await wait(0.8)
    found.append(seen(await consumer.fetch(5, expires=0.2)))  # all were delivered twice
    found.append((await consumer.info()).num_pending)
    return found


async def work_queue(js, wait):
    stream = await js.create_stream(name="S", subjects=["s"], retention="workqueue")
    consumer = await stream.create_consumer(durable_name="C")
    for index in range(3):
        await js.publish("s", b"%d" % index)
    batch = await consumer.fetch(2)
    for msg in batch:
        await msg.ack_sync()
    return state_of(await stream.info()), seen(batch)


async def buckets(js, wait):
    kv = await js.create_key_value(bucket="b", history=2)
    found = [await kv.put("a", b"1"), await kv.put("b", b"2"), await kv.put("a", b"3")]
    found.append(await outcome(kv.create("a", b"4")))
    found.append(await outcome(kv.update("a", b"4", last=1)))
    found.append(await kv.update("a", b"4", last=3))
    entry = await kv.get("a")
    found.append((entry.value, entry.revision, entry.operation))
    found.append([(each.value, each.revision) for each in await kv.history("a")])
    await kv.delete("b")
    found.append(await outcome(kv.get("b")))
    found.append(sorted(await kv.keys()))
    found.append(await kv.create("b", b"again"))
    watcher = await kv.watch()
    found.append([(each.key, each.revision) async for each in watcher.initial()])
    await kv.purge("a")
    entry = await watcher.next(timeout=2.0)
    found.append((entry.key, entry.operation, entry.revision))
    await watcher.stop()
    found.append(state_of(await (await js.stream("KV_b")).info()))
    return found


async def objects(js, wait):
    store = await js.create_object_store(bucket="o")
    info = await store.put("x", b"z" * 1000, chunk_size=300)
    found = [(info.size, info.chunks, info.digest)]
    found.append(await store.get_bytes("x"))
    await store.put("x", b"new")
    await store.put("y", b"")
    found.append(await store.get_bytes("x"))
    found.append(await store.get_bytes("y"))
    found.append(sorted(each.name for each in await store.list()))
    await store.delete("x")
    found.append(await outcome(store.get_bytes("x")))
    found.append((await (await js.stream("OBJ_o")).info()).state.messages)
    return found


async def subscriptions(js, wait):
    stream = await js.create_stream(name="S", subjects=["s.>"])
    for index in range(4):
        await js.publish("s.x", b"%d" % index)
    found = []
    for options in ({"ordered": True}, {"durable": "D"}):
        sub = await js.subscribe("s.>", **options)
        msgs = []
        while len(msgs) < 4:
            msgs.append(await sub.next(timeout=2.0))
        found.append(seen(msgs))
        if "durable" in options:
            for msg in msgs:
                await msg.ack_sync()
        await sub.unsubscribe()
    ordered = await stream.ordered_consumer()
    found.append(seen(await ordered.fetch(4)))
    consumer = await js.consumer("S", "D")
    found.append(progress(await consumer.info()))
    found.append(await outcome(js.consumer("S", "none")))
    found.append(await outcome(js.stream("none")))
    return found


PROGRAMS = [
    *(publishes, limits, stored, policies, redeliveries, work_queue),
    *(buckets, objects, subscriptions),
]


def simulate(program):
    with Simulation(seed=1) as sim:
        return sim.run(program(JetStream(sim.client()), sim.sleep))


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_results(program, server):
    async def main():
        async with connect(server.url) as client:
            js = JetStream(client)
            try:
                return await program(js, asyncio.sleep)
            finally:
                for name in await js.stream_names():
                    await js.delete_stream(name)

    assert simulate(program) == asyncio.run(main())
