"""Watches whose initial values are skipped, late, or missing."""

from __future__ import annotations

import base64

import pytest

from natsproto.errors import TimeoutExpired
from tests.jetstream.kvs import TIME, created, entry, listed, there
from tests.jetstream.support import SILENCE
from tests.jetstream.watches import GONE, all_of, comes_with_the_answer, initial, start

# D-KV-43: values that the consumer has skipped


def stored(key, seq, operation=""):
    message = {"subject": "$KV.b." + key, "seq": seq, "time": TIME, "data": "dg=="}
    if operation:
        block = "NATS/1.0\r\nKV-Operation: %s\r\n\r\n" % operation
        message["hdrs"] = base64.b64encode(block.encode()).decode()
    return {"message": message}


NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
SKIPPED = [
    # options; the answers to the reads; the resulting key, revision and value
    ({}, [stored("c", 5), stored("d", 4, "DEL")], [("c", 5, b"v"), ("d", 4, b"v")]),
    ({"meta_only": True}, [stored("c", 5), NO_MESSAGE], [("c", 5, b"")]),
    ({"ignore_deletes": True}, [stored("c", 5, "DEL"), stored("d", 4)], [("d", 4, b"v")]),
]


@pytest.mark.rule("D-KV-43")
@pytest.mark.parametrize("take", ["next_initial", "next", "__anext__"])
@pytest.mark.parametrize(("options", "answers", "found"), SKIPPED)
def test_skipped_values(options, answers, found, take):
    looks = [listed(9 + number, a=1, c=1, d=1) for number in range(3)]
    comes = [entry("a", 9 + number, number, 0) for number in range(1, 4)]
    stage, watcher, _ = start(comes, *looks, *answers, keys=3, **options)
    first = [stage.run(watcher.next_initial()).revision for _ in range(3)]
    assert first == [10, 11, 12]
    entries = [stage.run(getattr(watcher, take)()) for _ in found]
    assert [(entry.key, entry.revision, entry.value) for entry in entries] == found
    assert watcher.initialized


@pytest.mark.rule("D-KV-43")
def test_a_value_that_is_not_skipped_but_late():
    looks = [listed(5, a=1, c=1)] * 3
    reads = [stored("c", 5), created(0, sent=1, seq=3), listed(5, a=1, c=1), stored("c", 5)]
    stage, watcher, _ = start([entry("a", 3, 1, 0)], *looks, *reads, keys=2)
    assert stage.run(watcher.next_initial()).revision == 3
    comes_late = entry("c", 5, 2, 0)

    async def main():
        while len(stage.answers) > 2:
            await watcher._settle(None)
        comes_with_the_answer(stage, comes_late)
        return await all_of(watcher.initial())

    assert stage.run(main()) == [("c", 5)]


@pytest.mark.rule("D-KV-43")
def test_skipped_history():
    # Two of five entries have arrived; 7 is still in flight.
    comes = [entry("a", 3, 1, 3), entry("a", 4, 2, 2), entry("x", 6, 3, 1)]
    looks = [listed(9, a=5)] * 3
    reads = [stored("a", 5), stored("a", 7), NO_MESSAGE, created(1, sent=3, seq=6)]
    stage, watcher, _ = start(
        comes, *looks, *reads, keys=5, snapshot=[listed(9, a=4)], include_history=True
    )
    found = [stage.run(watcher.next_initial()).revision for _ in range(4)]
    assert found == [3, 4, 6, 5]
    asked = [body for subject, body in stage.asked if "MSG.GET" in subject]
    assert [body["seq"] for body in asked] == [5, 6, 8]


CURSORS = [
    # CONSUMER.INFO: whether it is the same consumer, and whether all that it sent has arrived
    (created(0, sent=0, seq=9), True),
    (created(0, sent=1, seq=9), False),
    (created(0, serial=7, seq=9), False),
]


@pytest.mark.rule("D-KV-43")
@pytest.mark.parametrize(("info", "skipped"), CURSORS)
def test_everything_was_skipped(info, skipped):
    looks = [listed(9, a=1)] * 3
    more = [] if skipped else [listed(9)]
    stage, watcher, _ = start(SILENCE, *looks, stored("a", 7), info, *more, snapshot=[there(1)])
    assert initial(stage, watcher) == ([("a", 7)] if skipped else [])
    assert stage.answers == []


# D-KV-41: from a revision on

PASSES = [
    # the entries from 3 on, while the last sequence was 5; answers; number of initial values
    ([("a", 3, 1, 1), ("c", 5, 2, 0)], [], 2),
    ([("a", 3, 1, 1), ("c", 6, 2, 0)], [], 2),
    ([("a", 3, 1, 0)], [stored("a", 6)], 1),
    ([("a", 3, 1, 0)], [NO_MESSAGE], 1),
    ([("a", 3, 1, 0), ("a", 4, 2, 0), ("a", 5, 3, 0)], [stored("a", 4)], 3),
]


@pytest.mark.rule("D-KV-41")
@pytest.mark.parametrize(("comes", "answers", "count"), PASSES)
def test_from_a_revision_on(comes, answers, count):
    stage, watcher, _ = start(
        [entry(*each) for each in comes],
        *answers,
        keys=2,
        snapshot=[there(9, 5)],
        resume_from_revision=3,
    )
    assert not watcher.initialized
    assert initial(stage, watcher) == [(key, seq) for key, seq, _, _ in comes][:count]
    assert stage.answers == []


@pytest.mark.rule("D-KV-41")
@pytest.mark.parametrize(("start_at", "done"), [(5, False), (6, True)])
def test_from_the_next_revision_on(start_at, done):
    _, watcher, _ = start(snapshot=[there(9, 5)], resume_from_revision=start_at)
    assert watcher.initialized is done


# D-KV-45: a server that does not answer


@pytest.mark.rule("D-KV-45")
def test_timeout_without_answers_or_messages():
    answers = [[entry("a", 3, 1, 2)], SILENCE, listed(6, a=1, c=1)]
    stage, watcher, _ = start(*answers, keys=3)
    assert stage.run(watcher.next_initial()).revision == 3
    with pytest.raises(TimeoutExpired, match="no initial value from bucket 'b' for 5 s"):
        stage.run(watcher.next_initial())
    assert stage.now() == 5.0  # not a second and the timeout of a call
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
    assert stage.run(watcher.next_initial()).revision == 5


@pytest.mark.rule("D-KV-45")
def test_timeout_with_answers_but_without_messages():
    stage, watcher, _ = start(SILENCE, *[GONE] * 4, keys=3)
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next_initial())
    assert stage.now() == 5.0


@pytest.mark.rule("D-KV-45")
def test_a_lost_call_is_ignored_while_messages_arrive():
    stage, watcher, _ = start([entry("a", 3, 1, 1)], SILENCE, keys=2)
    assert stage.run(watcher.next_initial()).revision == 3
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
    assert initial(stage, watcher) == [("c", 5)]


@pytest.mark.rule("D-KV-45")
def test_ignored_deletes_extend_the_timeout():
    stage, watcher, _ = start(SILENCE, *[GONE] * 9, keys=2, ignore_deletes=True)

    def come(number):
        late = entry("c", number, number, 3, "DEL")
        stage.wire.data((late.line % max(stage._subs)).encode() + b"\r\n" + late.data + b"\r\n")

    ring = stage.wire.ring

    def ring_and_come():
        ring()
        if stage.now() == 4.0:
            come(1)

    stage.wire.ring = ring_and_come
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next_initial())
    assert stage.now() == 9.0
