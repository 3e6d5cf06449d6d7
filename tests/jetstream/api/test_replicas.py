from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.api.replicas import cancel_move, evacuate_peer, remove_peer, step_down
from jetstream.errors import ApiError, InvalidResponse
from natsproto.errors import InvalidValue, NotSupported
from tests.jetstream.support import Stage

SUCCESS = {"success": True}
LEVEL = "Nats-Required-Api-Level"


def api(stage):
    return ApiClient(stage.client.session, "", "$JS.API", 5.0)


CALLS = [
    # call, endpoint, body, level
    (lambda a: step_down(a, "STREAM.S", ""), "STREAM.LEADER.STEPDOWN.S", b"", ""),
    (lambda a: step_down(a, "CONSUMER.S.C", ""), "CONSUMER.LEADER.STEPDOWN.S.C", b"", ""),
    pytest.param(
        lambda a: step_down(a, "STREAM.S", "s2"),
        "STREAM.LEADER.STEPDOWN.S",
        b'{"placement":{"preferred":"s2"}}',
        "1",
        marks=pytest.mark.rule("CALL-19"),
    ),
    pytest.param(
        lambda a: remove_peer(a, "S", "s2"),
        "STREAM.PEER.REMOVE.S",
        b'{"peer":"s2"}',
        "",
        marks=pytest.mark.rule("CALL-20"),
    ),
    pytest.param(
        lambda a: evacuate_peer(a, "S", "s2"),
        "STREAM.PEER.EVACUATE.S",
        b'{"peer":"s2"}',
        "5",
        marks=pytest.mark.rule("CALL-20"),
    ),
    (lambda a: cancel_move(a, "S"), "STREAM.CANCEL_MOVE.S", b"", "5"),
]


@pytest.mark.parametrize(("call", "endpoint", "body", "level"), CALLS)
def test_calls(call, endpoint, body, level):
    stage = Stage(SUCCESS)
    stage.run(call(api(stage)))
    (pub,) = stage.pubs
    assert (pub.subject, pub.data) == ("$JS.API." + endpoint, body)
    assert (pub.headers[LEVEL] if pub.headers else "") == level


@pytest.mark.rule("CALL-19", "CALL-20")
@pytest.mark.parametrize(
    ("call", "level"),
    [
        (lambda a: step_down(a, "STREAM.S", "s2"), 0),
        (lambda a: evacuate_peer(a, "S", "s2"), 4),
        (lambda a: cancel_move(a, "S"), 4),
    ],
)
def test_an_older_server(call, level):
    stage = Stage(version="2.10.0" if not level else "2.14.0", api_lvl=level)
    with pytest.raises(NotSupported):
        stage.run(call(api(stage)))
    assert stage.quiet()


@pytest.mark.parametrize("peer", ["", None, 7])
def test_wrong_names(peer):
    stage = Stage()
    for call in (remove_peer, evacuate_peer):
        with pytest.raises(InvalidValue, match="is not the name of a server"):
            stage.run(call(api(stage), "S", peer))
    assert stage.quiet()


def test_errors():
    refused = {"error": {"code": 400, "err_code": 10040, "description": "peer not a member"}}
    stage = Stage(refused, {}, {"success": False})
    with pytest.raises(ApiError):
        stage.run(remove_peer(api(stage), "S", "s9"))
    for _ in range(2):
        with pytest.raises(InvalidResponse, match="has no success"):
            stage.run(step_down(api(stage), "STREAM.S", ""))
