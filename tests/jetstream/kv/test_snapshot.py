"""Snapshots: missing initial values, and the listing of keys."""

from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.kv.entry import KeyValueEntry
from jetstream.kv.snapshot import COUNTING, DONE, LISTED, PASSING, Lister, Snapshot, chunks_wanted
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.errors import TimeoutExpired
from tests.jetstream import buckets
from tests.jetstream.kvs import listed, there
from tests.jetstream.support import SILENCE, SlowStage, Stage

FENCE = 10


def counting(left=2):
    return Snapshot(COUNTING, FENCE, left)


def wants(**counts):
    return Snapshot.of(counts, FENCE)


TABLE = [
    # name, snapshot, entries (key, sequence, pending), state, doubtful
    ("no keys", lambda: counting(0), [], DONE, False),
    ("all of them", counting, [("a", 3, 1), ("b", 9, 0)], DONE, False),
    ("one missing", counting, [("a", 3, 1)], COUNTING, False),
    ("at the fence", counting, [("a", 3, 1), ("b", 10, 0)], DONE, False),
    ("one twice", counting, [("a", 3, 2), ("a", 4, 1)], COUNTING, False),
    ("none pending", counting, [("a", 3, 0)], COUNTING, True),
    ("one has moved", counting, [("a", 3, 1), ("b", 11, 5)], COUNTING, True),
    ("a new one", counting, [("x", 11, 5)], COUNTING, True),
    ("a doubt that is gone", counting, [("a", 3, 0), ("b", 4, 5)], DONE, False),
    ("no list", wants, [], DONE, False),
    ("listed", lambda: wants(a=1, b=1), [("a", 3, 1), ("b", 9, 0)], DONE, False),
    ("listed and moved", lambda: wants(a=1, b=1), [("b", 9, 1), ("a", 11, 1)], DONE, False),
    ("listed and others", lambda: wants(a=1), [("x", 3, 1), ("a", 4, 1)], DONE, False),
    ("listed and missing", lambda: wants(a=1), [("x", 11, 1)], LISTED, True),
    ("listed, none pending", lambda: wants(a=1), [("x", 3, 0)], LISTED, True),
    ("history", lambda: wants(a=3), [("a", 3, 2), ("a", 5, 1)], LISTED, False),
    ("a whole history", lambda: wants(a=2), [("a", 3, 2), ("a", 5, 1)], DONE, False),
    ("a history that moves", lambda: wants(a=2), [("a", 9, 2), ("a", 11, 1)], DONE, False),
    ("passing", lambda: Snapshot(PASSING, FENCE, 1), [("a", 9, 1)], PASSING, False),
    ("passed", lambda: Snapshot(PASSING, FENCE, 1), [("a", 10, 1)], DONE, False),
    ("passed by far", lambda: Snapshot(PASSING, FENCE, 1), [("a", 99, 1)], DONE, False),
    ("passing, none pending", lambda: Snapshot(PASSING, FENCE, 1), [("a", 9, 0)], PASSING, True),
    ("chunks", lambda: chunks_wanted("n", 2), [("n", 3, 0), ("n", 99, 0)], DONE, False),
    ("chunks of any number", lambda: chunks_wanted("n", 0), [("n", 3, 1)], LISTED, False),
]


@pytest.mark.rule("D-KV-40", "D-KV-41", "D-KV-42")
@pytest.mark.parametrize(("name", "make", "entries", "state", "doubtful"), TABLE)
def test_entries(name, make, entries, state, doubtful):
    snapshot = make()
    for entry in entries:
        assert not snapshot.done
        snapshot.see(*entry)
    assert (snapshot.state, snapshot.doubtful) == (state, doubtful)
    assert snapshot.done is (state == DONE)


TOGETHER = [
    # name, snapshot, entries, whether they are recorded together
    ("more are missing", lambda: counting(3), [("a", 3, 2), ("b", 9, 1)], True),
    ("at the fence", lambda: counting(3), [("a", 3, 2), ("b", 10, 1)], True),
    ("the last one", counting, [("a", 3, 1), ("b", 9, 1)], False),
    ("none pending", lambda: counting(3), [("a", 3, 1), ("b", 9, 0)], False),
    ("one has moved", lambda: counting(3), [("a", 3, 1), ("b", 11, 1)], False),
    ("one twice", lambda: counting(3), [("a", 3, 1), ("a", 9, 1)], False),
    ("listed", lambda: wants(a=1, b=1, c=1), [("a", 3, 1), ("b", 9, 1)], False),
    ("done", Snapshot, [("a", 3, 1)], False),
]


@pytest.mark.rule("D-KV-40")
@pytest.mark.parametrize(("name", "make", "entries", "together"), TOGETHER)
def test_entries_that_are_recorded_together(name, make, entries, together):
    snapshot = make()
    items = [KeyValueEntry("b", key, b"", seq, None, delta) for key, seq, delta in entries]
    left = snapshot.left
    assert snapshot.see_all(items) == (len(items) if together else 0)
    assert snapshot.left == (left - len(items) if together else left)
    assert not snapshot.doubtful
    assert snapshot.state == make().state
    snapshot.see_all(items)  # known keys do not count again
    assert snapshot.left == (left - len(items) if together else left)
    if together:
        snapshot.see("c", 4, 1)
        assert snapshot.done


LISTS = [
    # name, snapshot, entries, what the stream has then, what is missing: key, after
    ("all have arrived", counting, [("a", 3, 0)], {"a": 1}, []),
    ("it is still there", counting, [("a", 3, 0)], {"a": 1, "b": 4}, [("b", 0)]),
    ("a new one", counting, [("a", 3, 0)], {"a": 1, "x": 1}, [("x", 0)]),
    ("gone", lambda: wants(a=1, b=1), [("a", 3, 0)], {"a": 1}, []),
    ("still there", lambda: wants(a=1, b=1), [("a", 3, 0)], {"a": 1, "b": 1}, [("b", 0)]),
    ("not wanted", lambda: wants(a=1, b=1), [("a", 3, 0)], {"x": 1}, []),
    ("shorter", lambda: wants(a=5), [("a", 3, 0), ("a", 4, 0)], {"a": 2}, []),
    ("a bit shorter", lambda: wants(a=5), [("a", 3, 0), ("a", 4, 0)], {"a": 3}, [("a", 4)]),
    ("no longer", lambda: wants(a=2), [("a", 3, 0)], {"a": 9}, [("a", 3)]),
    ("chunks", lambda: chunks_wanted("n", 0), [("n", 3, 0)], {"n": 1}, []),
]


@pytest.mark.rule("D-KV-40", "D-KV-42")
@pytest.mark.parametrize(("name", "make", "entries", "counts", "missing"), LISTS)
def test_another_look(name, make, entries, counts, missing):
    snapshot = make()
    for entry in entries:
        snapshot.see(*entry)
    snapshot.listed(counts, 20)
    assert snapshot.missing(9) == missing
    assert snapshot.done is not missing if missing else snapshot.done
    assert (snapshot.doubtful, snapshot.looks) == (False, 1)
    if missing:
        snapshot.see("other", 19, 0)
        assert not snapshot.doubtful  # "none pending" is checked once
        snapshot.see("other", 21, 9)
        assert snapshot.doubtful


def test_entries_after_the_end():
    snapshot = counting(0)
    snapshot.see("a", 99, 0)
    assert (snapshot.done, snapshot.doubtful) == (True, False)


def test_missing_keys_are_forgotten():
    snapshot = wants(a=1, b=1, c=1)
    assert snapshot.missing(2) == [("a", 0), ("b", 0)]
    snapshot.forget("a")
    assert not snapshot.done
    snapshot.forget("b")
    snapshot.forget("c")
    assert snapshot.done


@pytest.mark.rule("D-KV-41")
def test_a_passing_snapshot_is_settled():
    for more in (True, False):
        snapshot = Snapshot(PASSING, FENCE, 1)
        snapshot.see("a", 3, 0)
        snapshot.doubtful = False
        snapshot.settled(more)
        assert snapshot.done is not more
    snapshot = Snapshot(PASSING, FENCE, 1)
    snapshot.settled(True)
    snapshot.see("a", 3, 0)
    assert not snapshot.doubtful


# How a stream is asked


def lister(*answers, filters=(">",), whole=True):
    stage = Stage(*answers)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    return stage, Lister(api, "KV_b", "$KV.b.", filters, whole=whole)


LOOK = {"subjects_filter": "$KV.b.>", "offset": 0}
TAKES = [
    # policy, filters, whole, answers; state, fence, bodies
    ("new", [">"], True, [], DONE, 0, []),
    ("last_per_subject", [">"], True, [there(2, 7)], COUNTING, 7, [{}]),
    ("last_per_subject", [">"], True, [there(0, 7)], DONE, 7, [{}]),
    ("last_per_subject", [">"], False, [listed(7, a=3)], LISTED, 7, [LOOK]),
    ("all", [">"], True, [listed(7, a=3)], LISTED, 7, [LOOK]),
    ("all", [">"], True, [listed(7, a=0)], DONE, 7, [LOOK]),
    ("by_start_sequence", ["a"], True, [there(9, 7)], PASSING, 7, [{}]),
    ("by_start_sequence", ["a"], True, [there(9, 4)], DONE, 4, [{}]),
    ("all", ["a.*", "c"], True, [listed(7, a_b=3), listed(9, c=1)], LISTED, 7,
     [{"subjects_filter": "$KV.b.a.*", "offset": 0}, {"subjects_filter": "$KV.b.c", "offset": 0}]),
]  # fmt: skip


@pytest.mark.rule("D-KV-40", "D-KV-41")
@pytest.mark.parametrize(
    ("policy", "filters", "whole", "answers", "state", "fence", "bodies"), TAKES
)
def test_take(policy, filters, whole, answers, state, fence, bodies):
    stage, keys = lister(*answers, filters=filters, whole=whole)
    snapshot = stage.run(keys.take(policy, 5))
    assert (snapshot.state, snapshot.fence) == (state, fence)
    assert stage.asked == [("$JS.API.STREAM.INFO.KV_b", body) for body in bodies]


@pytest.mark.rule("D-KV-42")
@pytest.mark.parametrize(("policy", "wanted"), [("all", 3), ("last_per_subject", 1)])
def test_how_many_entries_are_wanted(policy, wanted):
    stage, keys = lister(listed(7, a=3), whole=False)
    snapshot = stage.run(keys.take(policy, 0))
    for seq in range(1, wanted):
        snapshot.see("a", seq, 9)
        assert not snapshot.done
    snapshot.see("a", wanted, 9)
    assert snapshot.done


@pytest.mark.rule("D-KV-40")
def test_many_filters():
    filters = ["a.*", *["k%d" % number for number in range(9)]]
    stage, keys = lister(listed(7, a_b=3, k8=1, x=1, a=1), filters=filters)
    assert stage.run(keys.look()) == ({"a.b": 3, "k8": 1}, 7)
    assert stage.asked == [("$JS.API.STREAM.INFO.KV_b", LOOK)]


def page(total, *keys, last=7):
    answer = buckets.state("KV_b", last, {"$KV.b." + key: 1 for key in keys})
    answer["total"] = total
    return answer


PAGES = [
    # name, pages, keys, offsets
    ("one", [page(2, "a", "b")], "ab", [0]),
    ("two", [page(3, "a", "b"), page(3, "b", "c", last=9)], "abc", [0, 1]),
    ("three", [page(5, *"abc"), page(5, *"cd"), page(5, *"de")], "abcde", [0, 2, 3]),
    ("some are new", [page(4, "b", "c"), page(6, "b", "c"), page(6, *"cdef")], "bcdef", [0, 1, 2]),
    ("some went", [page(4, "a", "b"), page(3, "d"), page(3, *"bcd")], "abcd", [0, 1, 0]),
    ("nearly all went", [page(4, "a", "b"), page(1), page(1, "d")], "abd", [0, 1, 0]),
    ("they go on going", [page(4, "a", "b"), page(4, "d"), page(4, "a", "b"), page(4, "d"),
     page(4, "a", "b")], "abd", [0, 1, 0, 1, 0]),
    ("a total that is wrong", [page(9, "a", "b"), *[page(9, "b")] * 4], "ab", [0, 1, 2, 3, 4]),
]  # fmt: skip


@pytest.mark.rule("D-KV-43")
@pytest.mark.parametrize(("name", "pages", "keys", "offsets"), PAGES)
def test_pages(name, pages, keys, offsets):
    stage, found = lister(*pages)
    assert stage.run(found.look()) == (dict.fromkeys(keys, 1), 7)
    assert [body["offset"] for _, body in stage.asked] == offsets


def stored(key, seq):
    message = {"subject": "$KV.b." + key, "seq": seq, "time": buckets.TIME}
    return {"message": message}


NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
ENTRIES = [
    # all, answers, sequences, bodies
    (False, [stored("a", 7)], [7], [{"last_by_subj": "$KV.b.a"}]),
    (False, [NO_MESSAGE], [], [{"last_by_subj": "$KV.b.a"}]),
    (True, [stored("a", 7), stored("a", 9), NO_MESSAGE], [7, 9],
     [{"seq": seq, "next_by_subj": "$KV.b.a"} for seq in (4, 8, 10)]),
]  # fmt: skip


@pytest.mark.rule("D-KV-43")
@pytest.mark.parametrize(("all", "answers", "sequences", "bodies"), ENTRIES)
def test_entries_of_the_leader(all, answers, sequences, bodies):
    stage, keys = lister(*answers)
    found = stage.run(keys.entries("a", 3, all=all))
    assert [msg.seq for msg in found] == sequences
    assert stage.asked == [("$JS.API.STREAM.MSG.GET.KV_b", body) for body in bodies]


@pytest.mark.rule("D-KV-41")
@pytest.mark.parametrize(
    ("answers", "more"),
    [
        ([NO_MESSAGE, NO_MESSAGE], False),
        ([NO_MESSAGE, stored("c", 8)], True),
        ([stored("a", 9), stored("c", 10)], False),
    ],
)
def test_has_more(answers, more):
    stage, keys = lister(*answers, filters=["a.*", "c"])
    assert stage.run(keys.has_more(3, 8)) is more
    assert [body for _, body in stage.asked] == [
        {"seq": 4, "next_by_subj": "$KV.b.a.*"},
        {"seq": 4, "next_by_subj": "$KV.b.c"},
    ]


def test_the_greatest_sequence():
    assert chunks_wanted("n", 0).fence == MOST_SEQUENCE


def test_how_many_keys_are_missing():
    assert Snapshot().left == 0
    assert Snapshot(COUNTING, 9, 3).left == 3
    assert Snapshot.of({"a": 2, "b": 1}, 9).left == 2


@pytest.mark.rule("D-CALL-21")
@pytest.mark.parametrize("whole", [False, True])
def test_each_page_begins_another_timeout(whole):
    pages = [listed(9, a=1), listed(9, b=1), SILENCE]
    stage = SlowStage(*pages)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    lister = Lister(api, "KV_b", "$KV.b.", [">"] if whole else ["a", "b", "c"], whole=whole)
    paced = lister.paced(3.0)
    if whole:
        stage.answers = [there(2)]
        assert stage.run(paced.take("last_per_subject", 0)).state == COUNTING
        return
    with pytest.raises(TimeoutExpired):
        stage.run(paced.look())
    assert stage.now() == 2 * 2.0 + 5.0
