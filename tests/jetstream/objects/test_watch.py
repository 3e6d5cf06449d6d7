"""Watches of objects, on a scripted bucket."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import BucketNotFound
from jetstream.objects.watch import watch_infos
from natsproto.errors import InvalidState, InvalidValue, TimeoutExpired
from tests.jetstream.object_stores import (
    NO_STREAM,
    created,
    delivery,
    info_json,
    listed,
    store,
    token,
)
from tests.jetstream.support import SILENCE

NAME = "1" * 22


def infos(*rows):
    """Return messages about objects: name, whether it is deleted; bytes for something else."""
    found = []
    for place, row in enumerate(rows):
        data = (
            row
            if isinstance(row, bytes)
            else json.dumps(info_json(row[0], deleted=row[1])).encode()
        )
        subject = "$O.b.M." + token("x" if isinstance(row, bytes) else row[0])
        found.append(delivery(subject, data, place + 1, len(rows) - 1 - place, NAME))
    return found


def start(*answers, names=(), **options):
    """Return a watch of a bucket that has these objects when it begins."""
    first = [] if options.get("updates_only") else [listed(*names)]
    stage, bucket = store(*first, created(NAME, len(names)), *answers)
    watcher = stage.run(bucket.watch(**options))
    create = stage._pubs.pop()
    return stage, watcher, json.loads(create.data)["config"]


async def all_of(iterator):
    return [(info.name, info.deleted) async for info in iterator]


@pytest.mark.rule("OBJ-36")
@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({}, "last_per_subject"),
        ({"ignore_deletes": True}, "last_per_subject"),
        ({"include_history": True}, "all"),
        ({"updates_only": True}, "new"),
    ],
)
def test_consumers(options, policy):
    _, watcher, config = start(**options)
    assert (config["deliver_policy"], config["filter_subject"]) == (policy, "$O.b.M.>")
    assert repr(watcher) == "<ObjectWatcher of b>"
    assert watcher.initialized
    assert not watcher.closed


@pytest.mark.rule("OBJ-36")
def test_the_messages_with_infos_can_be_watched_undecoded():
    stage, bucket = store(listed("a"), created(NAME, 1), infos(("a", False)))
    watcher = stage.run(watch_infos(bucket._metas))
    entry = stage.run(watcher.next(1.0))
    assert (entry.key, json.loads(entry.value)["name"]) == (token("a"), "a")


@pytest.mark.rule("OBJ-36")
def test_wrong_options():
    stage, bucket = store()
    with pytest.raises(InvalidValue):
        stage.run(bucket.watch(include_history=True, updates_only=True))
    assert stage.quiet()


@pytest.mark.rule("OBJ-16", "OBJ-36")
@pytest.mark.parametrize("ignore_deletes", [False, True])
def test_initial(ignore_deletes):
    comes = infos(("a", False), ("b", True), b"garbage", b"")
    stage, watcher, _ = start(comes, SILENCE, names="abx", ignore_deletes=ignore_deletes)
    found = [("a", False)] if ignore_deletes else [("a", False), ("b", True)]
    assert not watcher.initialized
    assert stage.run(all_of(watcher.initial())) == found
    assert watcher.initialized
    assert stage.run(watcher.next_initial()) is None


@pytest.mark.rule("OBJ-16", "OBJ-36")
def test_changes():
    comes = infos(("a", False), ("b", True), b"garbage", ("c", False), ("d", True), ("e", False))
    stage, watcher, _ = start(comes, SILENCE, ignore_deletes=True)
    assert stage.run(watcher.__anext__()).name == "a"
    assert stage.run(watcher.next()).name == "c"
    info = stage.run(watcher.next(1.0))
    assert (info.name, info.mtime.ns) == ("e", 10**9)
    with pytest.raises(TimeoutExpired):
        stage.run(watcher.next(1.0))


def test_by_plain_iteration():
    comes = infos(("a", False), b"garbage", ("b", False))
    stage, watcher, _ = start(comes, SILENCE)
    names = [stage.run(watcher.__anext__()).name for _ in range(2)]
    assert names == ["a", "b"]
    assert watcher.events is watcher._messages.events


def test_stop():
    async def main():
        async with watcher:
            await watcher.next()
        assert await all_of(watcher) == []

    stage, watcher, _ = start(infos(("a", False)), SILENCE, names="a")
    stage.run(main())
    assert watcher.closed
    with pytest.raises(InvalidState):
        stage.run(watcher.next())


def test_the_bucket_is_gone():
    stage, bucket = store(NO_STREAM)
    with pytest.raises(BucketNotFound):
        stage.run(bucket.watch())
