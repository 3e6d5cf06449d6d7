"""Requests of servers to authorize a client."""

from __future__ import annotations

import pytest

from natsproto.auth.auth_request import AuthClient, AuthOptions, AuthRequest, AuthServer, AuthTls
from natsproto.auth.limits import UserLimits
from natsproto.errors import InvalidValue
from tests.connection.jwt_keys import N_KEY, NOW, U_KEY

pytestmark = pytest.mark.rule("CALLOUT-1")
BODY = {
    "server_id": {"name": "s", "host": "h", "id": N_KEY, "version": "2.15.1", "new": 5},
    "user_nkey": U_KEY,
    "client_info": {"host": "1.2.3.4", "id": 7, "user": "ada", "kind": "Client", "type": "nats"},
    "connect_opts": {
        "user": "ada",
        "pass": "p-secret",
        "auth_token": "t-secret",
        "jwt": "j-secret",
        "sig": "s-secret",
        "name": "app",
        "protocol": 1,
    },
    "client_tls": {"version": "1.3", "verified_chains": [["a"]], "certs": None},
}


def test_the_parts_of_a_request():
    request = AuthRequest.from_json(BODY)
    assert request.user_nkey == U_KEY
    assert (request.server.id, request.server.version, request.server.tags) == (N_KEY, "2.15.1", [])
    assert (request.client.host, request.client.id, request.client.nonce) == ("1.2.3.4", 7, "")
    options = request.options
    assert (options.user, options.password, options.token) == ("ada", "p-secret", "t-secret")
    assert (options.jwt, options.signature, options.protocol) == ("j-secret", "s-secret", 1)
    assert request.tls is not None
    assert (request.tls.verified_chains, request.tls.certs) == ([["a"]], [])


def test_parts_may_be_missing():
    request = AuthRequest.from_json({"user_nkey": U_KEY})
    assert request.tls is None
    assert request.server == AuthServer.from_json({})
    assert request.client == AuthClient.from_json({})
    assert AuthTls.from_json({}).certs == []


@pytest.mark.rule("D-AUTH-1")
def test_the_repr_has_no_credentials():
    request = AuthRequest.from_json(BODY)
    assert repr(request) == "<AuthRequest AuthOptions(user='ada', name='app') from '1.2.3.4'>"
    assert "secret" not in repr(request.options)


@pytest.mark.parametrize(
    "change",
    [
        {"server_id": 5},
        {"user_nkey": None},
        {"client_info": {"id": "7"}},
        {"connect_opts": {"user": 5}},
        {"client_tls": {"certs": "a"}},
        {"client_tls": 5},
    ],
)
def test_malformed_requests(change):
    with pytest.raises(InvalidValue):
        AuthRequest.from_json({**BODY, **change})


@pytest.mark.rule("CALLOUT-3")
def test_a_user_for_a_request():
    request = AuthRequest.from_json(BODY)
    limits = UserLimits(max_data=5)
    user = request.user(limits, account="APP", expires=NOW, tags=["a"])
    assert (user.subject, user.audience, user.name) == (U_KEY, "APP", "ada")
    assert (user.limits, user.expires, user.tags) == (limits, NOW, ["a"])
    assert request.user().audience == "$G"
    assert request.user(name="x").name == "x"
    nameless = AuthRequest(request.server, U_KEY, request.client, AuthOptions.from_json({}))
    assert nameless.user().name == ""
