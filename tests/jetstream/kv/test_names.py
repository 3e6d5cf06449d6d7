from __future__ import annotations

import pytest

from jetstream.kv.names import check_bucket, check_filters, check_key, prefix_of, stream_of
from natsproto.errors import InvalidName, InvalidValue
from tests.jetstream.buckets import NO_BUCKETS, check_no_bucket


@pytest.mark.rule("KV-5")
def test_names_of_streams_and_subjects():
    assert (stream_of("my-Bucket_1"), prefix_of("b")) == ("KV_my-Bucket_1", "$KV.b.")


@pytest.mark.rule("KV-1")
@pytest.mark.parametrize("bucket", NO_BUCKETS)
def test_invalid_names_of_buckets(bucket):
    check_no_bucket(bucket, (check_bucket, stream_of), "KV-1")


@pytest.mark.rule("KV-2")
@pytest.mark.parametrize("key", ["a", "a.b.c", "A-z/0=_", "_x", "a._kv", "=", "-./"])
def test_keys(key):
    assert check_key(key) == check_key(key, write=True) == key


@pytest.mark.rule("KV-2")
@pytest.mark.parametrize(
    "key", ["", ".", ".a", "a.", "a..b", "a b", "a*", "*", ">", "a.>", "é", "a\n", "$x", 7, b"a"]
)
def test_invalid_keys(key):
    with pytest.raises(InvalidName, match="key") as caught:
        check_key(key)
    assert caught.value.rule == "KV-2"


@pytest.mark.rule("KV-3")
def test_reserved_keys():
    assert check_key("_kv.a") == "_kv.a"
    with pytest.raises(InvalidName, match="reserved for internal use: '_kvx' starts with _kv"):
        check_key("_kvx", write=True)


@pytest.mark.rule("KV-4")
@pytest.mark.parametrize(
    ("given", "filters"),
    [
        (">", [">"]),
        ("a.*.b", ["a.*.b"]),
        ("*.>", ["*.>"]),
        (["a", "b.>"], ["a", "b.>"]),
        (("a",), ["a"]),
        ("_kv.>", ["_kv.>"]),
    ],
)
def test_filters(given, filters):
    assert check_filters(given) == filters


@pytest.mark.rule("KV-4")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", InvalidName),
        (["a", ""], InvalidName),
        ("a.", InvalidName),
        ("a..b", InvalidName),
        (">.a", InvalidName),
        ("a*", InvalidName),
        ("a.b>", InvalidName),
        ("a b", InvalidName),
        ("é", InvalidName),
        ([7], InvalidName),
        ([], InvalidValue),
        (None, InvalidValue),
        ({"a": 1}, InvalidValue),
    ],
)
def test_invalid_filters(given, error):
    with pytest.raises(error) as caught:
        check_filters(given)
    assert caught.value.rule == "KV-4"
