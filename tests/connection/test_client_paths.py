"""Client.trace_message: the two ways to request the reports. See test_send.py for the rest."""

from __future__ import annotations

from tests.connection.reporters import PARENT, Servers
from tests.connection.reports import ALONE, IN, report


def test_a_message_is_traced_by_headers_of_nats():
    stage = Servers(ALONE)
    assert stage.run(stage.client.trace_message("a")).complete


def test_a_message_is_traced_by_a_trace_context():
    stage = Servers(report("s", [IN], request={"header": {"a": [PARENT]}}), dest="t")
    path = stage.run(stage.client.trace_message("a", deliver=True, traceparent=PARENT, dest="t"))
    assert path.complete
