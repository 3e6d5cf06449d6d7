from __future__ import annotations

import json
import typing

import pytest

from jetstream import advisories
from jetstream.advisories import kinds as module
from jetstream.advisories.kinds import KINDS, read_advisory, subjects_of
from natsproto.errors import InvalidName, InvalidValue
from natsproto.wire.frames import Msg
from tests.core import ROOT
from tests.jetstream.advisories.samples import EVERY, event

PREFIX = "$JS.EVENT"


def msg(data, subject=b"$JS.EVENT.ADVISORY.X"):
    return Msg(subject, 1, b"", data, None)


def test_the_table_is_complete():
    names = [kind for kind, _, _, _ in KINDS]
    assert sorted(names) == sorted(EVERY)
    assert len(set(names)) == len(names)
    classes = {cls.__name__ for _, cls, _, _ in KINDS}
    others = {"Advisories", "Advisory", "AdvisoryClient", "ServiceLatencyMetric", "read_advisory"}
    assert classes | others == set(dir(advisories))
    source = (ROOT / "jetstream/advisories/kinds.py").read_text()
    literal = source.partition("Kind: TypeAlias = Literal")[2].partition("\n    ]")[0] + "]"
    assert typing.get_args(eval("typing.Literal" + literal)) == tuple(sorted(names))


@pytest.mark.rule("ADVIS-1")
@pytest.mark.parametrize(("kind", "cls"), [(kind, cls) for kind, cls, _, _ in KINDS])
def test_an_event_has_the_class_of_its_kind(kind, cls):
    received = msg(json.dumps(event(kind, more=[1])).encode())
    found = read_advisory(received)
    assert type(found) is cls
    assert found.kind == kind
    assert found.extra == {"more": [1]}  # D-ADVIS-5
    assert found.msg is received


INVALID = [
    # payload, the fields that are kept
    (b"", {}),
    (b"no JSON", {}),
    (b"[1]", {}),
    (b"\xff", {}),
    (b'{"type": 1}', {"type": 1}),
    (b'{"type": ["x"], "id": "y"}', {"type": ["x"], "id": "y"}),
    (json.dumps(event("nak", stream_seq="3")).encode(), event("nak", stream_seq="3")),
    (json.dumps(event("nak", timestamp="now")).encode(), event("nak", timestamp="now")),
]


@pytest.mark.rule("D-ADVIS-6")
@pytest.mark.parametrize(("data", "kept"), INVALID)
def test_an_invalid_event_is_kept_as_it_is(data, kept):
    found = read_advisory(msg(data))
    assert type(found) is advisories.Advisory
    assert (found.type, found.extra) == ("", kept)
    assert found.msg.data == data


SUBJECTS = [
    # kinds, stream, consumer, subjects
    ([], None, None, [">"]),
    (
        [],
        "S",
        None,
        ["ADVISORY.STREAM.*.S", "ADVISORY.CONSUMER.*.S.*", "METRIC.CONSUMER.*.S.*"],
    ),
    ([], "S", "c", ["ADVISORY.CONSUMER.*.S.c", "METRIC.CONSUMER.*.S.c"]),
    ([], None, "c", ["ADVISORY.CONSUMER.*.*.c", "METRIC.CONSUMER.*.*.c"]),
    (["api_audit"], None, None, ["ADVISORY.API"]),
    (["api_limit_reached"], None, None, ["ADVISORY.API.LIMIT_REACHED"]),
    (["max_deliver"], None, None, ["ADVISORY.CONSUMER.MAX_DELIVERIES.*.*"]),
    (["max_deliver"], "S", None, ["ADVISORY.CONSUMER.MAX_DELIVERIES.S.*"]),
    (["max_deliver"], None, "c", ["ADVISORY.CONSUMER.MAX_DELIVERIES.*.c"]),
    (["max_deliver"], "S", "c", ["ADVISORY.CONSUMER.MAX_DELIVERIES.S.c"]),
    (["consumer_ack"], "S", "c", ["METRIC.CONSUMER.ACK.S.c"]),
    (
        ["stream_action"],
        "S",
        None,
        ["ADVISORY.STREAM.CREATED.S", "ADVISORY.STREAM.UPDATED.S", "ADVISORY.STREAM.DELETED.S"],
    ),
    (
        ["nak", "terminated", "nak"],
        "S",
        "c",
        ["ADVISORY.CONSUMER.MSG_NAKED.S.c", "ADVISORY.CONSUMER.MSG_TERMINATED.S.c"],
    ),
    (
        ["stream_quorum_lost", "server_removed"],
        None,
        None,
        ["ADVISORY.STREAM.QUORUM_LOST.*", "ADVISORY.SERVER.REMOVED"],
    ),
]


@pytest.mark.rule("ADVIS-2")
@pytest.mark.parametrize(("kinds", "stream", "consumer", "subjects"), SUBJECTS)
def test_the_narrowest_subjects(kinds, stream, consumer, subjects):
    found = subjects_of(kinds, stream, consumer, PREFIX)
    assert found == [f"{PREFIX}.{each}" for each in subjects]


REFUSED = [
    (["max_delivery"], None, None, InvalidValue, "unknown kind of advisory: 'max_delivery'"),
    ([7], None, None, InvalidValue, "unknown kind of advisory: 7"),
    (["api_audit"], "S", None, InvalidValue, "api_audit advisories do not belong to a stream: 'S'"),
    (["nak", "api_audit"], "S", None, InvalidValue, "api_audit advisories do not belong"),
    (["stream_action"], None, "c", InvalidValue, "do not belong to a consumer: 'c'"),
    ([], "a.b", None, InvalidName, "stream 'a.b'"),
    ([], "", None, InvalidName, "stream is empty"),
    ([], None, "*", InvalidName, "consumer '\\*'"),
]


@pytest.mark.parametrize(("kinds", "stream", "consumer", "error", "text"), REFUSED)
def test_refused_filters(kinds, stream, consumer, error, text):
    with pytest.raises(error, match=text):
        subjects_of(kinds, stream, consumer, PREFIX)


def test_every_class_has_a_module_of_its_subject():
    homes = {cls.__module__ for _, cls, _, _ in KINDS}
    assert homes == {f"jetstream.advisories.{each}" for each in ("consumers", "servers", "streams")}
    assert module.EVENT_PREFIX == PREFIX
