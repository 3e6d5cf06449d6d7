from __future__ import annotations

import pytest

from jetstream.errors import BatchRefused, InvalidResponse, NoStreamResponse, PublishTimeout
from jetstream.publish.atomic import AtomicBatch
from jetstream.schema.info import PubAck
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import InvalidState, InvalidSubject, InvalidValue, NotSupported
from tests.jetstream.support import NOBODY, SILENCE, Stage

ID = "0" * 22  # the id from the scripted randomness


def ack(count, batch=ID):
    return {"stream": "S", "seq": 9, "batch": batch, "count": count}


def error(code):
    return {"error": {"code": 400, "err_code": code, "description": "x"}, "stream": "S", "seq": 0}


def make(stage, timeout=5.0):
    return AtomicBatch(stage.client.session, timeout)


@pytest.mark.rule("BATCH-1", "BATCH-2", "BATCH-5")
def test_a_batch():
    stage = Stage(b"", ack(3))
    batch = make(stage)
    stage.run(batch.add("s.a", b"1", msg_id="7"))
    stage.run(batch.add("s.b", bytearray(b"2"), headers={"A": "b"}))
    assert batch.size == 2
    assert repr(batch) == "<AtomicBatch of 2 messages>"
    assert stage.run(batch.commit("s.c", b"3")) == PubAck.from_json(ack(3))
    place = [("Nats-Batch-Id", ID), ("Nats-Batch-Sequence", "1")]
    sent = [
        (pub.subject, pub.data, bool(pub.reply), pub.headers.items()[-3:]) for pub in stage.pubs
    ]
    assert sent == [
        ("s.a", b"1", True, [("Nats-Msg-Id", "7"), *place]),
        ("s.b", b"2", False, [("A", "b"), place[0], ("Nats-Batch-Sequence", "2")]),
        (
            "s.c",
            b"3",
            True,
            [place[0], ("Nats-Batch-Sequence", "3"), ("Nats-Batch-Commit", "1")],
        ),
    ]


@pytest.mark.rule("BATCH-1")
def test_a_batch_of_one():
    stage = Stage(ack(1))
    assert stage.run(make(stage).commit("s.a")).count == 1


FAILURES = [
    # answers, error: of the first message, or of the commit
    ("BATCH-2", [error(10174)], BatchRefused),
    ("BATCH-2", [{"stream": "S", "seq": 1}], InvalidResponse),
    ("BATCH-2", [b"+OK"], InvalidResponse),
    ("D-BATCH-4", [SILENCE], PublishTimeout),
    ("D-BATCH-4", [b"", error(10176)], BatchRefused),
    ("D-BATCH-4", [b"", NOBODY], NoStreamResponse),
    ("D-BATCH-4", [b"", SILENCE], PublishTimeout),
    ("BATCH-5", [b"", b""], InvalidResponse),
    ("BATCH-5", [b"", {"stream": "S", "seq": 1}], InvalidResponse),
    ("BATCH-5", [b"", ack(2, "other")], InvalidResponse),
    ("BATCH-5", [b"", ack(3)], InvalidResponse),
]


@pytest.mark.rule("D-BATCH-4")
@pytest.mark.parametrize(
    ("answers", "failure"),
    [pytest.param(*row[1:], marks=pytest.mark.rule(row[0])) for row in FAILURES],
)
def test_after_a_failure_it_is_over(answers, failure):
    stage = Stage(*answers)
    batch = make(stage, 1.5)
    if len(answers) == 2:
        stage.run(batch.add("s.a"))
    with pytest.raises(failure):
        stage.run(batch.commit("s.b") if len(answers) == 2 else batch.add("s.a"))
    assert stage.now() == (1.5 if failure is PublishTimeout else 0.0)
    assert stage.asked != []
    for call in (batch.add, batch.commit):
        with pytest.raises(InvalidState, match="D-BATCH-4"):
            stage.run(call("s.c"))
    assert stage.quiet()


RETRIES = [  # the server's cluster, timeout, how often there is no leader, when it ends, begun
    ("", 5.0, 0, 0.0, True),
    ("", 5.0, 2, 0.5, True),
    ("", 5.0, 3, 0.5, False),
    ("C", 5.0, 3, 0.75, True),
    ("C", 5.0, 19, 4.75, True),
    ("C", 5.0, 20, 4.75, False),
    ("C", 30.0, 40, 10.0, True),
    ("C", 30.0, 41, 10.0, False),
    ("", 0.3, 2, 0.25, False),
]


@pytest.mark.rule("D-BATCH-8", "PUB-3", "PUB-4")
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("cluster", "timeout", "misses", "at", "begun"), RETRIES)
def test_the_first_message_is_sent_again_while_there_is_no_leader(
    cluster, timeout, misses, at, begun, alone
):
    """Whether it only begins the batch, or commits it as well."""
    stage = Stage(*[NOBODY] * misses, ack(1) if alone else b"", cluster=cluster)
    batch = make(stage, timeout)
    call = batch.commit if alone else batch.add
    if begun:
        stage.run(call("s.a", b"1"))
        assert batch.size == 1
    else:
        with pytest.raises(NoStreamResponse):
            stage.run(call("s.a", b"1"))
        with pytest.raises(InvalidState, match="D-BATCH-4"):
            stage.run(batch.add("s.b"))
    assert stage.now() == at
    assert {(pub.data, pub.headers["Nats-Batch-Sequence"]) for pub in stage.pubs} == {(b"1", "1")}


@pytest.mark.rule("D-BATCH-8")
def test_all_tries_of_the_first_message_end_in_time():
    stage = Stage(NOBODY, NOBODY, SILENCE, cluster="C")
    with pytest.raises(PublishTimeout):
        stage.run(make(stage, 1.5).add("s.a"))
    assert stage.now() == 1.5


@pytest.mark.rule("D-BATCH-4")
def test_after_the_commit_it_is_over():
    stage = Stage(ack(1))
    batch = make(stage)
    stage.run(batch.commit("s.a"))
    with pytest.raises(InvalidState):
        stage.run(batch.add("s.b"))


@pytest.mark.rule("D-BATCH-4")
@pytest.mark.parametrize(
    ("subject", "data", "options", "wrong"),
    [
        ("s..a", b"", {}, InvalidSubject),
        ("s.a", "text", {}, InvalidValue),
        ("s.a", b"", {"ttl": 0}, InvalidValue),
        ("s.a", b"", {"option": 0}, InvalidValue),
    ],
)
def test_an_invalid_call_leaves_the_batch_unchanged(subject, data, options, wrong):
    stage = Stage(b"", ack(3))
    batch = make(stage)

    def try_it(call):
        with pytest.raises(wrong):
            stage.run(call(subject, data, **options))

    try_it(batch.add)
    try_it(batch.commit)
    stage.run(batch.add("s.a"))
    try_it(batch.add)
    stage.run(batch.add("s.b"))
    try_it(batch.commit)
    assert batch.size == 2
    assert stage.run(batch.commit("s.c")).count == 3
    numbers = [pub.headers["Nats-Batch-Sequence"] for pub in stage.pubs]
    assert numbers == ["1", "2", "3"]


@pytest.mark.rule("BATCH-3")
def test_a_batch_has_at_most_1000_messages():
    stage = Stage(b"")
    batch = make(stage)
    for _ in range(1000):
        stage.run(batch.add("s.a"))
    for call in (batch.add, batch.commit):
        with pytest.raises(InvalidState, match="BATCH-3"):
            stage.run(call("s.b"))
    assert batch.size == 1000


def test_add_waits_while_the_send_buffer_is_full():
    stage = Stage(b"")
    batch = make(stage)
    stage.run(batch.add("s.a"))
    stage.wire.writable = False
    stage.client.session.connection.outbound.max_payload = 1 << 30
    stage.run(batch.add("s.a", bytes(HIGH_WATER + 1)))
    assert stage.connection.congested
    waited = []

    async def wait(waitable):
        waited.append(waitable)
        stage.wire.writable = True
        stage.wire.look()

    stage.wait = wait
    stage.run(batch.add("s.b"))
    assert waited == [stage.connection.writable]
    assert batch.size == 3


@pytest.mark.rule("BATCH-7")
def test_a_commit_without_a_message():
    stage = Stage(b"", ack(2))
    batch = make(stage)
    stage.run(batch.add("s.a", b"1"))
    stage.run(batch.add("s.b", b"2"))
    assert stage.run(batch.commit()).count == 2
    assert batch.size == 2
    last = stage.pubs[-1]
    assert (last.subject, last.data) == ("s.b", b"")
    place = [("Nats-Batch-Id", ID), ("Nats-Batch-Sequence", "3")]
    assert last.headers.items() == [*place, ("Nats-Batch-Commit", "eob")]
    with pytest.raises(InvalidState, match="already finished"):
        stage.run(batch.commit())


@pytest.mark.rule("BATCH-7")
def test_a_commit_of_one_message_that_was_added():
    stage = Stage(b"", ack(1))
    batch = make(stage)
    stage.run(batch.add("s.a", b"1"))
    stage.run(batch.commit())
    assert stage.pubs[-1].subject == "s.a"


@pytest.mark.rule("BATCH-7")
def test_wrong_commits_without_a_message():
    stage = Stage(b"")
    batch = make(stage)
    with pytest.raises(InvalidState, match="has no message"):
        stage.run(batch.commit())
    stage.run(batch.add("s.a"))
    with pytest.raises(InvalidValue, match="needs a subject"):
        stage.run(batch.commit(data=b"x"))
    with pytest.raises(InvalidValue, match="needs a subject"):
        stage.run(batch.commit(msg_id="x"))
    assert len(stage.asked) == 1
    assert not batch._over
    old = Stage(b"", api_lvl=2, version="2.12.0")
    batch = make(old)
    old.run(batch.add("s.a"))
    with pytest.raises(NotSupported):
        old.run(batch.commit())
    assert len(old.asked) == 1


@pytest.mark.rule("BATCH-5", "BATCH-7", "D-BATCH-4")
@pytest.mark.parametrize(
    ("answer", "failure"),
    [(ack(2), InvalidResponse), (error(10176), BatchRefused), (SILENCE, PublishTimeout)],
)
def test_a_commit_without_a_message_that_fails(answer, failure):
    stage = Stage(b"", answer)
    batch = make(stage)
    stage.run(batch.add("s.a"))
    with pytest.raises(failure):
        stage.run(batch.commit())
    assert batch.size == 1
    with pytest.raises(InvalidState):
        stage.run(batch.add("s.a"))


@pytest.mark.rule("BATCH-3", "BATCH-7")
def test_the_end_of_the_largest_batch():
    stage = Stage(b"", ack(1000))
    batch = make(stage)
    stage.run(batch.add("s.a"))
    batch.size = 1000
    with pytest.raises(InvalidState):
        stage.run(batch.add("s.a"))
    assert stage.run(batch.commit()).count == 1000
