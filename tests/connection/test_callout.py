"""Auth callouts: requests are read, and responses written."""

from __future__ import annotations

import pytest

from natsproto.auth import nkeys, xkeys
from natsproto.auth.auth_request import AuthRequest
from natsproto.auth.callout import AuthCallout, AuthResponse
from natsproto.auth.claims import UserClaims
from natsproto.auth.jwt import Issuer, write_jwt
from natsproto.errors import HeaderError, InvalidValue, UserRejected
from natsproto.wire.headers import Headers
from tests.connection.jwt_keys import (
    A_KEY,
    ACCOUNT,
    CURVE,
    N_KEY,
    NOW,
    S_KEY,
    SERVER,
    SIGNING,
    U_KEY,
    USER,
)

OWN_XKEY = xkeys.public_xkey(CURVE)
SERVER_XSEED = nkeys.encode_seed("X", bytes([9]) * 32)
SERVER_XKEY = xkeys.public_xkey(SERVER_XSEED)
HEADERS = Headers({"Nats-Server-Xkey": SERVER_XKEY})


def claims(**change):
    nats = {
        "server_id": {"id": N_KEY, "name": "s", "xkey": SERVER_XKEY},
        "user_nkey": U_KEY,
        "connect_opts": {"user": "ada"},
        "type": "authorization_request",
        "version": 2,
    }
    nats.update(change.pop("nats", {}))
    return {"aud": "nats-authorization-request", "sub": "x", "nats": nats, **change}


def request_jwt(seed=SERVER, **change):
    return write_jwt(claims(**change), Issuer(seed)).encode()


def asked() -> AuthRequest:
    return AuthRequest.from_json(claims()["nats"])


@pytest.mark.rule("CALLOUT-1", "CALLOUT-2")
def test_a_request_is_read():
    request = AuthCallout(ACCOUNT).read(request_jwt())
    assert (request.user_nkey, request.options.user) == (U_KEY, "ada")


@pytest.mark.rule("CALLOUT-2")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "three parts"),
        (b"\xff.a.b", "not JSON"),
        (request_jwt(ACCOUNT), "issuer is not a key of type server"),
        (request_jwt(nkeys.encode_seed("N", bytes(32))), "not an authorization request"),
        (request_jwt(aud="other"), "not an authorization request of server"),
        (request_jwt(nats={"type": "user"}), "not an authorization request"),
        (request_jwt(nats={"user_nkey": A_KEY}), "user_nkey is not a key of type user"),
        (write_jwt({"nats": 5}, Issuer(SERVER)).encode(), "not a map"),
    ],
)
def test_other_data_is_rejected(data, said):
    with pytest.raises(InvalidValue, match=said):
        AuthCallout(ACCOUNT).read(data)


@pytest.mark.rule("CALLOUT-3", "CALLOUT-4")
def test_a_client_is_accepted():
    request = asked()
    user = request.user(account="APP")
    for given in (user, user.encode(ACCOUNT, now=NOW)):
        response = AuthResponse.decode(AuthCallout(ACCOUNT).accept(request, given, NOW).decode())
        assert (response.subject, response.audience, response.issuer) == (U_KEY, N_KEY, A_KEY)
        assert (response.error, response.issuer_account, response.issued_at) == ("", "", NOW)
        assert UserClaims.decode(response.jwt).audience == "APP"


@pytest.mark.rule("CALLOUT-3")
@pytest.mark.parametrize(
    ("user", "said"),
    [
        (None, "user is not a UserClaims or a JWT: NoneType"),
        (UserClaims(nkeys.public_key(nkeys.encode_seed("U", bytes(32)))), "different key than"),
        ("a.b.c", "not JSON"),
    ],
)
def test_other_users_are_rejected(user, said):
    with pytest.raises(InvalidValue, match=said):
        AuthCallout(ACCOUNT).accept(asked(), user, NOW)


@pytest.mark.rule("CALLOUT-4", "D-CALLOUT-5")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UserRejected("bob has left"), "bob has left"),
        (UserRejected(""), "authorization failed"),
        (KeyError("secret"), "authorization failed"),
    ],
)
def test_a_client_is_rejected(error, said):
    response = AuthResponse.decode(AuthCallout(ACCOUNT).settle(asked(), error, NOW).decode())
    assert (response.jwt, response.error) == ("", said)


@pytest.mark.rule("CALLOUT-4")
def test_a_signing_key_names_its_account():
    callout = AuthCallout(
        nkey=S_KEY, sign=lambda data: nkeys.sign(SIGNING, data), issuer_account=A_KEY
    )
    response = AuthResponse.decode(callout.reject(asked(), "no", NOW).decode())
    assert (response.issuer, response.issuer_account) == (S_KEY, A_KEY)
    own = AuthCallout(ACCOUNT, issuer_account=A_KEY).reject(asked(), "no", NOW)
    assert AuthResponse.decode(own.decode()).issuer_account == ""
    assert repr(callout) == f"<AuthCallout {S_KEY}>"


@pytest.mark.rule("CALLOUT-6")
def test_encryption():
    callout = AuthCallout(ACCOUNT, xkey_seed=CURVE)
    assert (callout.xkey, AuthCallout(ACCOUNT).xkey) == (OWN_XKEY, "")
    request = callout.read(xkeys.seal(SERVER_XSEED, OWN_XKEY, request_jwt()), HEADERS)
    answer = xkeys.unseal(SERVER_XSEED, OWN_XKEY, callout.reject(request, "no", NOW))
    assert AuthResponse.decode(answer.decode()).error == "no"


class BrokenHeaders:
    def get(self, name):
        raise HeaderError("broken")


@pytest.mark.rule("CALLOUT-6")
def test_encryption_that_does_not_fit():
    sealed = xkeys.seal(SERVER_XSEED, OWN_XKEY, request_jwt())
    with pytest.raises(InvalidValue, match="request is encrypted, and this service has no xkey"):
        AuthCallout(ACCOUNT).read(sealed, HEADERS)
    callout = AuthCallout(ACCOUNT, xkey_seed=CURVE)
    with pytest.raises(InvalidValue, match="request is not encrypted, and this service has an xk"):
        callout.read(request_jwt())
    for headers in (None, Headers({"a": "b"}), BrokenHeaders()):
        with pytest.raises(InvalidValue, match="no header Nats-Server-Xkey"):
            callout.read(sealed, headers)
    replayed = xkeys.seal(CURVE, OWN_XKEY, request_jwt())
    with pytest.raises(InvalidValue, match="not an authorization request"):
        callout.read(replayed, Headers({"Nats-Server-Xkey": OWN_XKEY}))


@pytest.mark.rule("CALLOUT-4")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "not have either a jwt or an error"),
        ({"jwt": "a", "error": "b"}, "not have either a jwt or an error"),
        ({"jwt": "a", "audience": A_KEY}, "audience is not a key of type server"),
        ({"jwt": "a", "issuer_account": U_KEY}, "issuer_account is not"),
    ],
)
def test_bad_responses(given, said):
    with pytest.raises(InvalidValue, match=said):
        AuthResponse(U_KEY, **{"audience": N_KEY, **given})


@pytest.mark.rule("CALLOUT-3")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seed": USER},
        {"seed": ACCOUNT, "issuer_account": U_KEY},
        {"seed": ACCOUNT, "xkey_seed": ACCOUNT},
    ],
)
def test_bad_keys_are_rejected(given):
    with pytest.raises(InvalidValue):
        AuthCallout(**given)
