"""Chunks that belong to no object are found and purged, on a scripted stream."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import BucketNotFound, InvalidResponse
from natsproto.errors import InvalidValue
from tests.jetstream.object_stores import (
    NO_MESSAGE,
    NO_STREAM,
    PURGED,
    TIME,
    by_api,
    created,
    delivery,
    info_json,
    listed,
    short,
    store,
    stream,
    token,
)
from tests.jetstream.support import SILENCE

# The names of the two watches, by the scripted randomness; between them is an inbox.
NAMES = ("1" * 22, "3" * 22)


def chunks(*nuids):
    info = stream()
    info["state"]["subjects"] = {"$O.b.C." + nuid: 3 for nuid in nuids}
    info["total"] = len(nuids)
    return info


def look(place, *rows):
    """Return the responses to a watch of the infos: its creation, its pull, its end."""
    name = NAMES[place]
    comes = []
    for number, row in enumerate(rows):
        subject = "$O.b.M." + token(row["name"])
        left = len(rows) - 1 - number
        comes.append(delivery(subject, json.dumps(row).encode(), number + 1, left, name))
    names = [row["name"] for row in rows]
    # A watch that has nothing to wait for may be stopped before it pulls.
    pull = [comes, SILENCE] if rows else [SILENCE, SILENCE]
    return [listed(*names), created(name, len(rows)), *pull]


def chunk(time=TIME):
    answer = by_api(info_json())
    answer["message"]["time"] = time
    return answer


A, B, GONE = (
    info_json("a", nuid="A"),
    info_json("b", nuid="B"),
    info_json("c", nuid="C", deleted=True),
)
# As nats.js writes it: without nuid, size and chunks.
LINK = {"name": "ref", "bucket": "b", "options": {"link": {"bucket": "b", "name": "a"}}}
BEFORE = "2026-11-15T22:55:50.159073055Z"  # an hour before TIME, when watches begin
LATER = "2026-11-15T22:55:50.159073056Z"
ORPHANS = [
    # chunks; two listings of infos; the newest chunk of each orphan, and the purges
    ("no chunks", [], [], [], 0),
    ("no orphans", ["A", "B"], [look(0, A, B)], [], 0),
    ("one", ["A", "X"], [look(0, A, B), look(1, A, B)], [chunk(BEFORE), PURGED], 1),
    ("too young", ["A", "X"], [look(0, A), look(1, A)], [chunk(LATER)], 0),
    ("two", ["Y", "X"], [look(0), look(1)], [chunk(BEFORE), PURGED, chunk(BEFORE), PURGED], 2),
    ("of a deleted one", ["C"], [look(0, GONE), look(1, GONE)], [chunk(BEFORE), PURGED], 1),
    ("it got another name", ["A"], [look(0), look(1, A)], [], 0),
    ("a link of nats.js", ["X"], [look(0, LINK), look(1, LINK)], [chunk(BEFORE), PURGED], 1),
    ("gone meanwhile", ["X"], [look(0), look(1)], [NO_MESSAGE], 0),
]


@pytest.mark.rule("D-OBJ-38")
@pytest.mark.parametrize(("name", "nuids", "looks", "rest", "removed"), ORPHANS)
def test_orphans(name, nuids, looks, rest, removed):
    answers = [answer for each in looks for answer in each]
    stage, bucket = store(chunks(*nuids), *answers, *rest)
    assert stage.run(bucket.purge_orphans()) == removed
    asked = [body for subject, body in stage.asked if ".PURGE." in subject]
    assert len(asked) == removed
    assert stage.answers == []
    for body in asked:
        assert body["filter"][-1] in "XYC"


@pytest.mark.rule("D-OBJ-38")
@pytest.mark.parametrize(("older_than", "removed"), [(0.0, 1), (0.001, 0), (3600, 0)])
def test_ages(older_than, removed):
    stage, bucket = store(chunks("X"), *look(0), *look(1), chunk(), *[PURGED] * removed)
    assert stage.run(bucket.purge_orphans(older_than)) == removed
    assert stage.asked[0] == ("$JS.API.STREAM.INFO.OBJ_b", {"subjects_filter": "$O.b.C.>"})
    assert stage.answers == []


@pytest.mark.rule("D-OBJ-38")
def test_an_info_that_cannot_be_read():
    stage, bucket = store(chunks("X"), *look(0, A, info_json("b", nuid=">")))
    with pytest.raises(InvalidResponse):
        stage.run(bucket.purge_orphans())
    assert [subject for subject in short(stage) if "PURGE" in subject] == []


def test_the_bucket_is_gone():
    stage, bucket = store(NO_STREAM)
    with pytest.raises(BucketNotFound, match="'b'"):
        stage.run(bucket.purge_orphans())


@pytest.mark.parametrize("older_than", [-1, "1h", None, float("nan")])
def test_wrong_ages_are_not_sent(older_than):
    stage, bucket = store()
    with pytest.raises(InvalidValue, match="older_than"):
        stage.run(bucket.purge_orphans(older_than))
    assert stage.quiet()
