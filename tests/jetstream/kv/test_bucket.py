"""Functions that buckets of both kinds share."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.config import StreamConfig
from jetstream.errors import BucketNotFound
from jetstream.kv.bucket import (
    BucketStatus,
    check_bucket_name,
    check_chars,
    check_given,
    check_there,
    read_message,
    read_stream,
    write_stream,
)
from jetstream.kv.config import KeyValueConfig
from jetstream.schema.info import StreamInfo
from natsproto.errors import InvalidName, InvalidValue
from tests.jetstream.buckets import NO_STREAM, TIME
from tests.jetstream.support import NOBODY, Stage, Status

CONFIG = {"name": "B_b", "max_age": 60 * 10**9, "compression": "s2", "metadata": {"a": "b"}}
PLACE = {"Nats_Subject": "s.a", "Nats_Sequence": 7, "Nats_Time_Stamp": TIME}
FOUND = Status("", b"v", Nats_Stream="S", **PLACE)
BY_API = {"message": {"subject": "s.a", "seq": 7, "time": TIME, "data": "dg=="}}
INFO = {**CONFIG, "description": "d", "storage": "memory", "num_replicas": 3}


@pytest.mark.rule("KV-1", "OBJ-1")
@pytest.mark.parametrize("name", [7, None, "", "a.b", "a b", "ä"])
def test_invalid_names(name):
    with pytest.raises(InvalidName, match="KV-1"):
        check_bucket_name(name, "KV-1")
    assert check_bucket_name("aZ09-_", "KV-1") == "aZ09-_"


def test_error_text_of_an_invalid_name():
    with pytest.raises(InvalidName, match=r"key 'a\+' contains '\+'; allowed are letters"):
        check_chars("key", "a+", "a", "letters", "KV-2")


@pytest.mark.rule("KV-14", "D-OBJ-6")
def test_type_of_the_configuration_is_checked():
    for fine in (None, KeyValueConfig(bucket="b")):
        check_given(KeyValueConfig, fine, "KV-14")
    table = [
        (("b", "c"), r"\('b', 'c'\) is not of type KeyValueConfig \(KV-14\)"),
        ({"bucket": "b"}, r"{'bucket': 'b'} is not of type KeyValueConfig \(KV-14\)"),
        ("b", r"'b' is not of type KeyValueConfig; pass a name as a keyword: bucket='b' \(KV-14\)"),
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
    # sequence, direct; answers; the requests
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


@pytest.mark.rule("D-KV-48", "D-OBJ-44")
@pytest.mark.parametrize(
    ("answer", "gone"), [(NO_STREAM, True), ({"config": CONFIG}, False), (NOBODY, False)]
)
def test_check_whether_a_bucket_exists(answer, gone):
    stage = Stage({"config": CONFIG}, answer)
    stream = stage.run(JetStream(stage.client).stream("B_b"))
    if gone:
        with pytest.raises(BucketNotFound, match="'b'"):
            stage.run(check_there(stream, "b"))
    else:
        stage.run(check_there(stream, "b"))


def test_a_status():
    class Status(BucketStatus):
        PREFIX = "B_"

    status = Status(StreamInfo.from_json({"config": INFO}))
    assert (status.bucket, status.ttl, status.is_compressed) == ("b", 60.0, True)
    assert (status.backing_store, status.metadata) == ("JetStream", {"a": "b"})
    assert (status.description, status.storage, status.replicas) == ("d", "memory", 3)
    plain = Status(StreamInfo.from_json({"config": {"name": "B_c"}}))
    assert (plain.bucket, plain.ttl, plain.is_compressed) == ("c", 0.0, False)
