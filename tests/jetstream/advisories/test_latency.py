"""The latency of exported services."""

from __future__ import annotations

import json

import pytest

from jetstream.advisories import ServiceLatencyMetric, read_advisory
from natsproto.wire.frames import Msg
from tests.jetstream.advisories.samples import CLIENT, HEAD

# As nats-server 2.15.1 sends it; the header is that of a request with a trace context.
RAW = {
    "type": "io.nats.server.metric.v1.service_latency",
    **HEAD,
    "status": 200,
    "requestor": {"acc": "B", "rtt": 534010},
    "responder": CLIENT,
    "header": {"Uber-Trace-Id": ["2b9b4b5e0e4c8b9d:2b9b4b5e0e4c8b9d:0:1"]},
    "start": "2026-11-17T18:02:39.1Z",
    "service": 250000000,
    "system": 3515,
    "total": 250537525,
}


@pytest.mark.rule("ADVIS-10")
def test_every_field_that_the_server_sends_is_known():
    msg = Msg(b"latency", 1, b"", json.dumps(RAW).encode(), None)
    found = read_advisory(msg)
    assert isinstance(found, ServiceLatencyMetric)
    assert (found.kind, found.msg, found.extra) == ("service_latency", msg, {})
    assert (found.status, found.service, found.total) == (200, 0.25, 0.250537525)
    assert found.requestor is not None
    assert found.requestor.acc == "B"
    assert found.to_json() == RAW


@pytest.mark.rule("ADVIS-10")
def test_a_request_that_failed():
    raw = {**RAW, "status": 503, "description": "Service Unavailable", "service": -1}
    del raw["responder"]
    found = ServiceLatencyMetric.from_json(raw)
    assert (found.status, found.description, found.responder) == (503, "Service Unavailable", None)
    assert found.to_json() == raw
