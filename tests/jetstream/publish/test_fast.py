from __future__ import annotations

import pytest

from jetstream.errors import BatchRefused, FastBatchFailed, NoStreamResponse
from jetstream.publish.fast import FastBatch
from jetstream.schema.info import PubAck
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    PayloadTooLarge,
)
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage

ID = "0" * 22  # the id from the scripted randomness


def ack(number, flow=2):
    return {"type": "ack", "seq": number, "msgs": flow}


def final(count):
    return {"stream": "S", "seq": 100 + count, "batch": ID, "count": count}


def error(code):
    return {"error": {"code": 400, "err_code": code, "description": "x"}, "stream": "S", "seq": 0}


GAP = {"type": "gap", "last_seq": 2, "seq": 3}


def make(stage, *, allow_gaps=False, flow=2, max_acks=2, ack_timeout=5.0):
    return FastBatch(stage.client.session, allow_gaps, flow, max_acks, ack_timeout)


def add(stage, batch, count):
    for _ in range(count):
        stage.run(batch.add("s.a"))


@pytest.mark.rule("FAST-1", "FAST-2", "FAST-11")
def test_a_batch():
    stage = Stage(ack(0), SILENCE, final(3))
    batch = make(stage)
    assert stage.run(batch.add("s.a", b"1", msg_id="7")) == 1
    assert stage.waits == 1  # for the first one
    assert stage.run(batch.add("s.b", bytearray(b"2"), headers={"A": "b"})) == 2
    assert (batch.size, batch.stored, batch.lost, stage.waits) == (2, 0, 0, 1)
    assert stage.run(batch.commit("s.c", b"3")) == PubAck.from_json(final(3))
    assert (batch.size, batch.stored) == (3, 3)
    base = f"_INBOX.{ID}.2.fail."
    sent = [
        (pub.subject, pub.data, pub.reply, pub.headers and pub.headers.items())
        for pub in stage.pubs
    ]
    assert sent == [
        ("s.a", b"1", base + "1.0.$FI", [("Nats-Msg-Id", "7")]),
        ("s.b", b"2", base + "2.1.$FI", [("A", "b")]),
        ("s.c", b"3", base + "3.2.$FI", None),
    ]
    assert stage._subs == {}


@pytest.mark.rule("FAST-1", "FAST-3")
def test_messages_that_are_encoded():
    stage = Stage(ack(0), SILENCE, SILENCE, ack(4), SILENCE, final(5))
    batch = make(stage)
    block = b"NATS/1.0\r\nA: b\r\n\r\n"
    stage.run(batch.add_encoded([(b"s.a", b"%d" % n, block if n == 2 else None) for n in range(5)]))
    assert stage.run(batch.close()).count == 5
    sent = [(pub.data, pub.headers is not None) for pub in stage.pubs]
    assert sent == [(b"0", False), (b"1", False), (b"2", True), (b"3", False), (b"4", False)] + [
        (b"", False)
    ]
    stage = Stage(error(10205))
    with pytest.raises(BatchRefused):
        stage.run(make(stage).add_encoded([(b"s.a", b"", None)]))


@pytest.mark.rule("FAST-1", "FAST-11")
def test_close():
    stage = Stage(ack(0), SILENCE, final(2))
    batch = make(stage)
    add(stage, batch, 2)
    assert stage.run(batch.close()) == PubAck.from_json(final(2))
    assert [pub.reply.split(".", 4)[-1] for pub in stage.pubs] == ["1.0.$FI", "2.1.$FI", "3.3.$FI"]


def test_an_empty_batch():
    stage = Stage()
    batch = make(stage)
    assert stage.run(batch.close()) is None
    assert stage.quiet()
    with pytest.raises(ConnectionClosed, match="the batch is closed"):
        stage.run(batch.add("s.a"))


@pytest.mark.rule("FAST-2", "FAST-11")
def test_a_batch_of_one():
    stage = Stage(final(1), NOBODY)
    assert stage.run(make(stage).commit("s.a", ttl=5)).count == 1
    assert stage.pubs[0].headers.items() == [("Nats-TTL", "5")]


@pytest.mark.rule("FAST-3")
def test_add_waits_for_acknowledgments():
    stage = Stage(ack(0), SILENCE, SILENCE, ack(2), SILENCE)
    batch = make(stage)
    add(stage, batch, 4)
    assert (batch.stored, stage.waits) == (0, 1)
    assert stage.run(batch.add("s.a")) == 5
    assert (batch.stored, stage.waits) == (2, 2)


@pytest.mark.rule("FAST-8")
def test_add_waits_for_the_answer_to_a_ping():
    stage = Stage(ack(0), SILENCE, SILENCE, SILENCE, SILENCE, ack(2), SILENCE)
    batch = make(stage)
    add(stage, batch, 5)
    assert stage.now() == 2.0
    assert [pub.reply.split(".", 4)[-1] for pub in stage.pubs][4:6] == ["4.4.$FI", "4.4.$FI"]


FIRST = [(error(10205), BatchRefused), (SILENCE, FastBatchFailed)]


@pytest.mark.rule("FAST-2", "FAST-8", "D-FAST-13")
@pytest.mark.parametrize(("answer", "failure"), FIRST)
def test_the_first_message_is_refused(answer, failure):
    for call in ("add", "commit"):
        # Only one that commits is pinged: there is no other batch that this could begin.
        pings = [SILENCE] * 4 if call == "commit" and answer == SILENCE else []
        stage = Stage(answer, *pings)
        batch = make(stage)
        for _ in range(2):
            with pytest.raises(failure):
                stage.run(getattr(batch, call)("s.a"))
            assert stage.now() == (5.0 if failure is FastBatchFailed else 0.0)
        with pytest.raises(failure):
            stage.run(batch.close())


@pytest.mark.rule("D-FAST-17", "PUB-3", "PUB-4")
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("cluster", "timeout", "misses", "at", "begun"),
    [
        ("", 5.0, 2, 0.5, True),
        ("", 5.0, 3, 0.5, False),
        ("C", 5.0, 39, 9.75, True),
        ("C", 5.0, 40, 9.75, False),
        ("C", 30.0, 40, 10.0, True),
        ("C", 30.0, 41, 10.0, False),
        ("", 0.3, 2, 0.25, False),
    ],
)
def test_the_first_message_is_sent_again_while_there_is_no_leader(
    cluster, timeout, misses, at, begun, alone
):
    """Whether it only begins the batch, or commits it as well."""
    stage = Stage(*[NOBODY] * misses, final(1) if alone else ack(0), cluster=cluster)
    batch = make(stage, ack_timeout=timeout)
    call = batch.commit if alone else batch.add
    if begun:
        stage.run(call("s.a", b"1", headers={"A": "b"}))
        assert batch.size == 1
    else:
        for _ in range(2):
            with pytest.raises(NoStreamResponse):
                stage.run(call("s.a", b"1", headers={"A": "b"}))
    assert stage.now() == at
    pubs = stage.pubs
    assert len(pubs) == misses + begun
    place = f"_INBOX.{ID}.2.fail.1.{2 if alone else 0}.$FI"
    assert {(pub.subject, pub.data, pub.reply, pub.headers["A"]) for pub in pubs} == {
        ("s.a", b"1", place, "b")
    }


@pytest.mark.rule("FAST-8")
def test_the_timeout_covers_an_election():
    stage = Stage(SILENCE, cluster="c")
    with pytest.raises(FastBatchFailed):
        stage.run(make(stage).add("s.a"))
    assert stage.now() == 10.0


@pytest.mark.rule("FAST-5")
def test_a_gap():
    stage = Stage(ack(0), SILENCE, [GAP, final(1)])
    batch = make(stage)
    add(stage, batch, 3)
    stage.serve()
    for call in (batch.add("s.b"), batch.commit("s.b"), batch.close()):
        with pytest.raises(FastBatchFailed, match="1 of 3"):
            stage.run(call)


@pytest.mark.rule("FAST-5")
def test_the_final_acknowledgment_is_waited_for():
    stage = Stage(ack(0), SILENCE, GAP, final(1))
    batch = make(stage)
    add(stage, batch, 3)
    stage.serve()
    with pytest.raises(FastBatchFailed, match="1 of 3") as caught:
        stage.run(batch.add("s.b"))
    assert (caught.value.stored, caught.value.in_doubt, stage.now()) == (1, False, 1.0)


@pytest.mark.rule("FAST-6")
def test_gaps_are_allowed():
    stage = Stage(ack(0), SILENCE, GAP, final(3))
    batch = make(stage, allow_gaps=True)
    add(stage, batch, 3)
    assert stage.run(batch.close()).count == 3
    assert batch.lost == 1
    assert [(loss.first, loss.last) for loss in batch.take_losses()] == [(2, 2)]
    assert batch.take_losses() == []


@pytest.mark.rule("D-FAST-13")
def test_after_its_end():
    stage = Stage(final(1))
    batch = make(stage)
    stage.run(batch.commit("s.a"))
    for call in (batch.add("s.b"), batch.commit("s.b"), batch.close()):
        with pytest.raises(InvalidState, match="D-FAST-13"):
            stage.run(call)


@pytest.mark.rule("D-FAST-13")
@pytest.mark.parametrize(
    ("subject", "data", "options", "wrong"),
    [
        ("s..a", b"", {}, InvalidSubject),
        (["s"], b"", {}, InvalidSubject),
        ("s.a", "text", {}, InvalidValue),
        ("s.a", b"", {"ttl": 0}, InvalidValue),
        ("s.a", b"", {"option": 0}, InvalidValue),
        ("s.a", bytes(2_000_000), {}, PayloadTooLarge),
    ],
)
def test_an_invalid_call_leaves_the_batch_unchanged(subject, data, options, wrong):
    stage = Stage(ack(0), SILENCE, final(3))
    batch = make(stage)

    def try_it(call):
        with pytest.raises(wrong):
            stage.run(call(subject, data, **options))

    for count in range(3):
        try_it(batch.add)
        try_it(batch.commit)
        assert batch.size == count
        if count < 2:
            stage.run(batch.add("s.a"))
    assert stage.run(batch.commit("s.c")).count == 3


@pytest.mark.rule("FAST-3")
@pytest.mark.parametrize(
    "options",
    [
        {"flow": 0},
        {"flow": 65536},
        {"flow": "x"},
        {"max_acks": 0},
        {"max_acks": 4},
        {"max_acks": 1.5},
        {"ack_timeout": -1},
    ],
)
def test_wrong_options(options):
    stage = Stage()
    with pytest.raises(InvalidValue):
        make(stage, **options)
    assert stage.quiet()


@pytest.mark.rule("D-FAST-10")
def test_a_lost_connection():
    """The batch continues if nothing was lost; if the first message was, it is in doubt."""
    stage = Stage(ack(0), Lost(), ack(0), SILENCE, final(3))
    batch = make(stage)
    add(stage, batch, 2)
    stage.serve()
    add(stage, batch, 1)
    assert stage.run(batch.close()).count == 3
    stage = Stage(Lost())
    with pytest.raises(FastBatchFailed) as caught:
        stage.run(make(stage).add("s.a"))
    assert caught.value.in_doubt


def test_the_client_is_closed():
    stage = Stage(ack(0))
    begun, fresh = make(stage), make(stage)
    stage.run(begun.add("s.a"))
    stage.run(stage.client.close())
    with pytest.raises(FastBatchFailed):
        stage.run(begun.add("s.a"))
    with pytest.raises(ConnectionClosed):
        stage.run(fresh.add("s.a"))


def test_add_waits_while_the_send_buffer_is_full():
    stage = Stage(ack(0))
    batch = make(stage, flow=100)
    add(stage, batch, 1)
    stage.wire.writable = False
    stage.connection.outbound.max_payload = 1 << 30
    stage.run(batch.add("s.a", bytes(HIGH_WATER + 1)))
    waited = []

    async def wait(waitable):
        waited.append(waitable)
        stage.wire.writable = True
        stage.wire.look()

    stage.wait = wait
    stage.run(batch.add("s.b"))
    assert waited == [stage.connection.writable]


async def block(batch, *subjects, commit=False, error=None):
    async with batch:
        for subject in subjects:
            await batch.add(subject)
        if commit:
            await batch.commit("s.z")
        if error is not None:
            raise error


@pytest.mark.rule("FAST-11")
def test_leaving_the_block_closes_the_batch():
    stage = Stage(ack(0), SILENCE, final(2))
    stage.run(block(make(stage), "s.a", "s.b"))
    assert stage.answers == []


@pytest.mark.rule("D-FAST-13")
def test_a_block_that_has_committed():
    stage = Stage(ack(0), final(2))
    stage.run(block(make(stage), "s.a", commit=True))
    assert stage.answers == []


def test_a_block_that_raises():
    stage = Stage(ack(0))
    batch = make(stage)
    with pytest.raises(KeyError):
        stage.run(block(batch, "s.a", error=KeyError()))
    assert stage.waits == 1
    with pytest.raises(FastBatchFailed):
        stage.run(batch.add("s.a"))


def test_nothing_grows():
    answers = [SILENCE if number % 10 else ack(number, 10) for number in range(1, 3001)]
    stage = Stage(ack(0, 10), *answers[1:])
    batch = make(stage, flow=10)
    for number in range(3000):
        stage.run(batch.add(f"s.{number}"))
    connection = stage.connection
    subscriptions = connection.subscriptions
    assert (subscriptions.busy, connection.bus.ready, len(subscriptions.by_sid)) == ([], [], 1)
    assert len(batch._checked) <= 1024
    assert len(connection.bus.timers.heap) < 64


class Cancelled(BaseException):
    """The exception that an event loop throws into a coroutine."""


def cancel_at(stage, turn):
    """Cancel the caller when it waits for this time."""
    wait = stage.wait
    left = [turn]

    async def step(waitable):
        left[0] -= 1
        if left[0] == 0:
            raise Cancelled
        await wait(waitable)

    stage.wait = step


async def leave(batch):
    async with batch:
        pass


ENDS = [
    # what is canceled, while it waits for room or for the final acknowledgment
    ("close", lambda batch: batch.close()),
    ("commit", lambda batch: batch.commit("s.z")),
    ("the block", leave),
]


@pytest.mark.rule("D-FAST-15")
@pytest.mark.parametrize(("what", "end"), ENDS)
@pytest.mark.parametrize("full", [True, False])
def test_a_batch_whose_end_is_canceled_is_left(what, end, full):
    stage = Stage(ack(0), *[SILENCE] * 5)
    batch = make(stage)
    add(stage, batch, 4 if full else 2)
    cancel_at(stage, 1)
    with pytest.raises(Cancelled):
        stage.run(end(batch))
    stage.serve()
    assert stage._subs == {}
    assert batch._machine.deadline is None
    sent = len(stage.pubs)
    for _ in range(3):
        stage.wire.now += 4.0
        stage.wire.timer()
    assert (len(stage.pubs), sent > 0) == (0, True)
    with pytest.raises((FastBatchFailed, InvalidState)):
        stage.run(batch.add("s.a"))


@pytest.mark.rule("D-FAST-15")
def test_an_invalid_commit_leaves_the_batch_unchanged():
    stage = Stage(ack(0), final(2))
    batch = make(stage)
    add(stage, batch, 1)
    with pytest.raises(PayloadTooLarge):
        stage.run(batch.commit("s.a", b"x" * (stage.connection.info.max_payload + 1)))
    assert stage.run(batch.commit("s.b")).count == 2
