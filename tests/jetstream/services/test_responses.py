from __future__ import annotations

import json

import pytest

from jetstream.errors import InvalidResponse
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import TypeMismatch
from jetstream.services import responses
from jetstream.services.counters import Counters
from jetstream.services.responses import (
    EndpointRecord,
    EndpointStats,
    Identity,
    ServiceInfo,
    ServicePing,
    ServiceStats,
)
from jetstream.testing.service_schema import SCHEMAS, validate

IDENTITY = Identity("s", "1", "1.0.0", "Adds.", {"a": "b"})
PLAIN = Identity("s", "1", "1.0.0", "", {})
ADD = EndpointRecord("add", "math.add", "q", {"c": "d"})
ALL = EndpointRecord("all", "all.>", "", {})
COMMON = {"name": "s", "id": "1", "version": "1.0.0", "metadata": {"a": "b"}}


@pytest.mark.rule("SERVICE-13", "SERVICE-3")
def test_ping():
    found = responses.ping_json(IDENTITY)
    assert found == {"type": "io.nats.micro.v1.ping_response", **COMMON}
    validate(found, SCHEMAS["PING"])
    assert responses.ping_json(PLAIN)["metadata"] == {}


@pytest.mark.rule("SERVICE-14", "SERVICE-3")
def test_info():
    found = responses.info_json(IDENTITY, [ADD, ALL])
    assert found == {
        "type": "io.nats.micro.v1.info_response",
        **COMMON,
        "description": "Adds.",
        "endpoints": [
            {"name": "add", "subject": "math.add", "queue_group": "q", "metadata": {"c": "d"}},
            {"name": "all", "subject": "all.>", "queue_group": "", "metadata": {}},
        ],
    }
    validate(found, SCHEMAS["INFO"])
    validate(responses.info_json(PLAIN, []), SCHEMAS["INFO"])


@pytest.mark.rule("SERVICE-15", "SERVICE-16", "SERVICE-17", "SERVICE-18")
def test_stats():
    counters = Counters()
    token = counters.begin()
    counters.begin()
    counters.fail("bad", token)
    counters.end(0.000003001, token)
    endpoint = responses.endpoint_json(ADD, counters)
    assert endpoint == {
        "name": "add",
        "subject": "math.add",
        "queue_group": "q",
        "num_requests": 2,
        "num_errors": 1,
        "last_error": "bad",
        "processing_time": 3001,
        "average_processing_time": 1500,
    }
    found = responses.stats_json(IDENTITY, Timestamp(1_500_000_000), [endpoint])
    assert found == {
        "type": "io.nats.micro.v1.stats_response",
        **COMMON,
        "started": "1970-01-01T00:00:01.5Z",
        "endpoints": [endpoint],
    }
    validate(found, SCHEMAS["STATS"])
    validate({**found, "endpoints": [{**endpoint, "data": {"x": 1}}]}, SCHEMAS["STATS"])


@pytest.mark.parametrize(
    ("verb", "change"),
    [
        ("PING", {"metadata": None}),
        ("PING", {"metadata": {"a": 1}}),
        ("PING", {"name": "a b"}),
        ("PING", {"version": "1.0"}),
        ("PING", {"type": "io.nats.micro.v1.info_response"}),
        ("PING", {"more": 1}),
        ("INFO", {"description": None}),
        ("INFO", {"endpoints": None}),
        ("INFO", {"endpoints": [{}]}),
        ("STATS", {"started": "2026-01-01T00:00:00+01:00"}),
        ("STATS", {"endpoints": [{**responses.endpoint_json(ADD, Counters()), "num_errors": -1}]}),
        (
            "STATS",
            {"endpoints": [{**responses.endpoint_json(ADD, Counters()), "processing_time": 0.5}]},
        ),
    ],
)
def test_the_schemas_refuse(verb, change):
    valid = {
        "PING": responses.ping_json(IDENTITY),
        "INFO": responses.info_json(IDENTITY, [ADD]),
        "STATS": responses.stats_json(IDENTITY, Timestamp(0), []),
    }[verb]
    validate(valid, SCHEMAS[verb])
    with pytest.raises(AssertionError):
        validate({**valid, **change}, SCHEMAS[verb])


@pytest.mark.rule("SERVICE-3")
def test_responses_share_nothing_with_the_service():
    responses.ping_json(IDENTITY)["metadata"]["x"] = "y"
    responses.info_json(IDENTITY, [ADD])["endpoints"][0]["metadata"]["x"] = "y"
    assert (IDENTITY.metadata, ADD.metadata) == ({"a": "b"}, {"c": "d"})


def test_encoding_is_compact():
    assert responses.encode({"a": [1, 2]}) == b'{"a":[1,2]}'


def encoded(kind, **fields):
    return json.dumps({"type": f"io.nats.micro.v1.{kind}_response", **fields}).encode()


# As the clients write them; nats.go 1.53, nats.js 3.0, nats-py 2.16.
FOREIGN_STATS = [
    (
        "nats.go",
        {
            "started": "2026-11-17T12:00:00.123456789Z",
            "metadata": None,
            "endpoints": [
                {
                    "name": "e",
                    "subject": "e",
                    "queue_group": "q",
                    "num_requests": 3,
                    "num_errors": 0,
                    "last_error": "",
                    "processing_time": 3000,
                    "average_processing_time": 1000,
                }
            ],
        },
        ("2026-11-17T12:00:00.123456789Z", 3e-6, 1e-6, "", None),
    ),
    (
        "nats.js",
        {
            "started": "2026-11-17T12:00:00.123Z",
            "metadata": {},
            "endpoints": [
                {
                    "name": "e",
                    "subject": "e",
                    "queue_group": "q",
                    "num_requests": 3,
                    "num_errors": 0,
                    "processing_time": 1000000.5,
                    "average_processing_time": 333333.5,
                    "data": {"x": 1},
                }
            ],
        },
        ("2026-11-17T12:00:00.123Z", 0.0010000005, 0.0003333335, None, {"x": 1}),
    ),
    (
        "nats-py",
        {
            "started": "2026-11-17T12:00:00.123Z",
            "metadata": None,
            "endpoints": [
                {
                    "name": "e",
                    "subject": "e",
                    "queue_group": "q",
                    "num_requests": 3,
                    "num_errors": 1,
                    "last_error": "ValueError('x')",
                    "processing_time": 3000,
                    "average_processing_time": 1000,
                    "data": None,
                }
            ],
        },
        ("2026-11-17T12:00:00.123Z", 3e-6, 1e-6, "ValueError('x')", None),
    ),
]


@pytest.mark.rule("SERVICE-26")
@pytest.mark.parametrize(("client", "fields", "expected"), FOREIGN_STATS)
def test_statistics_of_other_clients(client, fields, expected):
    data = encoded("stats", name="s", id="1", version="1.0.0", **fields)
    stats = responses.read_response(ServiceStats, "STATS", data)
    [endpoint] = stats.endpoints
    assert stats.metadata == {}
    assert endpoint.num_requests == 3
    assert (
        str(stats.started),
        endpoint.processing_time,
        endpoint.average_processing_time,
        endpoint.last_error,
        endpoint.data,
    ) == expected


@pytest.mark.rule("SERVICE-26")
def test_nulls_and_missing_fields():
    data = encoded("info", name="s", description=None, metadata=None, endpoints=[{"name": "e"}])
    info = responses.read_response(ServiceInfo, "INFO", data)
    assert (info.description, info.metadata, info.id) == ("", {}, "")
    assert (info.endpoints[0].queue_group, info.endpoints[0].metadata) == ("", {})
    more = responses.read_response(ServicePing, "PING", encoded("ping", name="s", new=1))
    assert more.extra == {"new": 1}


@pytest.mark.rule("SERVICE-26")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x", "response is not valid JSON: b'x'"),
        (b"[" * 100_000, r"response is not valid JSON: b'\[\[\["),
        (b"\xff\xfe{\x00}\x00", "response is not valid JSON: "),
        (b"[]", r"response is not a JSON object: b'\[\]'"),
        (b"{}", "response has another type than PING: None"),
        (encoded("stats"), "response has another type than PING: 'io.nats.micro.v1.stats_response"),
        (encoded("ping", name=1), "ServicePing.name: 1 is not a str"),
    ],
)
def test_responses_that_are_invalid(data, text):
    with pytest.raises(InvalidResponse, match=text):
        responses.read_response(ServicePing, "PING", data)


def test_durations():
    stats = EndpointStats(processing_time=1.5)
    assert stats.to_json() == {"processing_time": 1_500_000_000}
    assert stats.average_processing_time == 0.0
    kind = responses.EndpointStats.FIELDS[6].type
    for check in (kind.check, kind.decode):
        for value in (True, "1", None):
            with pytest.raises(TypeMismatch):
                check(value)


def test_records_show_their_fields():
    assert repr(ADD) == (
        "EndpointRecord(metadata={'c': 'd'}, name='add', queue_group='q', subject='math.add')"
    )
