"""Watches, on a scripted bucket."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import BucketNotFound, ConsumerDeleted
from jetstream.events import ConsumerReset, StreamRecreated
from jetstream.kv.snapshot import chunks_wanted
from jetstream.kv.watch import KeyWatcher, Watcher, WatchOptions, WatchTarget, open_watch
from natsproto.errors import (
    InvalidState,
    NotSupported,
    TimeoutExpired,
)
from tests.jetstream.buckets import SAME_STREAM
from tests.jetstream.kvs import NO_STREAM, TIME, bucket, created, entry, listed, short, there
from tests.jetstream.support import NOBODY, SILENCE, Lost, Status
from tests.jetstream.watches import GONE, comes_with_the_answer, following, initial, start

DELETED = Status("409 Consumer Deleted")


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


@pytest.mark.rule("D-CALL-7")
@pytest.mark.parametrize("prefix", ["fromA", "$JS.API"])
def test_an_old_server(prefix):
    stage, kv = bucket(info={"prefix": prefix})
    stage.connection.info.version = "2.9.10"
    with pytest.raises(NotSupported, match="filter_subjects needs server"):
        stage.run(kv.watch(["a", "c"]))
    assert stage.quiet()


# The initial values


@pytest.mark.rule("KV-35")
def test_an_empty_bucket():
    stage, watcher, _ = start(SILENCE)
    assert watcher.initialized
    assert initial(stage, watcher) == []
    assert stage.run(watcher.next_initial()) is None
    assert stage.waits == 3  # for the answers to calls alone


@pytest.mark.rule("KV-35")
def test_updates_only_has_no_initial_values():
    _, watcher, _ = start(SILENCE, keys=3, updates_only=True)
    assert watcher.initialized


ENDS = [
    # The bucket has 2 keys, and 5 is its last sequence. Key, sequence, number and pending of what
    # comes; how many of it are initial values.
    ("no writes", [("a", 3, 1, 1), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
    ("counted too low", [("a", 3, 1, 0), ("c", 5, 2, 0), ("a", 6, 3, 0)], 2),
    ("counted too high", [("a", 3, 1, 7), ("c", 5, 2, 7), ("a", 6, 3, 0)], 2),
]


@pytest.mark.rule("KV-35", "D-KV-40")
@pytest.mark.parametrize(("name", "comes", "count"), ENDS)
def test_end_of_the_initial_values(name, comes, count):
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


@pytest.mark.rule("D-KV-40")
def test_a_key_is_changed_while_the_watch_begins():
    # c was at 5. It comes after a message that says none is pending, and one after the fence.
    comes = [entry("a", 3, 1, 0), entry("d", 6, 2, 0), entry("c", 7, 3, 0), entry("a", 8, 4, 0)]
    stage, watcher, _ = start(comes, listed(7, a=1, c=1, d=1), keys=2)
    assert initial(stage, watcher) == [("a", 3), ("d", 6), ("c", 7)]
    assert following(stage, watcher, 1) == [("a", 8)]
    assert stage.answers == []


@pytest.mark.rule("D-KV-40")
def test_the_server_counts_nothing_at_first():
    stage, watcher, _ = start(snapshot=[there(1)])
    assert not watcher.initialized
    stage.answers += [[entry("a", 3, 1, 0)], listed(a=1)]
    assert initial(stage, watcher) == [("a", 3)]


@pytest.mark.rule("KV-35", "D-KV-40")
def test_by_plain_iteration():
    stage, watcher, _ = start([entry("a", 3, 1, 1), entry("c", 5, 2, 0)], keys=2)
    assert following(stage, watcher, 1) == [("a", 3)]
    assert not watcher.initialized
    assert stage.run(watcher.next()).revision == 5
    assert watcher.initialized


@pytest.mark.rule("D-KV-40", "D-KV-42")
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


@pytest.mark.rule("D-KV-40")
def test_a_doubt_waits_while_there_are_entries():
    stage, watcher, _ = start([entry("a", 3, 1, 0), entry("d", 9, 2, 0)], keys=2)
    assert following(stage, watcher, 2) == [("a", 3), ("d", 9)]
    assert not watcher.initialized
    assert short(stage)[-1] == "CONSUMER.MSG.NEXT.KV_b.w_1"


@pytest.mark.rule("D-KV-45")
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


# D-KV-36: values that go before they come

LOOKS = [
    # answers to STREAM.INFO, and when it was known that there are no more
    ("gone", [listed(6, a=1)], 1.0),
    ("gone later", [listed(6, a=1, c=1), listed(6, a=1)], 2.0),
    ("no leader", [GONE, listed(6, a=1)], 2.0),
    ("no responders", [NOBODY, listed(6, a=1)], 2.0),
]


@pytest.mark.rule("D-KV-36", "D-KV-42")
@pytest.mark.parametrize(("name", "answers", "at"), LOOKS)
def test_initial_values_that_were_removed(name, answers, at):
    stage, watcher, _ = start([entry("a", 3, 1, 2)], *answers, keys=3)
    assert initial(stage, watcher) == [("a", 3)]
    assert watcher.initialized
    assert stage.now() == at
    assert stage.answers == []


@pytest.mark.rule("D-KV-36")
def test_a_value_arrives_with_the_answer():
    stage, watcher, _ = start([entry("a", 3, 1, 1)], listed(6, a=1, c=1), keys=2)
    stage.run(watcher.next_initial())
    comes_with_the_answer(stage, entry("c", 5, 2, 0))
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


@pytest.mark.rule("KV-35", "KV-37", "D-ORDERED-26")
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


@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize("history", [1, 5])
def test_the_bucket_is_recreated(history):
    """Even amid the initial values: then those of the new bucket are the initial ones."""
    recreated = {"config": {}, "created": "2099-01-01T00:00:00Z"}
    stage, kv = bucket(
        there(2, 30),
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
        stage.run(watcher.next_initial())  # the call reports it


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


@pytest.mark.rule("D-OBJ-39")
def test_a_snapshot_that_is_known():
    stage, kv = bucket(created(2), [entry("a", 3, 1, 0), entry("a", 4, 2, 0)], listed(a=2))
    api = kv._api
    options = WatchOptions("a", include_history=True)
    known = chunks_wanted("a", 2)
    watcher = stage.run(
        open_watch(KeyWatcher, WatchTarget(api, "KV_b", "b", "$KV.b."), options, snapshot=known)
    )
    assert initial(stage, watcher) == [("a", 3), ("a", 4)]


def test_a_kind_of_watcher_says_what_its_items_are():
    stage, kv = bucket(created(1), [entry("a", 3, 1, 0)])
    target = WatchTarget(kv._api, "KV_b", "b", "$KV.b.")
    known = chunks_wanted("a", 1)
    watcher = stage.run(open_watch(Watcher, target, WatchOptions("a"), snapshot=known))
    with pytest.raises(NotImplementedError):
        stage.run(watcher.next())
    assert repr(watcher) == "<Watcher of b>"
