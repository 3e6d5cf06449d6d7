"""What buckets of both kinds have in common."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.config import StreamConfig
from jetstream.errors import BucketExists, BucketNotFound, SubjectOverlap
from jetstream.kv.bucket import (
    BucketStatus,
    BucketStreams,
    check_bucket_name,
    check_chars,
    check_given,
    check_there,
    read_message,
    read_stream,
    write_stream,
)
from jetstream.kv.config import GOVERNED, KeyValueConfig
from jetstream.schema.info import StreamInfo
from natsproto.errors import InvalidName, InvalidValue
from tests.jetstream.buckets import IN_USE, NO_STREAM, OVERLAP, TIME
from tests.jetstream.support import NOBODY, Stage, Status

CONFIG = {"name": "B_b", "max_age": 60 * 10**9, "compression": "s2", "metadata": {"a": "b"}}
PLACE = {"Nats_Subject": "s.a", "Nats_Sequence": 7, "Nats_Time_Stamp": TIME}
FOUND = Status("", b"v", Nats_Stream="S", **PLACE)
BY_API = {"message": {"subject": "s.a", "seq": 7, "time": TIME, "data": "dg=="}}
TOLD = {**CONFIG, "description": "d", "storage": "memory", "num_replicas": 3}


def make(*answers):
    stage = Stage(*answers)
    js = JetStream(stage.client)
    return stage, BucketStreams(js, js._api, "B_")


@pytest.mark.rule("KV-1", "OBJ-1")
@pytest.mark.parametrize("name", [7, None, "", "a.b", "a b", "ä"])
def test_names_that_are_none(name):
    with pytest.raises(InvalidName, match="KV-1"):
        check_bucket_name(name, "KV-1")
    assert check_bucket_name("aZ09-_", "KV-1") == "aZ09-_"


def test_what_is_told_of_a_name():
    with pytest.raises(InvalidName, match=r"key 'a\+' contains '\+': there are letters only"):
        check_chars("key", "a+", "a", "letters", "KV-2")


@pytest.mark.rule("KV-14", "OBJ-6")
def test_what_is_given_as_a_configuration():
    for fine in (None, KeyValueConfig(bucket="b")):
        check_given(KeyValueConfig, fine, "KV-14")
    table = [
        (("b", "c"), r"\('b', 'c'\) is not of type KeyValueConfig \(KV-14\)"),
        ({"bucket": "b"}, r"{'bucket': 'b'} is not of type KeyValueConfig \(KV-14\)"),
        ("b", r"'b' is not of type KeyValueConfig; a name is a keyword: bucket='b' \(KV-14\)"),
    ]
    for given, text in table:
        with pytest.raises(InvalidValue, match="^%s$" % text):
            check_given(KeyValueConfig, given, "KV-14")


def test_fields_that_are_set_are_copied():
    same = (("ttl", "max_age"), ("replicas", "num_replicas"))
    stream = StreamConfig(name="S")
    write_stream(KeyValueConfig(bucket="b", ttl=60, max_bytes=7), stream, same)
    assert stream.to_json() == StreamConfig(name="S", max_age=60).to_json()
    write_stream(KeyValueConfig(bucket="b", compression=True, max_bytes=7), stream)
    assert stream == StreamConfig(name="S", max_age=60, compression="s2", max_bytes=7)


@pytest.mark.parametrize("compression", ["s2", "none", ""])
def test_fields_of_a_stream_are_read(compression):
    config = KeyValueConfig()
    stream = StreamConfig.from_json({**CONFIG, "compression": compression, "max_msg_size": 7})
    read_stream(config, stream, "B_")
    assert config == KeyValueConfig(
        bucket="b", ttl=60, compression=compression == "s2", metadata={"a": "b"}
    )


READS = [
    # sequence, direct; answers; what is asked for
    (None, True, [FOUND], ["DIRECT.GET.S.s.a"]),
    (None, True, [NOBODY, BY_API], ["DIRECT.GET.S.s.a", "STREAM.MSG.GET.S"]),
    (None, False, [BY_API], ["STREAM.MSG.GET.S"]),
    (7, True, [FOUND], ["DIRECT.GET.S"]),
    (7, True, [NOBODY, BY_API], ["DIRECT.GET.S", "STREAM.MSG.GET.S"]),
    (7, False, [BY_API], ["STREAM.MSG.GET.S"]),
]


@pytest.mark.rule("KV-26", "OBJ-15")
@pytest.mark.parametrize(("seq", "direct", "answers", "asked"), READS)
def test_a_message_is_read(seq, direct, answers, asked):
    stage = Stage(*answers)
    api = JetStream(stage.client)._api
    msg = stage.run(read_message(api, "S", "s.a", seq=seq, direct=direct))
    assert (msg.subject, msg.seq, msg.data) == ("s.a", 7, b"v")
    body = {"last_by_subj": "s.a"} if seq is None else {"seq": 7}
    bodies = [None if subject.endswith(".s.a") else body for subject in asked]
    assert stage.asked == [("$JS.API." + each, body) for each, body in zip(asked, bodies)]


@pytest.mark.rule("KV-15", "OBJ-7")
@pytest.mark.parametrize(
    ("call", "given", "verb", "error"),
    [
        ("find", "B_b", "INFO", BucketNotFound),
        ("delete", "B_b", "DELETE", BucketNotFound),
    ],
)
def test_streams_as_buckets(call, given, verb, error):
    stage, streams = make({"config": CONFIG, "success": True}, NO_STREAM, OVERLAP)
    found = stage.run(getattr(streams, call)(given))
    assert found is None if call == "delete" else found.name == "B_b"
    with pytest.raises(error) as caught:
        stage.run(getattr(streams, call)(given))
    assert caught.value.bucket == "b"
    with pytest.raises(SubjectOverlap):  # whatever else is wrong is told as it is
        stage.run(getattr(streams, call)(given))
    assert [subject for subject, _ in stage.asked] == ["$JS.API.STREAM.%s.B_b" % verb] * 3


# What nats-py 2.16 makes, and what nats.js makes; both are read as buckets.
THERE = {
    **{"name": "KV_b", "subjects": ["$KV.b.>"], "max_msgs_per_subject": 1, "max_age": 0},
    **{"storage": "file", "num_replicas": 1, "max_bytes": -1, "max_msg_size": -1},
    **{"allow_rollup_hdrs": True, "allow_msg_ttl": True, "deny_delete": False, "future": 7},
    "metadata": {"_nats.level": "5", "a": "b"},
}
EXISTING = [
    # what is given, what is different about it
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
    stage, streams = make(IN_USE, {"config": THERE})
    given = KeyValueConfig(bucket="b", **fields)
    call = streams.create(given.to_stream(), given, KeyValueConfig.of_stream)
    if differing:
        with pytest.raises(BucketExists) as caught:
            stage.run(call)
        assert caught.value.different == differing
    else:
        assert stage.run(call).name == "KV_b"
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
    stage, streams = make(IN_USE, {"config": there})
    given = KeyValueConfig(bucket="b", mirror={"name": "a"})
    call = streams.create(given.to_stream(), given, KeyValueConfig.of_stream)
    if same:
        stage.run(call)
    else:
        with pytest.raises(BucketExists, match=": mirror"):
            stage.run(call)


@pytest.mark.rule("KV-47")
def test_a_stream_that_takes_something_else():
    stage, streams = make(IN_USE, {"config": {**THERE, "subjects": ["x"]}})
    given = KeyValueConfig(bucket="b")
    with pytest.raises(BucketExists, match=": subjects"):
        stage.run(streams.create(given.to_stream(), given, KeyValueConfig.of_stream))


@pytest.mark.rule("KV-14", "KV-46")
@pytest.mark.parametrize("call", ["update", "create_or_update"])
def test_an_update_keeps_the_rest(call):
    stage, streams = make({"config": THERE}, {"config": THERE})
    config = KeyValueConfig.of_stream(StreamConfig.from_json(THERE))
    config.history = 10
    config.description = "d"
    stage.run(getattr(streams, call)(config.to_stream(), GOVERNED))
    [_, (subject, body)] = stage.asked
    assert subject == "$JS.API.STREAM.UPDATE.KV_b"
    assert (body["allow_msg_ttl"], body["future"], body["description"]) == (True, 7, "d")
    assert (body["max_msgs_per_subject"], body["deny_delete"]) == (10, True)


@pytest.mark.rule("KV-46")
def test_an_update_resets_what_a_bucket_says():
    there = {**THERE, "max_age": 60 * 10**9, "description": "d", "sources": [{"name": "KV_a"}]}
    stage, streams = make({"config": there}, {"config": there})
    stage.run(streams.update(KeyValueConfig(bucket="b").to_stream(), GOVERNED))
    body = stage.asked[1][1]
    assert [
        name for name in ("max_age", "description", "sources", "metadata") if name in body
    ] == []


@pytest.mark.rule("KV-15", "KV-46")
def test_updates_of_what_is_not_there():
    config = KeyValueConfig(bucket="b").to_stream()
    for answers in ([NO_STREAM], [{"config": THERE}, NO_STREAM]):
        stage, streams = make(*answers)
        streams._prefix = "KV_"
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(streams.update(config, GOVERNED))
    stage, streams = make(NO_STREAM, NO_STREAM, {"config": THERE})
    assert stage.run(streams.create_or_update(config, GOVERNED)).name == "KV_b"


@pytest.mark.rule("KV-48", "OBJ-44")
@pytest.mark.parametrize(
    ("answer", "gone"), [(NO_STREAM, True), ({"config": CONFIG}, False), (NOBODY, False)]
)
def test_whether_it_is_there(answer, gone):
    stage, streams = make({"config": CONFIG}, answer)
    stream = stage.run(streams.find("B_b"))
    if gone:
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(check_there(stream, "b"))
    else:
        stage.run(check_there(stream, "b"))


@pytest.mark.rule("KV-17", "OBJ-8")
def test_lists():
    infos = [{"config": CONFIG}, {"config": {"name": "ORDERS"}}]
    stage, streams = make(
        {"streams": ["B_b", "ORDERS", "B_"], "total": 3}, {"streams": infos, "total": 2}
    )
    assert stage.run(streams.names()) == ["b", ""]
    assert [info.config.name for info in stage.run(streams.infos())] == ["B_b"]


@pytest.mark.rule("CALL-4")
def test_lists_name_the_buckets_that_they_lack():
    lacking = {"missing": ["B_m", "ORDERS"], "offline": {"B_o": "too new", "OTHER": "too new"}}
    stage, streams = make({"streams": [{"config": CONFIG}], "total": 1, **lacking})
    found = stage.run(streams.infos())
    assert (found.missing, found.offline) == (["m"], {"o": "too new"})


def test_a_status():
    class Status(BucketStatus):
        PREFIX = "B_"

    status = Status(StreamInfo.from_json({"config": TOLD}))
    assert (status.bucket, status.ttl, status.is_compressed) == ("b", 60.0, True)
    assert (status.backing_store, status.metadata) == ("JetStream", {"a": "b"})
    assert (status.description, status.storage, status.replicas) == ("d", "memory", 3)
    plain = Status(StreamInfo.from_json({"config": {"name": "B_c"}}))
    assert (plain.bucket, plain.ttl, plain.is_compressed) == ("c", 0.0, False)
