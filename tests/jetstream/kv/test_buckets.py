"""BucketManager, as both kinds of buckets use it, on a scripted server."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.config import StreamConfig
from jetstream.errors import BucketExists, BucketNotFound, SubjectOverlap
from jetstream.kv import KeyValue, KeyValueConfig, KeyValueStatus
from jetstream.kv.buckets import BucketManager
from jetstream.kv.manager import KeyValueManager
from jetstream.objects import ObjectStore, ObjectStoreConfig, ObjectStoreStatus
from jetstream.objects.manager import ObjectStoreManager
from natsproto.errors import InvalidName, InvalidValue, NotSupported
from tests.jetstream.buckets import IN_USE, NO_STREAM, NOT_MADE, OVERLAP, check_not_made
from tests.jetstream.support import Stage

KINDS = [
    # manager, configuration, bucket, status, prefix of streams, subjects
    (KeyValueManager, KeyValueConfig, KeyValue, KeyValueStatus, "KV_", ["$KV.b.>"]),
    (
        ObjectStoreManager,
        ObjectStoreConfig,
        ObjectStore,
        ObjectStoreStatus,
        "OBJ_",
        ["$O.b.C.>", "$O.b.M.>"],
    ),
]
each_kind = pytest.mark.parametrize(
    ("kind", "config", "store", "status", "prefix", "subjects"), KINDS, ids=["kv", "objects"]
)
each_manager = pytest.mark.parametrize("kind", [row[0] for row in KINDS], ids=["kv", "objects"])


def make(kind, *answers, **info):
    stage = Stage(*answers, **info)
    js = JetStream(stage.client)
    return stage, kind(js._streams, js._publisher, js._api)


def stream(prefix, bucket="b", **config):
    fields = {"max_msgs_per_subject": 5, "allow_direct": True, **config}
    return {"config": {"name": prefix + bucket, **fields}, "state": {"messages": 3, "bytes": 99}}


@pytest.mark.rule("KV-15", "OBJ-7")
@each_kind
@pytest.mark.parametrize(
    ("call", "verb"),
    [("create", "CREATE"), ("update", "UPDATE"), ("create_or_update", "UPDATE")],
)
def test_create_and_update(call, verb, kind, config, store, status, prefix, subjects):
    before = [] if call == "create" else [stream(prefix)]
    stage, buckets = make(kind, *before, stream(prefix), *before, stream(prefix))
    bucket = stage.run(getattr(buckets, call)(config(bucket="b"), {}))
    assert isinstance(bucket, store)
    assert bucket.bucket == "b"
    stage.run(getattr(buckets, call)(config(bucket="x", ttl=60), {"bucket": "b"}))
    asked = stage.asked
    assert [subject for subject, _ in asked if ".INFO." in subject] == [
        "$JS.API.STREAM.INFO.%sb" % prefix
    ] * 2 * len(before)
    [(first, body), (second, other)] = [each for each in asked if ".INFO." not in each[0]]
    assert first == second == "$JS.API.STREAM.%s.%sb" % (verb, prefix)
    assert body["subjects"] == subjects
    assert (other["name"], other["max_age"]) == (prefix + "b", 60 * 10**9)


@pytest.mark.rule("KV-15", "OBJ-7")
@each_manager
@pytest.mark.parametrize(("call", "answers", "error", "also"), NOT_MADE)
def test_errors_of_create_and_update(call, answers, error, also, kind):
    check_not_made(*make(kind, *answers), call, error, also)


@pytest.mark.rule("KV-14", "D-OBJ-6")
@each_kind
@pytest.mark.parametrize("given", [{"bucket": "b"}, "b", 7])
def test_a_configuration_of_another_type(given, kind, config, store, status, prefix, subjects):
    stage, buckets = make(kind)
    with pytest.raises(InvalidValue, match="is not of type " + config.__name__):
        stage.run(buckets.create(given, {}))
    assert stage.quiet()


@pytest.mark.rule("KV-10", "OBJ-5")
@each_manager
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"compression": True}, "compression needs server 2.10; this is 2.9.10"),
        ({"metadata": {"a": "b"}}, "metadata needs server 2.10"),
    ],
)
def test_old_servers(fields, text, kind):
    stage, buckets = make(kind, version="2.9.10", api_lvl=0)
    with pytest.raises(NotSupported, match=text):
        stage.run(buckets.create(None, {"bucket": "b", **fields}))
    assert stage.quiet()


@pytest.mark.rule("KV-15", "KV-16", "OBJ-7")
@each_kind
@pytest.mark.parametrize(("call", "verb"), [("find", "INFO"), ("delete", "DELETE")])
def test_find_and_delete(call, verb, kind, config, store, status, prefix, subjects):
    found = {**stream(prefix), "success": True}
    stage, buckets = make(kind, found, NO_STREAM, OVERLAP)
    bucket = stage.run(getattr(buckets, call)("b"))
    assert bucket is None if call == "delete" else bucket.bucket == "b"
    with pytest.raises(BucketNotFound) as caught:
        stage.run(getattr(buckets, call)("b"))
    assert caught.value.bucket == "b"
    with pytest.raises(SubjectOverlap):  # other errors are raised unchanged
        stage.run(getattr(buckets, call)("b"))
    assert stage.asked == [("$JS.API.STREAM.%s.%sb" % (verb, prefix), None)] * 3


@pytest.mark.rule("KV-1", "OBJ-1")
@each_manager
@pytest.mark.parametrize("call", ["find", "delete"])
def test_invalid_names(call, kind):
    stage, buckets = make(kind)
    with pytest.raises(InvalidName) as caught:
        stage.run(getattr(buckets, call)("a.b"))
    assert caught.value.rule == kind.RULES[0]
    assert stage.quiet()


@pytest.mark.rule("KV-17", "OBJ-8")
@each_kind
def test_lists(kind, config, store, status, prefix, subjects):
    names = [prefix + "a", "ORDERS", "X_k", prefix + "m"]
    mirror = stream(prefix, "m", mirror={"name": prefix + "a"})
    infos = [stream(prefix, "a"), {"config": {"name": "ORDERS"}}, mirror]
    stage, buckets = make(kind, {"streams": names, "total": 4}, {"streams": infos, "total": 3})
    assert stage.run(buckets.names()) == ["a", "m"]
    found = stage.run(buckets.statuses())
    assert [type(each) for each in found] == [status] * 2
    assert [each.bucket for each in found] == ["a", "m"]


@pytest.mark.rule("CALL-4")
def test_lists_name_the_buckets_that_they_lack():
    lacking = {"missing": ["KV_m", "ORDERS"], "offline": {"KV_o": "too new", "OTHER": "too new"}}
    answer = {"streams": [stream("KV_")], "total": 1, **lacking}
    stage, buckets = make(KeyValueManager, answer)
    found = stage.run(buckets.statuses())
    assert (found.missing, found.offline) == (["m"], {"o": "too new"})


# What nats-py 2.16 makes, and what nats.js makes; both are read as buckets.
THERE = {
    **{"name": "KV_b", "subjects": ["$KV.b.>"], "max_msgs_per_subject": 1, "max_age": 0},
    **{"storage": "file", "num_replicas": 1, "max_bytes": -1, "max_msg_size": -1},
    **{"allow_rollup_hdrs": True, "allow_msg_ttl": True, "deny_delete": False, "future": 7},
    "metadata": {"_nats.level": "5", "a": "b"},
}
EXISTING = [
    # the given fields, those that differ
    ({}, ()),
    ({"history": 0}, ()),
    ({"history": 1, "ttl": 0, "replicas": 1, "max_bytes": 0, "max_value_size": -1}, ()),
    ({"metadata": {"a": "b"}, "storage": "file", "compression": False}, ()),
    ({"history": 5}, ("history",)),
    ({"ttl": 60.0, "history": 1, "replicas": 3}, ("ttl", "replicas")),
    ({"metadata": {}}, ("metadata",)),
    ({"compression": True}, ("compression",)),
    ({"mirror": {"name": "a"}}, ("mirror",)),
]


@pytest.mark.rule("KV-15", "KV-47")
@pytest.mark.parametrize(("fields", "differing"), EXISTING)
def test_a_bucket_that_exists(fields, differing):
    stage, buckets = make(KeyValueManager, IN_USE, {"config": THERE})
    call = buckets.create(KeyValueConfig(bucket="b", **fields), {})
    if differing:
        with pytest.raises(BucketExists) as caught:
            stage.run(call)
        assert caught.value.different == differing
    else:
        assert stage.run(call).bucket == "b"
    assert [subject for subject, _ in stage.asked] == [
        "$JS.API.STREAM.CREATE.KV_b",
        "$JS.API.STREAM.INFO.KV_b",
    ]


MIRRORS = [
    # the mirror that is there, whether that is the one that was given
    ({"name": "KV_a"}, True),
    ({"name": "KV_c"}, False),
]


@pytest.mark.rule("KV-47")
@pytest.mark.parametrize(("mirror", "same"), MIRRORS)
def test_a_mirror_that_exists(mirror, same):
    there = {**THERE, "subjects": [], "mirror": mirror}
    stage, buckets = make(KeyValueManager, IN_USE, {"config": there})
    call = buckets.create(KeyValueConfig(bucket="b", mirror={"name": "a"}), {})
    if same:
        stage.run(call)
    else:
        with pytest.raises(BucketExists, match=": mirror"):
            stage.run(call)


@pytest.mark.rule("KV-47")
def test_a_stream_with_other_subjects():
    answers = (IN_USE, {"config": {**THERE, "subjects": ["x"]}})
    stage, buckets = make(KeyValueManager, *answers)
    with pytest.raises(BucketExists, match=": subjects"):
        stage.run(buckets.create(KeyValueConfig(bucket="b"), {}))


@pytest.mark.rule("KV-14", "KV-46")
@pytest.mark.parametrize("call", ["update", "create_or_update"])
def test_an_update_keeps_the_rest(call):
    stage, buckets = make(KeyValueManager, {"config": THERE}, {"config": THERE})
    config = KeyValueConfig.of_stream(StreamConfig.from_json(THERE))
    config.history = 10
    config.description = "d"
    stage.run(getattr(buckets, call)(config, {}))
    [_, (subject, body)] = stage.asked
    assert subject == "$JS.API.STREAM.UPDATE.KV_b"
    assert (body["allow_msg_ttl"], body["future"], body["description"]) == (True, 7, "d")
    assert (body["max_msgs_per_subject"], body["deny_delete"]) == (10, True)


@pytest.mark.rule("KV-46")
def test_an_update_resets_the_fields_of_a_bucket():
    there = {**THERE, "max_age": 60 * 10**9, "description": "d", "sources": [{"name": "KV_a"}]}
    stage, buckets = make(KeyValueManager, {"config": there}, {"config": there})
    stage.run(buckets.update(KeyValueConfig(bucket="b"), {}))
    body = stage.asked[1][1]
    assert [
        name for name in ("max_age", "description", "sources", "metadata") if name in body
    ] == []


SECOND = 10**9
SEALED = {"sealed": True, "deny_delete": True, "deny_purge": True}

# fmt: off
DERIVED = [  # the stream, TTL, fields of the update
    ({"duplicate_window": 120 * SECOND}, 60, {"max_age": 60 * SECOND}),
    ({"duplicate_window": 120 * SECOND}, 0, {}),
    ({"duplicate_window": 50 * SECOND, "max_age": 50 * SECOND}, 200, {"max_age": 200 * SECOND}),
    ({"duplicate_window": 50 * SECOND}, 40, {"max_age": 40 * SECOND}),
    ({"duplicate_window": 50 * SECOND}, 60,
     {"max_age": 60 * SECOND, "duplicate_window": 50 * SECOND}),
    ({"duplicate_window": 50 * SECOND}, 0, {"duplicate_window": 50 * SECOND}),
]
# fmt: on


@pytest.mark.rule("KV-46", "OBJ-7")
@pytest.mark.parametrize(("there", "ttl", "fields"), DERIVED)
def test_a_window_that_follows_from_the_ttl(there, ttl, fields):
    answer = stream("OBJ_", **there)
    stage, buckets = make(ObjectStoreManager, answer, answer)
    stage.run(buckets.update(ObjectStoreConfig(bucket="b", ttl=ttl), {}))
    body = stage.asked[1][1]
    assert {name: body[name] for name in ("max_age", "duplicate_window") if name in body} == fields


@pytest.mark.rule("KV-46", "OBJ-7")
@each_manager
def test_an_update_of_a_sealed_bucket(kind):
    there = stream(kind.PREFIX, **SEALED)
    stage, buckets = make(kind, there, there)
    stage.run(buckets.update(kind.CONFIG(bucket="b", description="d"), {}))
    body = stage.asked[1][1]
    assert {name: body[name] for name in SEALED} == SEALED
    assert body["allow_rollup_hdrs"] is False


@pytest.mark.rule("KV-15", "KV-46")
def test_updates_of_a_bucket_that_does_not_exist():
    config = KeyValueConfig(bucket="b")
    for answers in ([NO_STREAM], [{"config": THERE}, NO_STREAM]):
        stage, buckets = make(KeyValueManager, *answers)
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(buckets.update(config, {}))
    stage, buckets = make(KeyValueManager, NO_STREAM, NO_STREAM, {"config": THERE})
    assert stage.run(buckets.create_or_update(config, {})).bucket == "b"


def test_a_kind_of_bucket_says_how_it_is_opened():
    _, buckets = make(BucketManager)
    with pytest.raises(NotImplementedError):
        buckets.open(None)
