"""The simulation: a worker, faults, a bucket, and the same trace on every Python."""

import hashlib
from binascii import hexlify

from harness import check

from jetstream import JetStream
from jetstream.testing.sim import Simulation
from natsproto.testing.sim import Rng

RANDOM = [959, 675, 824, 253]


async def work(sim, consumer, got):
    async with consumer.consume(max_messages=5) as messages:
        async for msg in messages:
            got.append(int(msg.data))
            await sim.sleep(0.1)
            await msg.ack()


async def program(sim, js, got):
    stream = await js.create_stream(name="ORDERS", subjects=["orders.>"])
    consumer = await stream.create_consumer(durable_name="w", ack_wait=5.0)
    sim.start(work(sim, consumer, got))
    for number in range(10):
        await js.publish("orders.new", b"%d" % number)
    sim.cut(0.5)
    await sim.sleep(10.0)
    sim.lose_leader(2.0)
    await sim.sleep(5.0)
    sim.drop_next_pull()
    for number in range(10, 15):
        await js.publish("orders.new", b"%d" % number)
    await sim.sleep(100.0)
    return (await consumer.info()).num_ack_pending


async def bucket(js):
    kv = await js.create_key_value(bucket="b")
    for key in ("a", "b", "a"):
        await kv.put(key, b"1")
    return sorted(await kv.keys())


async def ordered(js):
    sub = await js.subscribe("orders.>", ordered=True)
    found = []
    while len(found) < 15:
        found.append(int((await sub.next()).data))
    await sub.unsubscribe()
    return found


def run():
    rng = Rng(1)
    check("random", [rng.randrange(1000) for _ in range(4)], RANDOM)
    with Simulation(seed=3) as sim:
        js = JetStream(sim.client())
        got = []
        check("all are acknowledged", sim.run(program(sim, js, got)), 0)
        check("each arrives", sorted(set(got)), list(range(15)))
        check("keys", sim.run(bucket(js)), ["a", "b"])
        check("ordered", sim.run(ordered(js)), list(range(15)))
        before = sim.now
        sim.advance(1000.0)
        check("time", sim.now, before + 1000.0)
    for kind in ("pull", "message", "ack", "heartbeat", "status", "connection", "fault"):
        check(kind, len(sim.steps(kind)) > 1, True)
    print("trace", digest(sim))


def digest(sim):
    lines = "\n".join(["%.3f %s %s" % (each.time, each.kind, each.client) for each in sim.trace])
    return hexlify(hashlib.sha256(lines.encode()).digest()).decode()
