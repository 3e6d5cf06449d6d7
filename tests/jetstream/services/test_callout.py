"""The endpoint that authorizes clients, on a connection without I/O."""

from __future__ import annotations

import pytest

from jetstream.services.callout import add_auth_callout
from natsproto.auth import AuthCallout
from natsproto.auth.callout import SUBJECT, AuthResponse
from natsproto.errors import InvalidValue, UserRejected
from tests.connection.jwt_keys import ACCOUNT, U_KEY
from tests.connection.test_callout import request_jwt
from tests.jetstream.service_stage import ServiceStage


def answers(authorize, data=None):
    """Return the answers to a request, and the statistics of the endpoint."""
    stage = ServiceStage()
    service = stage.service()
    endpoint = add_auth_callout(service, AuthCallout(ACCOUNT), authorize)
    stage.run(service.start())
    stage.start(service.run())
    stage.settle()
    stage.send(SUBJECT, request_jwt() if data is None else data)
    stage.settle()
    return [pub.data for pub in stage.pubs], endpoint.stats


async def accept(request):
    return request.user(account="APP")


async def reject(request):
    raise UserRejected("bob has left")


def fail(request):
    raise KeyError("secret")


@pytest.mark.rule("CALLOUT-1", "CALLOUT-3", "D-CALLOUT-5")
@pytest.mark.parametrize(
    ("authorize", "error", "num_errors"),
    [
        (accept, "", 0),
        (lambda request: request.user(), "", 0),
        (reject, "bob has left", 0),
        (fail, "authorization failed", 1),
        (lambda request: None, "authorization failed", 1),
    ],
)
def test_answers(authorize, error, num_errors):
    [answer], stats = answers(authorize)
    response = AuthResponse.decode(answer.decode())
    assert (response.subject, response.error, bool(response.jwt)) == (U_KEY, error, not error)
    assert (stats.name, stats.num_requests, stats.num_errors) == ("auth", 1, num_errors)


@pytest.mark.rule("CALLOUT-2")
def test_a_request_that_no_server_wrote():
    [answer], stats = answers(accept, b"forged")
    assert answer == b""
    assert stats.last_error.startswith("InvalidValue: JWT does not consist of three parts")


def test_arguments_are_checked():
    service = ServiceStage().service()
    with pytest.raises(InvalidValue, match="callout is not an AuthCallout: 'seed'"):
        add_auth_callout(service, "seed", accept)
    with pytest.raises(InvalidValue, match="authorize"):
        add_auth_callout(service, AuthCallout(ACCOUNT), None)
