"""The claims of operators."""

from __future__ import annotations

import pytest

from natsproto.auth.jwt import read_jwt
from natsproto.auth.operator_claims import OperatorClaims
from natsproto.errors import InvalidValue
from tests.connection.jwt_keys import A_KEY, ACCOUNT, NOW, O_KEY, OPERATOR

pytestmark = pytest.mark.rule("JWT-5", "JWT-6")


def test_an_operator():
    claims = read_jwt(OperatorClaims(O_KEY, name="op").encode(OPERATOR, now=NOW))
    assert (claims["iss"], claims["name"]) == (O_KEY, "op")
    assert claims["nats"] == {"type": "operator", "version": 2}


def test_all_fields_are_read_back():
    operator = OperatorClaims(
        O_KEY,
        name="op",
        signing_keys=[O_KEY],
        system_account=A_KEY,
        account_server_url="https://a",
        service_urls=["nats://a:4222"],
        strict=True,
        expires=NOW + 60,
        tags=["t"],
    )
    found = OperatorClaims.decode(operator.encode(OPERATOR, now=NOW), now=NOW)
    assert found.to_json() == operator.to_json()
    assert (found.strict, found.system_account, found.extra) == (True, A_KEY, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subject": A_KEY}, "subject is not a key of type operator"),
        ({"signing_keys": [A_KEY]}, "signing_keys is not"),
        ({"system_account": O_KEY}, "system_account is not"),
        ({"service_urls": "nats://a"}, "service_urls is not a list"),
        ({"account_server_url": None}, "account_server_url is NoneType"),
        ({"strict": "yes"}, "strict is not True or False"),
    ],
)
def test_bad_claims(given, said):
    with pytest.raises(InvalidValue, match=said):
        OperatorClaims(**{"subject": O_KEY, **given})


def test_only_an_operator_signs_operators():
    with pytest.raises(InvalidValue, match="issuer is not a key of type operator"):
        OperatorClaims(O_KEY).encode(ACCOUNT, now=NOW)
