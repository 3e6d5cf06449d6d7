"""The watcher that watches of keys and of objects share, on a scripted bucket."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import BucketNotFound, ConsumerDeleted
from jetstream.events import ConsumerReset, StreamRecreated
from jetstream.kv.options import WatchOptions, WatchTarget
from jetstream.kv.snapshot import chunks_wanted
from jetstream.kv.watch import open_watch
from jetstream.kv.watcher import Watcher
from natsproto.errors import InvalidState, TimeoutExpired
from tests.jetstream.buckets import SAME_STREAM
from tests.jetstream.kvs import NO_STREAM, bucket, created, entry, listed, short, there
from tests.jetstream.support import NOBODY, SILENCE, Lost, Status
from tests.jetstream.watches import GONE, comes_with_the_answer, following, initial, start

DELETED = Status("409 Consumer Deleted")


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
    # The bucket has 2 keys, and 5 is its last sequence. Key, sequence, number and pending of each
    # entry that arrives; how many of the entries are initial values.
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
    # c was at 5. It arrives after a message with none pending, and after one beyond the fence.
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


@pytest.mark.rule("D-KV-50")
@pytest.mark.parametrize("take", ["next", "__anext__"])
def test_each_ignored_delete_may_cause_a_doubt(take):
    """The bucket had c and d. After the first answer, but not the second, c may still arrive."""
    stage, watcher, _ = start(
        [entry("d", 3, 1, 0, "DEL")],
        listed(7, c=1, d=1),
        listed(8, d=1),
        keys=2,
        ignore_deletes=True,
    )
    comes_with_the_answer(stage, None, entry("d", 8, 2, 0, "DEL"), entry("d", 9, 3, 0))
    assert stage.run(getattr(watcher, take)()).revision == 9
    assert watcher.initialized
    assert (stage.answers, stage.now()) == ([], 0.0)


@pytest.mark.rule("D-KV-50")
def test_an_ignored_delete_ends_the_initial_values():
    comes = [entry("d", 3, 1, 0, "DEL")]
    stage, watcher, _ = start(comes, listed(7, d=1), keys=2, ignore_deletes=True)
    assert stage.run(watcher.next_initial()) is None
    assert (stage.answers, stage.now()) == ([], 0.0)


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


# D-KV-36: values that are removed before they arrive

LOOKS = [
    # answers to STREAM.INFO, and when the client knew that there are no more
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


# Across losses of the consumer, the connection and the bucket


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


@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize("history", [1, 5])
def test_the_bucket_is_recreated(history):
    """If it happens amid the initial values, those of the new bucket take their place."""
    recreated = {"config": {}, "created": "2099-01-01T00:00:00Z"}
    stage, kv = bucket(
        there(2, 31),
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
def test_the_bucket_is_deleted():
    for take in ("__anext__", "next", "next_initial"):
        stage, watcher, _ = start(DELETED, SILENCE, NO_STREAM, keys=1)
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(getattr(watcher, take)())
    stage, watcher, _ = start(SILENCE, NO_STREAM, keys=1)
    with pytest.raises(BucketNotFound):
        stage.run(watcher.next_initial())  # the call reports it


# The end of a watch


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


def test_entries_at_hand_are_taken_together():
    comes = [entry(key, seq, seq, 5 - seq) for seq, key in enumerate("abcde", 1)]
    stage, watcher, _ = start(comes, keys=5)
    assert stage.run(watcher.next_initial()).key == "a"  # it waited for this one
    assert stage.run(watcher.__anext__()).key == "b"
    assert [each.key for each in watcher._ready] == ["e", "d", "c"]
    assert stage.run(watcher.next()).key == "c"
    assert stage.run(watcher.next_initial()).key == "d"
    assert not watcher.initialized
    stage.run(watcher.stop())
    with pytest.raises(InvalidState):
        stage.run(watcher.next())


MANY = [
    # name, options, the keys that are read
    ("all", {}, "abcdefg"),
    ("deletions are left out", {"ignore_deletes": True}, "abcefg"),
]


@pytest.mark.rule("KV-34", "KV-35")
@pytest.mark.parametrize(("name", "options", "keys"), MANY)
def test_initial_values_at_hand_are_recorded_together(name, options, keys):
    comes = [
        entry(key, seq, seq, 8 - seq, "DEL" if key == "d" else "")
        for seq, key in enumerate("abcdefg", 1)
    ]
    stage, watcher, _ = start(comes, keys=8, last=9, **options)
    first = watcher.initial()
    read = [stage.run(first.__anext__()).key for _ in "ab"]
    assert watcher._recorded == (0 if options else 5)
    read += [stage.run(first.__anext__()).key for _ in keys[2:-1]]
    assert "".join(read) == keys[:-1]
    assert not watcher.initialized
    stage.run(watcher.stop())
    assert watcher.closed
    with pytest.raises(InvalidState):
        stage.run(first.__anext__())


def test_a_subclass_decides_what_the_items_are():
    stage, kv = bucket(created(1), [entry("a", 3, 1, 0)])
    target = WatchTarget(kv._api, "KV_b", "b", "$KV.b.")
    known = chunks_wanted("a", 1)
    watcher = stage.run(open_watch(Watcher, target, WatchOptions("a"), snapshot=known))
    with pytest.raises(NotImplementedError):
        stage.run(watcher.next())
    assert repr(watcher) == "<Watcher of b>"
