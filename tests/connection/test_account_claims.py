"""The claims of accounts."""

from __future__ import annotations

import pytest

from natsproto.auth.account_claims import AccountClaims, AccountLimits, SigningScope
from natsproto.auth.jwt import read_jwt
from natsproto.auth.limits import Permissions, UserLimits
from natsproto.errors import InvalidValue
from tests.connection.jwt_keys import (
    A_KEY,
    ACCOUNT,
    NOW,
    OPERATOR,
    S_KEY,
    U_KEY,
    USER,
    X_KEY,
)

pytestmark = pytest.mark.rule("JWT-5", "JWT-6")


def test_an_account_without_limits():
    claims = read_jwt(AccountClaims(A_KEY, name="APP").encode(OPERATOR, now=NOW))
    assert (claims["sub"], claims["name"]) == (A_KEY, "APP")
    assert claims["nats"] == {
        "limits": {
            "subs": -1,
            "data": -1,
            "payload": -1,
            "imports": -1,
            "exports": -1,
            "conn": -1,
            "leaf": -1,
            "mem_storage": 0,
            "disk_storage": 0,
            "streams": 0,
            "consumer": 0,
            "wildcards": True,
            "disallow_bearer": False,
        },
        "default_permissions": {"pub": {}, "sub": {}},
        "authorization": {},
        "type": "account",
        "version": 2,
    }


def test_all_fields_are_read_back():
    scope = SigningScope(S_KEY, UserLimits(max_data=5), role="worker", description="d")
    account = AccountClaims(
        A_KEY,
        AccountLimits(disk_storage=-1, max_streams=5),
        signing_keys=[S_KEY, scope],
        default_permissions=Permissions(publish_deny=["a"]),
        revocations={U_KEY: NOW + 0.5, "*": 1},
        auth_users=[U_KEY],
        allowed_accounts=[S_KEY],
        xkey=X_KEY,
        description="the app",
        expires=NOW + 60,
        tags=["t"],
    )
    account.extra["exports"] = [{"name": "e", "subject": "a", "type": "stream"}]
    account.limits.extra["tiered_limits"] = {}
    found = AccountClaims.decode(account.encode(OPERATOR, now=NOW))
    assert found.to_json() == account.to_json() | {"name": A_KEY}
    assert found.revocations == {U_KEY: NOW, "*": 1}
    assert found.extra == account.extra
    assert found.limits.extra == {"tiered_limits": {}}
    key, read = found.signing_keys
    assert key == S_KEY
    assert isinstance(read, SigningScope)
    assert read.to_json() == scope.to_json()
    assert read.to_json()["kind"] == "user_scope"
    assert repr(scope) == f"SigningScope({S_KEY}, role='worker')"
    assert repr(account.limits).startswith("AccountLimits({")


def test_any_account_may_be_allowed():
    account = AccountClaims(A_KEY, auth_users=[U_KEY], allowed_accounts=["*"])
    assert account.to_json()["nats"]["authorization"]["allowed_accounts"] == ["*"]


def test_an_account_may_sign_itself():
    assert AccountClaims.decode(AccountClaims(A_KEY).encode(ACCOUNT, now=NOW)).issuer == A_KEY
    with pytest.raises(InvalidValue, match="issuer is not a key of type operator or acc"):
        AccountClaims(A_KEY).encode(USER, now=NOW)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subject": U_KEY}, "subject is not a key of type account"),
        ({"limits": {"subs": 1}}, "limits is not an AccountLimits"),
        ({"signing_keys": [U_KEY]}, "signing key is not"),
        ({"signing_keys": S_KEY}, "signing_keys is not a list"),
        ({"default_permissions": {"pub": {}}}, "default_permissions is not"),
        ({"revocations": {A_KEY: 1}}, "revoked key is not a key of type user"),
        ({"revocations": {U_KEY: -1}}, "revocation is not a time"),
        ({"auth_users": [A_KEY]}, "auth_users is not"),
        ({"auth_users": [U_KEY], "allowed_accounts": ["*", A_KEY]}, "has 1 characters"),
        ({"allowed_accounts": [A_KEY]}, "require auth_users"),
        ({"xkey": X_KEY}, "require auth_users"),
        ({"auth_users": [U_KEY], "xkey": A_KEY}, "xkey is not a key of type curve"),
        ({"description": 5}, "description is int"),
    ],
)
def test_bad_claims(given, said):
    with pytest.raises(InvalidValue, match=said):
        AccountClaims(**{"subject": A_KEY, **given})


@pytest.mark.parametrize(
    "given", [{"max_streams": -2}, {"disk_storage": "1G"}, {"wildcard_exports": 1}]
)
def test_bad_limits(given):
    with pytest.raises(InvalidValue, match=next(iter(given))):
        AccountLimits(**given)


@pytest.mark.parametrize(
    ("key", "limits", "said"),
    [(U_KEY, UserLimits(), "signing key is not"), (S_KEY, None, "limits is not a UserLimits")],
)
def test_bad_scopes(key, limits, said):
    with pytest.raises(InvalidValue, match=said):
        SigningScope(key, limits)
