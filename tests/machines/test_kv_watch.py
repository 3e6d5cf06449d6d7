"""Watches, on a bucket that is scripted."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import BucketNotFound, ConsumerDeleted
from jetstream.kv_watch import WatchOptions
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
from .kvs import NO_STREAM, TIME, bucket, created, entry, short
from .support import NOBODY, SILENCE, Lost, Status

DELETED = Status("409 Consumer Deleted")
FLAGS = ("include_history", "updates_only", "ignore_deletes", "meta_only")


def start(*answers, pending=0, **options):
    """A watch whose consumer has so many messages at its beginning, and what was sent for it."""
    stage, kv = bucket(created(pending), *answers)
    watcher = stage.run(kv.watch(**options))
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
    _, watcher, config = start(**options)
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
    stage, kv = bucket(*answers, SILENCE, info={"prefix": prefix})
    watcher = stage.run(kv.watch())
    assert initial(stage, watcher) == [("a", 3), ("c", 4)]
    stage.run(watcher.stop())
    assert watcher.closed
    create = stage.pubs[0]
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
    assert stage.waits == 2  # for the answers to calls alone


@pytest.mark.rule("KV-35")
def test_none_are_wanted():
    _, watcher, _ = start(SILENCE, pending=3, updates_only=True)
    assert watcher.initialized


ENDS = [
    # pending at first; key, sequence, number and pending of what comes; the initial ones of them
    ("the last says so", 2, [("a", 3, 1, 1), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
    ("as many as there were", 2, [("a", 3, 1, 2), ("c", 5, 2, 1), ("a", 6, 3, 0)], 2),
    ("one has gone meanwhile", 3, [("a", 3, 1, 1), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
]


@pytest.mark.rule("KV-35")
@pytest.mark.parametrize(("name", "pending", "comes", "count"), ENDS)
def test_ends(name, pending, comes, count):
    stage, watcher, _ = start([entry(*each) for each in comes], pending=pending)
    assert not watcher.initialized
    found = [(key, seq) for key, seq, _, _ in comes]
    assert initial(stage, watcher) == found[:count]
    assert watcher.initialized
    assert following(stage, watcher, len(comes) - count) == found[count:]


@pytest.mark.rule("KV-35")
def test_by_plain_iteration():
    stage, watcher, _ = start([entry("a", 3, 1, 1), entry("c", 5, 2, 0)], pending=2)
    assert following(stage, watcher, 1) == [("a", 3)]
    assert not watcher.initialized
    assert stage.run(watcher.next()).revision == 5
    assert watcher.initialized


@pytest.mark.rule("KV-34", "KV-35")
def test_without_deletions():
    comes = [entry("a", 3, 1, 2), entry("c", 5, 2, 1, "DEL"), entry("d", 6, 3, 0, "PURGE")]
    later = [entry("d", 7, 4, 0, "DEL"), entry("d", 8, 5, 0), entry("d", 9, 6, 0, "DEL")]
    more = [*later, entry("d", 10, 7, 0), entry("d", 11, 8, 0, "DEL")]
    stage, watcher, _ = start(comes + more, pending=3, ignore_deletes=True)
    assert initial(stage, watcher) == [("a", 3)]
    assert following(stage, watcher, 1) == [("d", 8)]
    assert stage.run(watcher.next(1.0)).revision == 10
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next(1.0))


# KV-36: values that go before they come

LOOKS = [
    # answers to CONSUMER.INFO, and when it was known that there are no more
    ("nothing left", [created(0, sent=1)], 1.0),
    ("something left", [created(1, sent=1), created(0, sent=1)], 2.0),
    ("something on its way", [created(0, sent=2), created(0, sent=1)], 2.0),
    ("of the one before", [created(0, serial=7, sent=1), created(0, sent=1)], 2.0),
    (
        "being made anew",
        [
            {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}},
            created(0, sent=1),
        ],
        2.0,
    ),
    ("nobody answers", [NOBODY, created(0, sent=1)], 2.0),
]


@pytest.mark.rule("KV-36")
@pytest.mark.parametrize(("name", "answers", "at"), LOOKS)
def test_values_that_never_come(name, answers, at):
    stage, watcher, _ = start([entry("a", 3, 1, 2)], *answers, pending=3)
    assert initial(stage, watcher) == [("a", 3)]
    assert watcher.initialized
    assert stage.now() == at


@pytest.mark.rule("KV-36")
def test_a_value_comes_with_the_answer():
    stage, watcher, _ = start([entry("a", 3, 1, 1)], created(0, sent=2), pending=2)
    stage.run(watcher.next_initial())
    answer = stage._answer

    def come_and_answer(reply):
        late = entry("c", 5, 2, 0)
        sid = max(stage._subs)  # that of the watch
        stage.wire.data((late.line % sid).encode() + b"\r\n" + late.data + b"\r\n")
        return answer(reply)

    stage._answer = come_and_answer
    assert initial(stage, watcher) == [("c", 5)]


# Over losses


@pytest.mark.rule("KV-37")
def test_the_consumer_is_lost():
    stage, watcher, _ = start(
        [entry("a", 3, 1, 0), DELETED],
        SILENCE,
        created(0, 2, 3),
        SAME_STREAM,
        [entry("a", 4, 1, 0, serial=2)],
        pending=1,
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
        pending=2,
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
        stage, watcher, _ = start(DELETED, SILENCE, NO_STREAM, pending=1)
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(getattr(watcher, take)())
    stage, kv = bucket(NO_STREAM)
    with pytest.raises(BucketNotFound):
        stage.run(kv.watch())


# Its end


def test_stop():
    async def main():
        async with watcher:
            assert not watcher.closed
            await watcher.next()
        assert [each async for each in watcher] == []
        await watcher.stop()

    stage, watcher, _ = start([entry("a", 3, 1, 1)], SILENCE, pending=2)
    stage.run(main())
    assert watcher.closed
    assert not watcher.initialized
    for take in ("next", "next_initial"):
        with pytest.raises(InvalidState):
            stage.run(getattr(watcher, take)())
    assert short(stage) == ["CONSUMER.MSG.NEXT.KV_b.w_1", "CONSUMER.DELETE.KV_b.w_1"]


# Keys


@pytest.mark.rule("KV-38")
def test_a_lister():
    async def main():
        async with await kv.list_keys("a.>") as lister:
            assert [key async for key in lister] == ["a.b", "a.d"]
            assert [key async for key in lister] == []

    comes = [entry("a.b", 3, 1, 2), entry("a.c", 5, 2, 1, "DEL"), entry("a.d", 6, 3, 0)]
    stage, kv = bucket(created(3), comes, SILENCE)
    stage.run(main())
    assert short(stage) == [
        "CONSUMER.CREATE.KV_b.w_1.$KV.b.a.>",
        "CONSUMER.MSG.NEXT.KV_b.w_1",
        "CONSUMER.DELETE.KV_b.w_1",
    ]
