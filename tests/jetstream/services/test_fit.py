from __future__ import annotations

import json

import pytest

from jetstream.services.fit import fit
from jetstream.services.responses import encode

ENDPOINT = {"name": "e", "subject": "e", "metadata": {"k": "v" * 100}}
INFO = {"name": "s", "metadata": {"m": "w" * 200}, "description": "d" * 50, "endpoints": []}


def info(count):
    endpoints = [dict(ENDPOINT, name="e%d" % number) for number in range(count)]
    return dict(INFO, endpoints=endpoints)


def size(response):
    return len(encode(response))


def plain(count):
    """Return an INFO without details, metadata and description."""
    endpoints = [dict(each, metadata={}) for each in info(count)["endpoints"]]
    return dict(INFO, metadata={}, description="", endpoints=endpoints)


SIZES = [  # the room, what is left out, the number of endpoints
    (size(info(3)), "", 3),
    (size(info(3)) - 1, "data and metadata of endpoints", 3),
    (size(dict(plain(3), metadata=INFO["metadata"], description="d" * 50)), "data and me", 3),
    (size(plain(3)) + 100, "metadata and description", 3),
    (size(plain(3)), "metadata and description", 3),
    (size(plain(3)) - 1, "endpoints", 2),
    (size(plain(2)), "endpoints", 2),
    (size(plain(2)) - 1, "endpoints", 1),
    (size(plain(0)), "endpoints", 0),
    (size(plain(0)) - 1, "everything", None),
]


@pytest.mark.rule("D-SERVICE-27")
@pytest.mark.parametrize(("most", "left_out", "endpoints"), SIZES)
def test_info(most, left_out, endpoints):
    response = info(3)
    raw, whole, missing = fit(response, most)
    assert (whole, response) == (size(info(3)), info(3))
    assert missing.startswith(left_out)
    assert bool(missing) is bool(left_out)
    if endpoints is None:
        assert raw is None
        return
    assert len(raw) <= most
    found = json.loads(raw)
    assert [each["name"] for each in found["endpoints"]] == ["e0", "e1", "e2"][:endpoints]
    if left_out.startswith("data"):
        assert found["metadata"] == INFO["metadata"]
        assert found["endpoints"][0]["metadata"] == {}


@pytest.mark.rule("D-SERVICE-27")
def test_stats_lose_their_data_first():
    endpoints = [{"name": "a", "data": "x" * 1000}, {"name": "b"}]
    raw, whole, missing = fit({"metadata": {}, "endpoints": endpoints}, 200)
    assert json.loads(raw)["endpoints"] == [{"name": "a"}, {"name": "b"}]
    assert (whole > 1000, missing) == (True, "data and metadata of endpoints")


@pytest.mark.rule("D-SERVICE-27")
def test_ping_has_only_metadata_to_lose():
    response = {"name": "s", "metadata": {"m": "w" * 200}}
    assert fit(response, 100)[0] == b'{"name":"s","metadata":{}}'
    assert fit(response, 10)[::2] == (None, "everything")
