from __future__ import annotations

import hashlib
import json

import pytest

from jetstream.errors import InvalidResponse
from jetstream.objects.info import (
    ObjectInfo,
    ObjectLink,
    ObjectMeta,
    ObjectMetaOptions,
    read_info,
    same_digest,
    write_digest,
)
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue
from natsproto.wire.headers import Headers

TIME = Timestamp(7)
LEAST = {"name": "o", "bucket": "b", "nuid": "n", "size": 0, "chunks": 0}
# The example of ADR-20, but for its metadata, which is a map.
EXAMPLE = {
    "name": "object-name",
    "description": "object-desc",
    "metadata": {"owner": "infra"},
    "headers": {"key1": ["foo"], "key2": ["bar", "baz"]},
    "options": {
        "link": {"bucket": "link-to-bucket", "name": "link-to-name"},
        "max_chunk_size": 8196,
    },
    "bucket": "object-bucket",
    "nuid": "CkuyLEX4z2hbyjj1aWCfiH",
    "size": 344000,
    "chunks": 42,
    "digest": "SHA-256=abcdefghijklmnopqrstuvwxyz=",
    "deleted": True,
}


@pytest.mark.rule("OBJ-10")
@pytest.mark.parametrize("told", [LEAST, EXAMPLE, {**LEAST, "newer": [1]}])
def test_an_info_survives_encoding_and_decoding(told):
    info = read_info(json.dumps(told).encode(), TIME)
    assert info.mtime == TIME
    assert json.loads(info.encode()) == told
    assert json.loads(info.copy().encode()) == told


def test_the_example():
    info = read_info(json.dumps(EXAMPLE).encode(), TIME)
    assert (info.name, info.description, info.size, info.chunks) == (
        *("object-name", "object-desc", 344000, 42),
    )
    assert info.headers == {"key1": ["foo"], "key2": ["bar", "baz"]}
    assert info.link == ObjectLink(bucket="link-to-bucket", name="link-to-name")
    assert info.options == ObjectMetaOptions(link=info.link, max_chunk_size=8196)
    assert info.deleted
    assert read_info(json.dumps(LEAST).encode(), TIME).link is None


@pytest.mark.rule("OBJ-11")
@pytest.mark.parametrize("mtime", ["0001-01-01T00:00:00Z", "2026-11-16T10:00:00.5+00:00", "odd", 7])
def test_a_stored_mtime_is_ignored(mtime):
    info = read_info(json.dumps({**LEAST, "mtime": mtime}).encode(), TIME)
    assert info.mtime == TIME
    assert json.loads(info.encode()) == LEAST


@pytest.mark.rule("OBJ-34")
def test_an_empty_digest_is_not_written():
    info = read_info(json.dumps(EXAMPLE).encode(), TIME)
    info.digest = ""
    assert "digest" not in json.loads(info.encode())


@pytest.mark.rule("OBJ-42")
@pytest.mark.parametrize("more", [{}, {"nuid": ""}, {"size": 0, "chunks": 0}, {"deleted": True}])
def test_a_link_without_a_nuid(more):
    link = {"bucket": "b", "name": "a"}
    raw = {"name": "ref", "bucket": "b", "options": {"link": link}, **more}
    info = read_info(json.dumps(raw).encode(), TIME)
    assert (info.nuid, info.chunks, info.link.name) == ("", 0, "a")


@pytest.mark.rule("OBJ-16")
@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"{",
            b"[]",
            b"7",
            b'{"name":7,"nuid":"n"}',
            b'{"nuid":"n"}',
            b'{"name":"o","size":1}',
        ),
        *(b'{"name":"o","chunks":1}', b'{"name":"o","nuid":"","size":7,"chunks":1}'),
        *(b'{"name":"o","nuid":"n","headers":7}', b'{"name":"o","nuid":"n","headers":{"a":7}}'),
        *(b'{"name":"o","nuid":"%s"}' % nuid for nuid in (b">", b"*", b"a.>", b"a b", b"a..b")),
    ],
)
def test_invalid_infos(data):
    with pytest.raises(InvalidResponse):
        read_info(data, TIME)


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"A": "1", "B": ["2", "3"]}, {"A": ["1"], "B": ["2", "3"]}),
        (Headers([("A", "1"), ("A", "2")]), {"A": ["1", "2"]}),
        ([("A", "1")], {"A": ["1"]}),
        ({}, {}),
    ],
)
def test_headers(given, headers):
    assert ObjectMeta(name="o", headers=given).headers == headers
    assert ObjectMeta(name="o").headers == {}


@pytest.mark.parametrize("given", [7, {"a b": "c"}, {"a": 7}, {"a": "b\n"}])
def test_invalid_headers(given):
    with pytest.raises(InvalidValue, match="are not headers"):
        ObjectMeta(name="o", headers=given)


def test_headers_of_other_clients_are_read():
    told = {**LEAST, "headers": {"a b": "c", "d": ["e"]}}
    assert read_info(json.dumps(told).encode(), TIME).headers == {"a b": ["c"], "d": ["e"]}


EMPTY = hashlib.sha256(b"").digest()


@pytest.mark.rule("OBJ-23")
def test_digests():
    assert write_digest(EMPTY) == "SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU="


@pytest.mark.rule("D-OBJ-30")
@pytest.mark.parametrize(
    ("digest", "same"),
    [
        ("SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", True),
        ("SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", True),
        ("sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", True),
        ("", True),
        ("SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV=", False),
        ("SHA-256=", False),
        ("SHA-512=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", False),
        ("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", False),
    ],
)
def test_comparison_of_digests(digest, same):
    assert same_digest(digest, EMPTY) is same


def test_meta_keeps_the_fields_that_users_set():
    meta = ObjectMeta(name="o", options={"link": {"bucket": "b"}})
    assert meta.options.link.name == ""
    assert ObjectInfo(name="o").size == 0
    with pytest.raises(InvalidValue):
        ObjectMeta(nam="o")
