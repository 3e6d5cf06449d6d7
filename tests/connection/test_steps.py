"""Steps: one class for each type of event."""

from __future__ import annotations

import pytest

from natsproto.paths.steps import (
    Egress,
    Ingress,
    ServiceImport,
    StreamExport,
    StreamStore,
    SubjectMapping,
    UnknownStep,
    decode_step,
    error_of,
)
from tests.connection.reports import IN, OUT, TIME, event

DENIED = 'Permissions Violation for Publish to "deny.x"'
TABLE = [  # recorded event, class, fields
    (IN, Ingress, {"kind": "client", "cid": 5, "name": "tracer", "account": "$G", "subject": "a"}),
    (event("in", kind=0, error=DENIED), Ingress, {"error": DENIED, "subject": ""}),
    (event("sm", to="mapped.q"), SubjectMapping, {"subject": "mapped.q"}),
    (event("se", acc="B", to="x.q"), StreamExport, {"account": "B", "subject": "x.q"}),
    (
        event("si", acc="B", **{"from": "my.add", "to": "add"}),
        ServiceImport,
        {"account": "B", "from_subject": "my.add", "to_subject": "add"},
    ),
    (
        event("js", stream="I", subject="out.x", nointerest=True),
        StreamStore,
        {"stream": "I", "subject": "out.x", "no_interest": True, "error": ""},
    ),
    (
        event("js", stream="M", error="maximum payload exceeded"),
        StreamStore,
        {"error": "maximum payload exceeded", "no_interest": False},
    ),
    (OUT, Egress, {"kind": "client", "hop": "", "subscription": "a.*", "queue": "w"}),
    (event("eg", kind=4, hop="1.2"), Egress, {"kind": "leafnode", "hop": "1.2", "account": ""}),
]


@pytest.mark.rule("HOP-2")
@pytest.mark.parametrize(("data", "kind", "fields"), TABLE)
def test_each_type_has_its_class(data, kind, fields):
    step = decode_step(data)
    assert type(step) is kind
    assert step.time == TIME
    assert {name: getattr(step, name) for name in fields} == fields
    assert error_of(step) == data.get("error", "")


@pytest.mark.rule("HOP-3")
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (0, "client"),
        (1, "router"),
        (2, "gateway"),
        (3, "system"),
        (4, "leafnode"),
        (5, "jetstream"),
        (6, "account"),
        (7, "7"),
        (-1, "-1"),
    ],
)
def test_the_kinds_of_connections(number, kind):
    assert decode_step(event("in", kind=number)).kind == kind


@pytest.mark.rule("D-HOP-8")
def test_an_unknown_type_is_kept_with_its_fields():
    data = event("xx", color="red")
    step = decode_step(data)
    assert isinstance(step, UnknownStep)
    assert (step.type, step.data, step.time) == ("xx", data, TIME)
    assert type(decode_step({"type": 7})) is UnknownStep


@pytest.mark.rule("D-HOP-8")
def test_fields_of_the_wrong_type_are_empty():
    step = decode_step({"type": "eg", "ts": 7, "kind": "x", "cid": "5", "name": None, "hop": []})
    assert (step.time, step.kind, step.cid, step.name, step.hop) == ("", "client", 0, "", "")


def test_steps_are_records():
    mapping = decode_step(event("sm", to="b"))
    assert repr(mapping) == f"SubjectMapping(time={TIME!r}, subject='b')"
    assert mapping == decode_step(event("sm", to="b"))
    assert mapping != decode_step(event("sm", to="c"))
