"""Watches, on a bucket that is scripted."""

from __future__ import annotations

import base64
import json

import pytest

from jetstream.errors import ApiError, BucketNotFound, ConsumerDeleted
from jetstream.kv_snapshot import chunks_wanted
from jetstream.kv_watch import WatchOptions, open_watch
from jetstream.lineage import StreamRecreated
from jetstream.ordered import ConsumerReset
from natsproto.errors import (
    InvalidName,
    InvalidState,
    InvalidValue,
    LocalError,
    NotSupported,
    TimeoutExpired,
)

from .buckets import SAME_STREAM
from .kvs import NO_STREAM, TIME, bucket, created, entry, listed, short, there
from .support import NOBODY, SILENCE, Lost, Status

DELETED = Status("409 Consumer Deleted")
FLAGS = ("include_history", "updates_only", "ignore_deletes", "meta_only")


def start(*answers, keys=0, last=5, snapshot=None, **options):
    """A watch of a bucket that has so many keys at its beginning, and what was sent for it."""
    first = [] if options.get("updates_only") else snapshot or [there(keys, last)]
    stage, kv = bucket(*first, created(keys), *answers)
    watcher = stage.run(kv.watch(options.pop("watched", ">"), **options))
    create = stage._pubs.pop()
    return stage, watcher, json.loads(create.data)["config"]


async def all_of(iterator):
    return [(entry.key, entry.revision) async for entry in iterator]


def initial(stage, watcher):
    return stage.run(all_of(watcher.initial()))


def following(stage, watcher, count):
    found = [stage.run(watcher.__anext__()) for _ in range(count)]
    return [(entry.key, entry.revision) for entry in found]


POLICIES = [
    # options, what is asked for
    ({}, {"deliver_policy": "last_per_subject", "filter_subject": "$KV.b.>"}),
    ({"keys": "a.*"}, {"deliver_policy": "last_per_subject", "filter_subject": "$KV.b.a.*"}),
    (
        {"keys": ["a", "c.>"]},
        {"deliver_policy": "last_per_subject", "filter_subjects": ["$KV.b.a", "$KV.b.c.>"]},
    ),
    ({"include_history": True}, {"deliver_policy": "all", "filter_subject": "$KV.b.>"}),
    ({"updates_only": True}, {"deliver_policy": "new", "filter_subject": "$KV.b.>"}),
    (
        {"resume_from_revision": 7},
        {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": 7,
            "filter_subject": "$KV.b.>",
        },
    ),
    (
        {"meta_only": True, "ignore_deletes": True},
        {
            "deliver_policy": "last_per_subject",
            "headers_only": True,
            "filter_subject": "$KV.b.>",
        },
    ),
]


@pytest.mark.rule("KV-33", "KV-34")
@pytest.mark.parametrize(("options", "fields"), POLICIES)
def test_consumers(options, fields):
    snapshot = [listed()] * (1 if isinstance(options.get("keys", ""), str) else 2)
    if "resume_from_revision" in options:
        snapshot = [there(0, 6)]
    watched = options.pop("keys", ">")
    _, watcher, config = start(snapshot=snapshot, **options, watched=watched)
    for name in ("ack_policy", "mem_storage", "num_replicas", "inactive_threshold"):
        config.pop(name)
    assert config.pop("replay_policy") == "instant"
    assert config.pop("name") == "1" * 22 + "_1"
    assert config == fields
    assert str(watcher.began) == TIME
    assert repr(watcher) == "<KeyWatcher of b>"


@pytest.mark.rule("KV-39")
@pytest.mark.parametrize("pushed", [True, False])
def test_another_account(pushed):
    prefix = "fromA" if pushed else "$JS.hub.API"
    name = "2" * 22 if pushed else "1" * 22
    comes = [entry("a", 3, 1, 1, name=name), entry("c", 4, 2, 0, name=name)]
    answers = [[created(2), *comes]] if pushed else [created(2), comes]
    answers.insert(0, there(2, 4))
    stage, kv = bucket(*answers, SILENCE, info={"prefix": prefix})
    watcher = stage.run(kv.watch())
    assert initial(stage, watcher) == [("a", 3), ("c", 4)]
    stage.run(watcher.stop())
    assert watcher.closed
    create = stage.pubs[1]
    assert create.subject == f"{prefix}.CONSUMER.CREATE.KV_b.{name}_1.$KV.b.>"
    config = json.loads(create.data)["config"]
    assert ("deliver_subject" in config) is pushed
    assert config["deliver_policy"] == "last_per_subject"


@pytest.mark.rule("CALL-7")
@pytest.mark.parametrize("prefix", ["fromA", "$JS.API"])
def test_an_old_server(prefix):
    stage, kv = bucket(info={"prefix": prefix})
    stage.connection.info.version = "2.9.10"
    with pytest.raises(NotSupported, match="filter_subjects needs server"):
        stage.run(kv.watch(["a", "c"]))
    assert stage.quiet()


@pytest.mark.rule("KV-33")
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"include_history": True, "updates_only": True}, InvalidValue),
        ({"include_history": True, "resume_from_revision": 7}, InvalidValue),
        ({"updates_only": True, "resume_from_revision": 7}, InvalidValue),
        *(({"resume_from_revision": wrong}, InvalidValue) for wrong in (0, -1, "7", 2**64)),
        *(({name: "yes"}, InvalidValue) for name in FLAGS),
        ({"keys": "a..b"}, InvalidName),
        ({"keys": []}, InvalidValue),
    ],
)
def test_wrong_options(wrong, error):
    with pytest.raises(error) as caught:
        WatchOptions(**wrong)
    assert isinstance(caught.value, LocalError)


# The initial values


@pytest.mark.rule("KV-35")
def test_none():
    stage, watcher, _ = start(SILENCE)
    assert watcher.initialized
    assert initial(stage, watcher) == []
    assert stage.run(watcher.next_initial()) is None
    assert stage.waits == 3  # for the answers to calls alone


@pytest.mark.rule("KV-35")
def test_none_are_wanted():
    _, watcher, _ = start(SILENCE, keys=3, updates_only=True)
    assert watcher.initialized


ENDS = [
    # The bucket has 2 keys, and 5 is its last sequence. Key, sequence, number and pending of what
    # comes; how many of it are initial values.
    ("nobody writes", [("a", 3, 1, 1), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
    ("counted too low", [("a", 3, 1, 0), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
    ("counted too high", [("a", 3, 1, 7), ("c", 5, 2, 7), ("a", 6, 3, 0)], 2),
]


@pytest.mark.rule("KV-35", "KV-40")
@pytest.mark.parametrize(("name", "comes", "count"), ENDS)
def test_ends(name, comes, count):
    answers = [[entry(*each) for each in comes]]
    if name == "counted too low":
        answers.append(listed(5, a=1, c=1))
    stage, watcher, _ = start(*answers, keys=2)
    assert not watcher.initialized
    found = [(key, seq) for key, seq, _, _ in comes]
    assert initial(stage, watcher) == found[:count]
    assert watcher.initialized
    assert following(stage, watcher, len(comes) - count) == found[count:]
    assert stage.answers == []


@pytest.mark.rule("KV-40")
def test_a_key_is_changed_while_the_watch_begins():
    # c was at 5. It comes after a message that says none is pending, and one after the fence.
    comes = [entry("a", 3, 1, 0), entry("d", 6, 2, 0), entry("c", 7, 3, 0), entry("a", 8, 4, 0)]
    stage, watcher, _ = start(comes, listed(7, a=1, c=1, d=1), keys=2)
    assert initial(stage, watcher) == [("a", 3), ("d", 6), ("c", 7)]
    assert following(stage, watcher, 1) == [("a", 8)]
    assert stage.answers == []


@pytest.mark.rule("KV-40")
def test_the_server_counts_nothing_at_first():
    stage, watcher, _ = start(snapshot=[there(1)])
    assert not watcher.initialized
    stage.answers += [[entry("a", 3, 1, 0)], listed(a=1)]
    assert initial(stage, watcher) == [("a", 3)]


@pytest.mark.rule("KV-35", "KV-40")
def test_by_plain_iteration():
    stage, watcher, _ = start([entry("a", 3, 1, 1), entry("c", 5, 2, 0)], keys=2)
    assert following(stage, watcher, 1) == [("a", 3)]
    assert not watcher.initialized
    assert stage.run(watcher.next()).revision == 5
    assert watcher.initialized


def comes_with_the_answer(stage, late):
    """The next call is answered, and this message is there before."""
    answer = stage._answer

    def come_and_answer(reply):
        sid = max(stage._subs)  # that of the watch
        stage.wire.data((late.line % sid).encode() + b"\r\n" + late.data + b"\r\n")
        stage._answer = answer
        return answer(reply)

    stage._answer = come_and_answer


@pytest.mark.rule("KV-40", "KV-42")
@pytest.mark.parametrize("take", ["next", "__anext__"])
def test_a_doubt_is_settled_by_plain_iteration(take):
    stage, watcher, _ = start([entry("a", 3, 1, 0)], listed(6, a=1), keys=2)
    assert stage.run(watcher.next(1.0)).revision == 3
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next(1.0))  # too short for another call
    assert not watcher.initialized
    comes_with_the_answer(stage, entry("d", 9, 2, 0))
    assert stage.run(getattr(watcher, take)()).revision == 9
    assert watcher.initialized


@pytest.mark.rule("KV-45")
def test_plain_iteration_needs_no_answer():
    stage, watcher, _ = start([entry("a", 3, 1, 0)], SILENCE, keys=2)
    assert stage.run(watcher.next()).revision == 3
    with pytest.raises(TimeoutExpired, match="no message in time"):
        stage.run(watcher.next(7.0))
    assert not watcher.initialized


@pytest.mark.rule("KV-34", "KV-35")
def test_without_deletions():
    comes = [entry("a", 3, 1, 2), entry("c", 5, 2, 1, "DEL"), entry("d", 6, 3, 0, "PURGE")]
    later = [entry("d", 7, 4, 0, "DEL"), entry("d", 8, 5, 0), entry("d", 9, 6, 0, "DEL")]
    more = [*later, entry("d", 10, 7, 0), entry("d", 11, 8, 0, "DEL")]
    stage, watcher, _ = start(comes + more, keys=3, last=6, ignore_deletes=True)
    assert initial(stage, watcher) == [("a", 3)]
    assert following(stage, watcher, 1) == [("d", 8)]
    assert stage.run(watcher.next(1.0)).revision == 10
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next(1.0))


# KV-36: values that go before they come

GONE = {"error": {"code": 503, "err_code": 10008, "description": "not available"}}
LOOKS = [
    # answers to STREAM.INFO, and when it was known that there are no more
    ("gone", [listed(6, a=1)], 1.0),
    ("gone later", [listed(6, a=1, c=1), listed(6, a=1)], 2.0),
    ("no leader", [GONE, listed(6, a=1)], 2.0),
    ("nobody answers", [NOBODY, listed(6, a=1)], 2.0),
]


@pytest.mark.rule("KV-36", "KV-42")
@pytest.mark.parametrize(("name", "answers", "at"), LOOKS)
def test_values_that_never_come(name, answers, at):
    stage, watcher, _ = start([entry("a", 3, 1, 2)], *answers, keys=3)
    assert initial(stage, watcher) == [("a", 3)]
    assert watcher.initialized
    assert stage.now() == at
    assert stage.answers == []


@pytest.mark.rule("KV-36")
def test_a_value_comes_with_the_answer():
    stage, watcher, _ = start([entry("a", 3, 1, 1)], listed(6, a=1, c=1), keys=2)
    stage.run(watcher.next_initial())
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
    assert initial(stage, watcher) == [("c", 5)]


# KV-43: values that the consumer has skipped


def stored(key, seq, operation=""):
    message = {"subject": "$KV.b." + key, "seq": seq, "time": TIME, "data": "dg=="}
    if operation:
        block = "NATS/1.0\r\nKV-Operation: %s\r\n\r\n" % operation
        message["hdrs"] = base64.b64encode(block.encode()).decode()
    return {"message": message}


NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
SKIPPED = [
    # options; what is read: answers; what comes of it: key, revision, value
    ({}, [stored("c", 5), stored("d", 4, "DEL")], [("c", 5, b"v"), ("d", 4, b"v")]),
    ({"meta_only": True}, [stored("c", 5), NO_MESSAGE], [("c", 5, b"")]),
    ({"ignore_deletes": True}, [stored("c", 5, "DEL"), stored("d", 4)], [("d", 4, b"v")]),
]


@pytest.mark.rule("KV-43")
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


@pytest.mark.rule("KV-43")
def test_a_value_that_is_not_skipped_but_late():
    looks = [listed(5, a=1, c=1)] * 3
    reads = [stored("c", 5), created(0, sent=1, seq=3), listed(5, a=1, c=1), stored("c", 5)]
    stage, watcher, _ = start([entry("a", 3, 1, 0)], *looks, *reads, keys=2)
    assert stage.run(watcher.next_initial()).revision == 3
    comes_late = entry("c", 5, 2, 0)

    async def main():
        while len(stage.answers) > 2:
            await watcher._settle()
        comes_with_the_answer(stage, comes_late)
        return await all_of(watcher.initial())

    assert stage.run(main()) == [("c", 5)]


@pytest.mark.rule("KV-43")
def test_skipped_history():
    # Of five entries two came; 7 is still on its way.
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
    # what CONSUMER.INFO says: whether the consumer is the one, and all that it sent has come
    (created(0, sent=0, seq=9), True),
    (created(0, sent=1, seq=9), False),
    (created(0, serial=7, seq=9), False),
]


@pytest.mark.rule("KV-43")
@pytest.mark.parametrize(("info", "skipped"), CURSORS)
def test_all_was_skipped(info, skipped):
    looks = [listed(9, a=1)] * 3
    more = [] if skipped else [listed(9)]
    stage, watcher, _ = start(SILENCE, *looks, stored("a", 7), info, *more, snapshot=[there(1)])
    assert initial(stage, watcher) == ([("a", 7)] if skipped else [])
    assert stage.answers == []


# KV-41: from a revision on

PASSES = [
    # what comes from 3 on, while the last sequence was 5; what is asked for, and the answer
    ([("a", 3, 1, 1), ("c", 5, 2, 0)], [], 2),
    ([("a", 3, 1, 1), ("c", 6, 2, 0)], [], 2),
    ([("a", 3, 1, 0)], [stored("a", 6)], 1),
    ([("a", 3, 1, 0)], [NO_MESSAGE], 1),
    ([("a", 3, 1, 0), ("a", 4, 2, 0), ("a", 5, 3, 0)], [stored("a", 4)], 3),
]


@pytest.mark.rule("KV-41")
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


@pytest.mark.rule("KV-41")
@pytest.mark.parametrize(("start_at", "done"), [(5, False), (6, True)])
def test_from_the_next_revision_on(start_at, done):
    _, watcher, _ = start(snapshot=[there(9, 5)], resume_from_revision=start_at)
    assert watcher.initialized is done


# KV-45: a server that does not answer


@pytest.mark.rule("KV-45")
def test_nothing_comes_any_more():
    answers = [[entry("a", 3, 1, 2)], SILENCE, listed(6, a=1, c=1)]
    stage, watcher, _ = start(*answers, keys=3)
    assert stage.run(watcher.next_initial()).revision == 3
    with pytest.raises(TimeoutExpired, match="no initial value from bucket 'b' for 5 s"):
        stage.run(watcher.next_initial())
    assert stage.now() == 6.0  # a second, and the call
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
    assert stage.run(watcher.next_initial()).revision == 5


@pytest.mark.rule("KV-45")
def test_it_answers_but_nothing_comes():
    stage, watcher, _ = start(SILENCE, *[GONE] * 4, keys=3)
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next_initial())
    assert stage.now() == 5.0


@pytest.mark.rule("KV-45")
def test_a_call_is_lost_and_messages_come():
    stage, watcher, _ = start([entry("a", 3, 1, 1)], SILENCE, keys=2)
    assert stage.run(watcher.next_initial()).revision == 3
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
    assert initial(stage, watcher) == [("c", 5)]


@pytest.mark.rule("KV-45")
def test_deletions_that_are_left_out_are_signs_of_life():
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


# KV-44: nothing is left of a watch that does not begin


@pytest.mark.rule("KV-44")
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutExpired])
def test_a_watch_that_does_not_begin(error):
    stage, kv = bucket(there(0), SILENCE)
    ring = stage.wire.ring

    def interrupt():
        if error is KeyboardInterrupt:
            raise KeyboardInterrupt
        ring()

    stage.wire.ring = interrupt
    with pytest.raises(error):
        stage.run(kv.watch())
    stage.wire.ring = ring
    stage.answers += [created(0), {"success": True}]
    stage.serve()
    stage.serve()
    assert short(stage) == [
        "STREAM.INFO.KV_b",
        "CONSUMER.CREATE.KV_b.w_1.$KV.b.>",
        "CONSUMER.INFO.KV_b.w_1",
        "CONSUMER.DELETE.KV_b.w_1",
    ]


@pytest.mark.rule("KV-44")
def test_a_watch_that_is_refused():
    refusal = {"error": {"code": 400, "err_code": 10026, "description": "no room"}}
    stage, kv = bucket(there(0), refusal)
    with pytest.raises(ApiError):
        stage.run(kv.watch())
    assert short(stage) == ["STREAM.INFO.KV_b", "CONSUMER.CREATE.KV_b.w_1.$KV.b.>"]


# Over losses


@pytest.mark.rule("KV-37")
def test_the_consumer_is_lost():
    stage, watcher, _ = start(
        [entry("a", 3, 1, 0), DELETED],
        SILENCE,
        created(0, 2, 3),
        SAME_STREAM,
        [entry("a", 4, 1, 0, serial=2)],
        keys=1,
    )
    assert initial(stage, watcher) == [("a", 3)]
    assert following(stage, watcher, 1) == [("a", 4)]
    event = stage.run(watcher.events.next())
    assert isinstance(event, ConsumerReset)
    assert isinstance(event.error, ConsumerDeleted)


@pytest.mark.rule("KV-37")
def test_the_connection_is_lost():
    stage, watcher, _ = start(
        Lost(),
        SILENCE,
        created(2, 2),
        SAME_STREAM,
        [entry("a", 3, 1, 1, serial=2), entry("c", 4, 2, 0, serial=2)],
        keys=2,
        last=4,
    )
    assert initial(stage, watcher) == [("a", 3), ("c", 4)]


AMID = [
    # history; what the next consumer has: key, sequence, number, pending; where it starts
    (1, [("a", 9, 1, 1), ("d", 10, 2, 0)], 4),
    (5, [("c", 3, 1, 2), ("a", 9, 2, 1), ("d", 10, 3, 0)], None),
]


@pytest.mark.rule("KV-35", "KV-37", "ORDERED-26")
@pytest.mark.parametrize(("history", "comes", "start"), AMID)
def test_the_consumer_is_lost_amid_the_initial_values(history, comes, start):
    stage, kv = bucket(
        there(3, 10),
        created(2),
        [entry("c", 3, 1, 1), DELETED],
        SILENCE,
        created(len(comes), 2, 3),
        SAME_STREAM,
        [entry(*each, serial=2) for each in comes],
        max_msgs_per_subject=history,
    )
    watcher = stage.run(kv.watch())
    assert initial(stage, watcher) == [("c", 3), ("a", 9), ("d", 10)]
    creates = [json.loads(pub.data)["config"] for pub in stage.pubs if ".CREATE." in pub.subject]
    assert creates[1].get("opt_start_seq") == start
    assert creates[1]["deliver_policy"] == ("by_start_sequence" if start else "last_per_subject")


@pytest.mark.rule("ORDERED-31")
@pytest.mark.parametrize("history", [1, 5])
def test_the_bucket_is_recreated(history):
    """Amid the initial values, too: then those of the new bucket are the initial ones."""
    recreated = {"config": {}, "created": "2099-01-01T00:00:00Z"}
    stage, kv = bucket(
        created(2),
        [entry("c", 30, 1, 1), DELETED],
        SILENCE,
        created(1, 2, 30),
        recreated,
        SILENCE,
        created(1, 3),
        recreated,
        [entry("a", 1, 1, 0, serial=3), entry("a", 2, 2, 0, serial=3)],
        max_msgs_per_subject=history,
    )
    watcher = stage.run(kv.watch())
    assert initial(stage, watcher) == [("c", 30), ("a", 1)]
    assert following(stage, watcher, 1) == [("a", 2)]
    events = [stage.run(watcher.events.next()) for _ in range(2)]
    assert [type(event) for event in events] == [ConsumerReset, StreamRecreated]
    creates = [json.loads(pub.data)["config"] for pub in stage.pubs if ".CREATE." in pub.subject]
    assert creates[2]["deliver_policy"] == ("all" if history == 1 else "last_per_subject")


@pytest.mark.rule("KV-15")
def test_the_bucket_is_gone():
    for take in ("__anext__", "next", "next_initial"):
        stage, watcher, _ = start(DELETED, SILENCE, NO_STREAM, keys=1)
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(getattr(watcher, take)())
    for answers in ([NO_STREAM], [there(1), NO_STREAM]):
        stage, kv = bucket(*answers)
        with pytest.raises(BucketNotFound):
            stage.run(kv.watch())
    stage, watcher, _ = start(SILENCE, NO_STREAM, keys=1)
    with pytest.raises(BucketNotFound):
        stage.run(watcher.next_initial())  # it is told by the call


# Its end


def test_stop():
    async def main():
        async with watcher:
            assert not watcher.closed
            await watcher.next()
        assert [each async for each in watcher] == []
        await watcher.stop()

    stage, watcher, _ = start([entry("a", 3, 1, 1)], SILENCE, keys=2)
    stage.run(main())
    assert watcher.closed
    assert not watcher.initialized
    for take in ("next", "next_initial"):
        with pytest.raises(InvalidState):
            stage.run(getattr(watcher, take)())
    assert short(stage)[1:] == ["CONSUMER.MSG.NEXT.KV_b.w_1", "CONSUMER.DELETE.KV_b.w_1"]


# Keys


@pytest.mark.rule("KV-38")
def test_a_lister():
    async def main():
        async with await kv.list_keys("a.>") as lister:
            assert [key async for key in lister] == ["a.b", "a.d"]
            assert [key async for key in lister] == []

    comes = [entry("a.b", 3, 1, 2), entry("a.c", 5, 2, 1, "DEL"), entry("a.d", 6, 3, 0)]
    stage, kv = bucket(listed(a_b=1, a_c=1, a_d=1), created(3), comes, SILENCE)
    stage.run(main())
    assert short(stage) == [
        "STREAM.INFO.KV_b",
        "CONSUMER.CREATE.KV_b.w_1.$KV.b.a.>",
        "CONSUMER.MSG.NEXT.KV_b.w_1",
        "CONSUMER.DELETE.KV_b.w_1",
    ]


@pytest.mark.rule("OBJ-39")
def test_a_snapshot_that_is_known():
    stage, kv = bucket(created(2), [entry("a", 3, 1, 0), entry("a", 4, 2, 0)], listed(a=2))
    api = kv._api
    options = WatchOptions("a", include_history=True)
    known = chunks_wanted("a", 2)
    watcher = stage.run(open_watch(api, "KV_b", "b", "$KV.b.", 1, options, snapshot=known))
    assert initial(stage, watcher) == [("a", 3), ("a", 4)]
