from __future__ import annotations

import base64

import pytest

from jetstream.objects.names import (
    check_bucket,
    chunks_of,
    encode_name,
    encode_url,
    front_of,
    infos_of,
    stream_of,
)
from natsproto.errors import InvalidName
from tests.jetstream.buckets import NO_BUCKETS, check_no_bucket


@pytest.mark.rule("OBJ-4")
def test_names_of_streams_and_subjects():
    assert stream_of("my-Bucket_1") == "OBJ_my-Bucket_1"
    assert (chunks_of("b"), infos_of("b")) == ("$O.b.C.", "$O.b.M.")


@pytest.mark.rule("OBJ-1")
@pytest.mark.parametrize("bucket", NO_BUCKETS)
def test_invalid_names_of_buckets(bucket):
    check_no_bucket(bucket, (check_bucket, stream_of), "OBJ-1")


@pytest.mark.rule("OBJ-2")
@pytest.mark.parametrize("name", ["a", "a.b > *", "é", "\0\r\n", "~~~???>>>", "x" * 1000])
def test_names_of_objects(name):
    token = encode_name(name)
    assert base64.urlsafe_b64decode(token) == name.encode()
    assert len(token) % 4 == 0
    assert not set(token) & set("+/.*> \n")


@pytest.mark.rule("OBJ-2")
@pytest.mark.parametrize("name", ["", "\ud800", 7, None, b"a"])
def test_invalid_names_of_objects(name):
    with pytest.raises(InvalidName) as caught:
        encode_name(name)
    assert caught.value.rule == "OBJ-2"


@pytest.mark.rule("OBJ-3")
@pytest.mark.parametrize(
    ("prefix", "front"), [("$JS.API", ""), ("$JS.hub.API", ""), ("fromA", "fromA.")]
)
def test_prefixes(prefix, front):
    assert front_of(prefix) == front


def test_the_alphabet():
    assert encode_url(b"\xfb\xff\xfe") == "-__-"
    assert encode_url(b"") == ""
