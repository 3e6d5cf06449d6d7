from __future__ import annotations

import pytest

from jetstream.advisories.event import Advisory, AdvisoryClient
from jetstream.schema.timestamp import Timestamp
from tests.jetstream.advisories.samples import CLIENT


@pytest.mark.rule("ADVIS-1", "D-ADVIS-5")
def test_an_event_of_any_kind():
    raw = {
        "type": "io.nats.jetstream.advisory.v1.future",
        "id": "x",
        "timestamp": "2026-11-17T18:02:39.123456789Z",
        "domain": "hub",
        "stream": "S",
    }
    event = Advisory.from_json(raw)
    assert (event.kind, event.id, event.domain) == ("future", "x", "hub")
    assert event.timestamp == Timestamp.parse("2026-11-17T18:02:39.123456789Z")
    assert event.extra == {"stream": "S"}
    assert event.to_json() == raw
    assert event.msg is None
    assert Advisory().kind == ""


def test_a_client():
    client = AdvisoryClient.from_json(CLIENT)
    assert (client.name, client.rtt, client.extra) == ("auditor", 0.00025, {})
    assert client.to_json() == CLIENT
    names = {field.name for field in client.FIELDS}
    assert set(AdvisoryClient.__annotations__) - {"FIELDS"} == names
