from __future__ import annotations

import pickle

import pytest

from jetstream import errors
from jetstream.errors import api as api_errors
from jetstream.errors import kv as kv_errors
from jetstream.kv.entry import KeyValueEntry
from jetstream.schema.timestamp import Timestamp

REFUSAL = api_errors.WrongLastSequence(400, 10071, "wrong last sequence: 7")
CONSTANT = api_errors.WrongLastSequence(400, 10164, "wrong last sequence")
MARKER = KeyValueEntry("b", "k", b"", 7, Timestamp(0), 0, "DEL")

ERRORS = [
    # error, what else it is, its code and text, what it has
    (
        kv_errors.BucketNotFound("b"),
        api_errors.StreamNotFound,
        10059,
        "bucket 'b' does not exist (404, 10059)",
        {"bucket": "b"},
    ),
    (
        kv_errors.BucketExists("b"),
        api_errors.StreamNameInUse,
        10058,
        "bucket 'b' already exists with a different configuration (400, 10058)",
        {"bucket": "b", "different": ()},
    ),
    (
        kv_errors.BucketExists("b", ("history", "ttl")),
        api_errors.StreamNameInUse,
        10058,
        "bucket 'b' already exists with a different configuration (400, 10058): history; ttl",
        {"bucket": "b", "different": ("history", "ttl")},
    ),
    (
        kv_errors.KeyNotFound("b", "k"),
        api_errors.MessageNotFound,
        10037,
        "key 'k' is not in bucket 'b' (404, 10037)",
        {"bucket": "b", "key": "k", "revision": None},
    ),
    (
        kv_errors.KeyNotFound("b", "k", 7),
        api_errors.MessageNotFound,
        10037,
        "key 'k' with revision 7 is not in bucket 'b' (404, 10037)",
        {"revision": 7},
    ),
    (
        kv_errors.KeyDeleted(MARKER),
        kv_errors.KeyNotFound,
        10037,
        "key 'k' of bucket 'b' is deleted: DEL in revision 7",
        {"bucket": "b", "key": "k", "revision": 7, "operation": "DEL", "entry": MARKER},
    ),
    (
        kv_errors.KeyExists("b", "k", REFUSAL),
        api_errors.WrongLastSequence,
        10071,
        "key 'k' already exists in bucket 'b': wrong last sequence: 7 (400, 10071)",
        {"bucket": "b", "key": "k", "last_seq": 7},
    ),
    (
        kv_errors.KeyExists("b", "k", CONSTANT),
        api_errors.WrongLastSequence,
        10164,
        "key 'k' already exists in bucket 'b': wrong last sequence (400, 10164)",
        {"last_seq": None},
    ),
    (
        kv_errors.WrongLastRevision("b", "k", 5, REFUSAL),
        api_errors.WrongLastSequence,
        10071,
        "key 'k' of bucket 'b' is not at revision 5: wrong last sequence: 7 (400, 10071)",
        {"bucket": "b", "key": "k", "last": 5, "last_seq": 7},
    ),
]


@pytest.mark.parametrize(("error", "kind", "code", "text", "has"), ERRORS)
def test_errors_and_their_copies(error, kind, code, text, has):
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(each, kind)
        assert (each.err_code, str(each)) == (code, text)
        assert {name: getattr(each, name) for name in has} == has


@pytest.mark.rule("KV-16")
def test_not_a_bucket():
    error = kv_errors.NotABucket("b")
    assert str(error) == "stream 'KV_b' is not a bucket: max_msgs_per_subject is not set"
    assert isinstance(error, errors.JetStreamError)
    assert pickle.loads(pickle.dumps(error)).bucket == "b"


@pytest.mark.rule("D-KVCODEC-7")
def test_a_codec_error_keeps_the_stored_entry():
    for each in (error := kv_errors.CodecError("text", MARKER), pickle.loads(pickle.dumps(error))):
        assert isinstance(each, errors.JetStreamError)
        assert (str(each), each.entry) == ("text", MARKER)
    assert kv_errors.CodecError("text").entry is None


def test_they_are_public():
    for name, value in vars(kv_errors).items():
        if getattr(value, "__module__", "") == kv_errors.__name__:
            assert getattr(errors, name) is value, name
            assert name in errors.__doc__
