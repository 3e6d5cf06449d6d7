"""The public simulation: programs, time, faults and traces; and its server against transcripts."""

from __future__ import annotations

import base64

import pytest

from jetstream import JetStream, errors
from jetstream.testing.sim import Cancelled, ObjectAbandoned, Simulation, SimulationStuck
from natsproto import NoResponders, TimeoutExpired
from natsproto.testing import sim as core
from natsproto.testing.sim.clock import Clock
from natsproto.testing.sim.peer import Peer
from tests.sim.test_model import REPLAYS, read, shape


@pytest.fixture
def sim():
    with Simulation(seed=1) as sim:
        yield sim


@pytest.fixture
def js(sim):
    return JetStream(sim.client())


def consumer_of(sim, js, count=0, **config):
    stream = sim.run(js.create_stream(name="S", subjects=["s"]))
    consumer = sim.run(stream.create_consumer(durable_name="C", **config))
    for number in range(count):
        sim.run(js.publish("s", b"%d" % number))
    return consumer


async def collect(consumer, got, **options):
    async with consumer.consume(**options) as messages:
        async for msg in messages:
            got.append(int(msg.data))
            await msg.ack()


# Programs and time


def test_run_returns_the_result_or_raises_the_error(sim):
    async def give(value):
        await sim.sleep(5.0)
        if isinstance(value, Exception):
            raise value
        return value

    assert (sim.run(give(3)), sim.now) == (3, 5.0)
    with pytest.raises(ValueError, match="no"):
        sim.run(give(ValueError("no")))


def test_time_passes_only_when_it_is_told_to(sim):
    client = sim.client()
    before = sim.now
    sim.advance(1000.0)
    assert sim.now == before + 1000.0
    assert client.state == "CONNECTED"
    assert len(sim.steps("ping")) > 5  # keep-alives of a thousand seconds


def test_a_coroutine_that_waits_for_ever_is_reported_with_the_last_steps(sim):
    async def wait():
        sub = await sim.client_of_test.subscribe("nothing")
        await sub.next()

    sim.client_of_test = sim.client(ping_interval=1000.0)
    with pytest.raises(SimulationStuck, match=r"for more than 50 s(.|\n)*subscribe +nothing"):
        sim.run(wait(), within=50.0)


def test_nothing_is_left_to_happen():
    class Never:
        def __await__(self):
            yield

    async def wait():
        await Never()

    with core.Simulation() as sim, pytest.raises(SimulationStuck, match="waits for ever"):
        sim.run(wait())


def test_several_coroutines_run_at_the_same_time(sim):
    async def late(seconds):
        await sim.sleep(seconds)
        return seconds

    async def main():
        return await sim.gather(late(3.0), late(1.0))

    assert (sim.run(main()), sim.now) == ([3.0, 1.0], 3.0)


def test_an_error_that_nobody_joins_is_raised_by_whoever_runs_the_simulation(sim):
    async def fail():
        await sim.sleep(1.0)
        raise ValueError("alone")

    sim.start(fail())
    with pytest.raises(ValueError, match="alone"):
        sim.advance(2.0)
    task = sim.start(fail())
    with pytest.raises(ValueError, match="alone"):
        sim.run(task.join())


def test_cancel_throws_into_the_coroutine(sim):
    seen = []

    async def wait():
        try:
            await sim.sleep(10.0)
        except Cancelled:
            seen.append(sim.now)
            raise

    task = sim.start(wait())
    sim.advance(2.0)
    task.cancel()
    assert (task.done, task.cancelled, seen) == (True, True, [2.0])
    before = sim.start(wait())
    before.cancel()  # it has not begun
    assert before.done


def test_what_is_dropped_while_in_use_is_an_error(sim, js):
    consumer = consumer_of(sim, js)

    async def forget():
        consumer.consume()
        await sim.sleep(1.0)

    with pytest.raises(ObjectAbandoned):
        sim.run(forget())


def test_callbacks_run_beside_each_other(sim, js):
    consumer = consumer_of(sim, js, count=4)
    begun = []

    async def handle(msg):
        begun.append(sim.now)
        await sim.sleep(10.0)
        await msg.ack()

    async def main():
        async with consumer.consume(stop_after=4) as messages:
            await messages.run(handle, concurrency=2)

    sim.run(main())
    assert [round(each - begun[0]) for each in begun] == [0, 0, 10, 10]


# Messages without JetStream


def test_requests_queue_groups_and_no_responders():
    with core.Simulation(seed=1) as sim:
        client, other = sim.client(), sim.client()

        async def answer(sub, name):
            async for msg in sub:
                await other.respond(msg, name)

        async def main():
            for name in (b"1", b"2"):
                sub = await other.subscribe("s.*", queue="q")
                sim.start(answer(sub, name))
            await other.flush()
            found = [(await client.request(f"s.{number}")).data for number in range(20)]
            with pytest.raises(NoResponders):
                await client.request("nobody")
            return set(found)

        assert sim.run(main()) == {b"1", b"2"}


def test_no_echo_and_a_limit_of_messages():
    with core.Simulation(seed=1) as sim:
        client = sim.client(no_echo=True)
        other = sim.client()

        async def main():
            deaf = await client.subscribe("a")
            twice = await other.subscribe("a")
            await twice.unsubscribe(after=2)
            await other.flush()
            for _ in range(3):
                await client.publish("a")
            await client.flush()
            await other.flush()
            return deaf.pending, twice.pending

        assert sim.run(main()) == (0, 2)
        assert len([step for step in sim.steps("message") if step.client == "B"]) == 2


# Faults


def test_cut_and_reconnect(sim, js):
    consumer = consumer_of(sim, js)
    got: list[int] = []
    sim.start(collect(consumer, got))
    sim.cut(5.0)
    began = sim.now
    sim.advance(10.0)
    states = [(step.text, step.time) for step in sim.steps("connection")]
    back = [time for state, time in states if state == "CONNECTED" and time > began]
    assert [began + 5.0 < time < began + 10.0 for time in back] == [True]
    sim.run(js.publish("s", b"7"))
    sim.advance(1.0)
    assert got == [7]


def test_a_lost_pull_is_found_by_missing_heartbeats(sim, js):
    consumer = consumer_of(sim, js)
    got: list[int] = []
    sim.drop_next_pull()
    sim.start(collect(consumer, got, expires=10.0, heartbeat=2.0))
    sim.run(js.publish("s", b"1"))
    sim.advance(3.0)
    assert got == []
    sim.advance(2.0)
    assert got == [1]
    assert [round(step.time) for step in sim.steps("pull")][:2] == [0, 4]


def test_no_leader(sim, js):
    consumer = consumer_of(sim, js)
    got: list[int] = []
    sim.start(collect(consumer, got))
    sim.advance(1.0)
    sim.lose_leader(3.0)
    with pytest.raises(errors.NoStreamResponse):
        sim.run(js.publish("s", b"1", retries=0))
    sim.advance(5.0)
    statuses = [step.text.partition(" on ")[0] for step in sim.steps("status")]
    assert statuses[0] == "409 Leadership Change"
    assert set(statuses[1:]) == {"503"}
    sim.run(js.publish("s", b"1"))
    sim.advance(1.0)
    assert got == [1]


def test_frozen_servers_answer_nothing(sim, js):
    consumer = consumer_of(sim, js, count=1)
    sim.freeze(10.0)
    began = sim.now
    with pytest.raises(TimeoutExpired):
        sim.run(consumer.info())
    assert sim.now == pytest.approx(began + 5.0)
    sim.advance(10.0)
    assert len(sim.run(consumer.fetch(1))) == 1


def test_lost_acknowledgments_of_both_kinds(sim, js):
    consumer = consumer_of(sim, js, ack_wait=4.0)
    sim.drop_next_puback()
    with pytest.raises(TimeoutExpired):
        sim.run(js.publish("s", b"0", msg_id="0", retries=0))
    assert sim.run(js.publish("s", b"0", msg_id="0")).duplicate
    [msg] = sim.run(consumer.fetch(1))
    sim.drop_next_ack()
    sim.run(msg.ack())
    [again] = sim.run(consumer.fetch(1, expires=10.0))
    assert (again.metadata.delivered, again.data) == (2, b"0")


def test_an_ordered_consumer_recovers_a_lost_message(sim, js):
    stream = sim.run(js.create_stream(name="S", subjects=["s"]))
    for number in range(3):
        sim.run(js.publish("s", b"%d" % number))
    ordered = sim.run(stream.ordered_consumer())
    sim.drop_next_message()

    async def read():
        async with ordered.consume() as messages:
            return [(await messages.next()).data for _ in range(3)]

    assert sim.run(read()) == [b"0", b"1", b"2"]
    assert len([each for each in sim.steps("call") if "CONSUMER.CREATE" in each.text]) == 2


def test_a_restart_takes_consumers_without_a_durable_name(sim, js):
    stream = sim.run(js.create_stream(name="S", subjects=["s"]))
    sim.run(stream.create_consumer(durable_name="stays"))
    sim.run(stream.create_consumer(name="goes"))
    sim.restart(1.0)
    sim.advance(3.0)
    assert sim.run(stream.consumer_names()) == ["stays"]


def test_consumers_that_nobody_uses_go_away(sim, js):
    stream = sim.run(js.create_stream(name="S", subjects=["s"]))
    used = sim.run(stream.create_consumer(name="used", inactive_threshold=5.0))
    sim.run(stream.create_consumer(name="idle", inactive_threshold=5.0))
    got: list[int] = []
    sim.start(collect(used, got))
    sim.advance(60.0)
    assert sim.run(stream.consumer_names()) == ["used"]


@pytest.mark.parametrize(
    ("status", "error"), [(True, errors.ConsumerDeleted), (False, errors.ConsumerNotFound)]
)
def test_a_removed_consumer_ends_the_iteration(sim, js, status, error):
    consumer = consumer_of(sim, js)
    task = sim.start(collect(consumer, [], expires=10.0, heartbeat=2.0))
    sim.advance(1.0)
    sim.remove_consumer("S", "C", status=status)
    with pytest.raises(error):
        sim.run(task.join(), within=60.0)


def test_a_stalled_program_reads_before_it_looks_at_the_time(sim, js):
    consumer = consumer_of(sim, js)
    got: list[int] = []
    sim.start(collect(consumer, got, expires=10.0, heartbeat=2.0))
    sim.advance(1.0)
    sim.stall(8.0)
    sim.advance(8.5)
    assert len(sim.steps("pull")) == 1  # heartbeats were read before any was missed


def test_silence_holds_data_back(sim, js):
    consumer = consumer_of(sim, js)
    sim.silence(3.0)
    began = sim.now
    sim.run(consumer.info())
    assert sim.now == pytest.approx(began + 3.0, abs=0.01)


@pytest.mark.parametrize(
    "call",
    [
        lambda js: js.resume_consumer("S", "C"),
        lambda js: js.publish("s", ttl=10.0),
        lambda js: js.create_stream(name="T", allow_atomic=True),
        lambda js: js.create_consumer("S", name="D", rate_limit_bps=1000, deliver_subject="d"),
    ],
    ids=["call", "publish", "stream", "consumer"],
)
def test_not_everything_is_modeled(sim, js, call):
    consumer_of(sim, js)
    with pytest.raises(errors.ApiError, match="not part of the simulation"):
        sim.run(call(js))


# Traces and seeds


def test_the_same_seed_gives_the_same_trace():
    def lines(seed):
        with Simulation(seed) as sim:
            js = JetStream(sim.client())
            consumer = consumer_of(sim, js, count=5)
            sim.start(collect(consumer, []))
            sim.at(sim.now + sim.rng.uniform(0.0, 1.0), sim.cut)
            sim.advance(100.0)
            return [str(step) for step in sim.trace]

    assert lines(1) == lines(1)
    assert lines(1) != lines(2)


def test_the_trace_shows_pulls_messages_and_acknowledgments(sim, js):
    consumer = consumer_of(sim, js, count=2)
    sim.note("now")
    for msg in sim.run(consumer.fetch(2)):
        sim.run(msg.ack())
    sim.advance(0.1)
    seen = [step.kind for step in sim.trace]
    assert seen[seen.index("note") :] == [
        *("note", "subscribe", "pull", "message", "message", "ack", "ack")
    ]
    assert sim.steps("ack")[0].text == "+ACK of message 1 of S"
    assert str(sim.steps("note")[0]).split() == ["0.0130", "-", "note", "now"]


# The server against transcripts


@pytest.mark.parametrize(("name", "stream", "count", "size", "config"), REPLAYS)
def test_replay(name, stream, count, size, config):
    """The whole server gives the recorded answers, as the model of pulls does by itself."""
    with Simulation() as sim:
        sim.clock = clock = Clock()
        service = sim.jetstream
        service.clock = clock
        subject = f"{stream.lower()}.x"
        assets = service.create({"name": stream, "subjects": [subject]})
        limits = {key: value for key, value in config.items() if key != "max_expires"}
        limits["max_expires"] = int(config.get("max_expires", 0) * 10**9)
        assets.add("C", {"durable_name": "C", **limits})
        for number in range(1, count + 1):
            assets.stream.publish(subject, None, (b"m%d" % number).ljust(size, b"."), 0.0)
        sent: list[bytes] = []
        peer = Peer(sim.server, sent.append)
        expected = b""
        last = 0.0
        for frame in read(name):
            data = base64.b64decode(frame.get("b64", ""))
            last = frame["t_ms"] / 1000
            if frame["dir"] == "<":
                expected += data
            elif frame["dir"] == ">" and data.startswith((b"SUB", b"PUB $JS.API.CONSUMER.MSG")):
                clock.run_until(last)
                peer.receive(data)
        clock.run_until(last + 0.1)
    assert shape(b"".join(sent)) == shape(expected)
