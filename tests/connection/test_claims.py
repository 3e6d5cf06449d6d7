"""The claims of users."""

from __future__ import annotations

import pytest

from natsproto.auth import nkeys
from natsproto.auth.claims import Claims, UserClaims
from natsproto.auth.jwt import Issuer, read_jwt, write_jwt
from natsproto.auth.limits import UserLimits
from natsproto.errors import InvalidValue
from tests.connection.jwt_keys import (
    A_KEY,
    ACCOUNT,
    NOW,
    O_KEY,
    OPERATOR,
    S_KEY,
    SIGNING,
    U_KEY,
    USER,
)


def nats(token):
    return read_jwt(token)["nats"]


@pytest.mark.rule("JWT-1", "JWT-5")
def test_a_user():
    user = UserClaims(
        U_KEY,
        UserLimits(max_payload=5),
        name="ada",
        audience="APP",
        expires=NOW + 60.5,
        not_before=NOW,
        tags=["Team:A"],
    )
    claims = read_jwt(user.encode(ACCOUNT, now=NOW + 0.9))
    del claims["jti"]
    assert claims == {
        "sub": U_KEY,
        "name": "ada",
        "exp": NOW + 60,
        "nbf": NOW,
        "aud": "APP",
        "iat": NOW,
        "iss": A_KEY,
        "nats": {
            "pub": {},
            "sub": {},
            "subs": -1,
            "data": -1,
            "payload": 5,
            "tags": ["team:a"],
            "type": "user",
            "version": 2,
        },
    }


@pytest.mark.rule("JWT-1")
def test_claims_are_read_back():
    user = UserClaims(U_KEY, UserLimits(bearer=True), name="ada", expires=NOW + 60, tags=["a"])
    user.extra["new_field"] = 5
    found = UserClaims.decode(user.encode(ACCOUNT, now=NOW))
    assert found.to_json() == user.to_json()
    assert found.extra == {"new_field": 5}
    assert (found.issuer, found.issued_at, found.scoped) == (A_KEY, NOW, False)
    assert repr(found) == f"<UserClaims {U_KEY} 'ada'>"


@pytest.mark.rule("D-JWT-3")
def test_a_function_can_sign():
    user = UserClaims(U_KEY)
    token = user.encode(nkey=A_KEY, sign=lambda data: nkeys.sign(ACCOUNT, data), now=NOW)
    assert token == user.encode(ACCOUNT, now=NOW)
    assert UserClaims.decode(token).name == U_KEY


@pytest.mark.rule("JWT-9")
def test_the_account_of_a_signing_key():
    user = UserClaims(U_KEY, issuer_account=A_KEY)
    assert nats(user.encode(SIGNING, now=NOW))["issuer_account"] == A_KEY
    assert "issuer_account" not in nats(user.encode(ACCOUNT, now=NOW))


@pytest.mark.rule("JWT-10")
def test_a_user_of_a_scope():
    user = UserClaims(U_KEY, issuer_account=A_KEY, scoped=True, tags=["a"])
    token = user.encode(SIGNING, now=NOW)
    assert nats(token) == {"issuer_account": A_KEY, "tags": ["a"], "type": "user", "version": 2}
    found = UserClaims.decode(token)
    assert (found.scoped, found.limits, found.issuer) == (True, None, S_KEY)
    with pytest.raises(InvalidValue, match="scoped requires a signing key"):
        user.encode(ACCOUNT, now=NOW)
    with pytest.raises(InvalidValue, match="scoped requires an issuer_account"):
        UserClaims(U_KEY, scoped=True)
    with pytest.raises(InvalidValue, match="limits conflict with scoped"):
        UserClaims(U_KEY, UserLimits(), issuer_account=A_KEY, scoped=True)


@pytest.mark.rule("JWT-5")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subject": A_KEY}, "subject is not a key of type user"),
        ({"subject": USER}, "has 58 characters"),
        ({"limits": {"subs": 1}}, "limits is not a UserLimits"),
        ({"name": None}, "name is NoneType"),
        ({"issuer_account": U_KEY}, "issuer_account is not"),
        ({"scoped": 1}, "scoped is not True or False"),
        ({"audience": 5}, "audience is int"),
        ({"expires": -5}, "expires is not a time"),
        ({"not_before": "now"}, "not_before is not a time"),
        ({"tags": "a"}, "tags is not a list"),
    ],
)
def test_bad_claims(given, said):
    with pytest.raises(InvalidValue, match=said):
        UserClaims(**{"subject": U_KEY, "limits": None, **given})
    user = UserClaims(U_KEY)
    for name, value in given.items():
        setattr(user, name, value)
    signed = []
    with pytest.raises(InvalidValue, match=said):
        user.encode(nkey=A_KEY, sign=signed.append, now=NOW)
    assert signed == []


@pytest.mark.rule("JWT-6")
def test_only_an_account_signs_users():
    for seed in (OPERATOR, USER):
        with pytest.raises(InvalidValue, match="issuer is not a key of type account"):
            UserClaims(U_KEY).encode(seed, now=NOW)
    claims = UserClaims(U_KEY).to_json()
    with pytest.raises(InvalidValue, match="issuer is not a key of type account"):
        UserClaims.decode(write_jwt(claims, Issuer(OPERATOR)))


@pytest.mark.rule("JWT-7")
def test_the_period_of_a_jwt():
    user = UserClaims(U_KEY, expires=NOW + 60, not_before=NOW + 10)
    with pytest.raises(InvalidValue, match="expires is not after now: 1700000060 is 40 s earlier"):
        user.encode(ACCOUNT, now=NOW + 100)
    with pytest.raises(InvalidValue, match="now is not a time"):
        user.encode(ACCOUNT, now=None)
    token = user.encode(ACCOUNT, now=NOW)
    assert UserClaims.decode(token, now=NOW + 59).expires == NOW + 60
    with pytest.raises(InvalidValue, match="has expired 5 s ago"):
        UserClaims.decode(token, now=NOW + 65)
    with pytest.raises(InvalidValue, match="not valid for another 4 s"):
        UserClaims.decode(token, now=NOW + 6)


@pytest.mark.rule("JWT-8")
def test_jwts_of_others_are_not_read():
    token = UserClaims(U_KEY).encode(ACCOUNT, now=NOW)
    assert UserClaims.decode(token, issuers=[S_KEY, A_KEY]).subject == U_KEY
    with pytest.raises(InvalidValue, match=f"not signed by a given issuer: {A_KEY}"):
        UserClaims.decode(token, issuers=[S_KEY])
    for body in ({"type": "account", "version": 2}, {"type": "user", "version": 1}):
        with pytest.raises(InvalidValue, match="not of type user, version 2"):
            UserClaims.decode(write_jwt({"sub": U_KEY, "nats": body}, Issuer(ACCOUNT)))
    with pytest.raises(InvalidValue, match="nats of a JWT is not a map"):
        UserClaims.decode(write_jwt({"sub": O_KEY}, Issuer(ACCOUNT)))


def test_the_base_class_has_no_fields():
    with pytest.raises(NotImplementedError):
        Claims(U_KEY, "", "", 0, 0, []).body()
    with pytest.raises(NotImplementedError):
        Claims.fields_of({})
    assert Claims(U_KEY, "", "", 0, 0, []).adapt({}, A_KEY) is None
