"""Watches, on a scripted bucket."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import ApiError, BucketNotFound
from jetstream.kv.codecs import Base64Codec
from jetstream.kv.options import WatchOptions, WatchTarget
from jetstream.kv.snapshot import chunks_wanted
from jetstream.kv.watch import KeyWatcher, open_watch
from natsproto.errors import (
    NotSupported,
    TimeoutExpired,
)
from tests.jetstream.buckets import SAME_STREAM
from tests.jetstream.kvs import NO_STREAM, TIME, bucket, created, entry, listed, short, there
from tests.jetstream.support import SILENCE, Status
from tests.jetstream.watches import following, initial, start

DELETED = Status("409 Consumer Deleted")


POLICIES = [
    # options, the requests
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


@pytest.mark.rule("D-KVCODEC-7")
def test_entries_are_decoded():
    stage, kv = bucket(there(1, 5), created(1), [entry("YQ", 5, 1, 0)])
    watcher = stage.run(kv.with_codecs(keys=Base64Codec()).watch())
    assert initial(stage, watcher) == [("a", 5)]


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


@pytest.mark.rule("KV-15")
def test_the_bucket_does_not_exist():
    for answers in ([NO_STREAM], [there(1), NO_STREAM]):
        stage, kv = bucket(*answers)
        with pytest.raises(BucketNotFound):
            stage.run(kv.watch())


# D-KV-44: nothing is left of a watch that does not begin


@pytest.mark.rule("D-KV-44")
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


@pytest.mark.rule("D-KV-44")
def test_a_watch_that_is_refused():
    refusal = {"error": {"code": 400, "err_code": 10026, "description": "no room"}}
    stage, kv = bucket(there(0), refusal)
    with pytest.raises(ApiError):
        stage.run(kv.watch())
    assert short(stage) == ["STREAM.INFO.KV_b", "CONSUMER.CREATE.KV_b.w_1.$KV.b.>"]


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
