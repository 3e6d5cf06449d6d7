"""JWTs: their form, and their signatures."""

from __future__ import annotations

import base64
import json

import pytest

from natsproto.auth import nkeys
from natsproto.auth.jwt import Issuer, read_jwt, write_jwt
from natsproto.errors import InvalidValue
from natsproto.wire import base64url
from tests.connection.jwt_keys import A_KEY, ACCOUNT, CURVE, SIGNING


def part(value):
    return base64url.encode(json.dumps(value).encode())


def unpacked(text):
    return json.loads(base64.urlsafe_b64decode(text + "=="))


@pytest.mark.rule("JWT-1", "JWT-2")
def test_the_form_of_a_jwt():
    token = write_jwt({"sub": "x", "name": "Größe"}, Issuer(ACCOUNT))
    header, claims, signature = token.split(".")
    assert unpacked(header) == {"typ": "JWT", "alg": "ed25519-nkey"}
    read = unpacked(claims)
    assert (read["sub"], read["name"], read["iss"]) == ("x", "Größe", A_KEY)
    assert len(read["jti"]) == 52
    assert nkeys.verify(A_KEY, f"{header}.{claims}".encode(), base64url.decode(signature))
    assert read_jwt(token + "\n") == read
    assert "=" not in token


@pytest.mark.rule("D-JWT-3")
def test_a_function_can_sign():
    issuer = Issuer(nkey=A_KEY, sign=lambda data: nkeys.sign(ACCOUNT, data))
    assert (issuer.key, issuer.kind, repr(issuer)) == (A_KEY, "A", f"Issuer({A_KEY})")
    assert write_jwt({"sub": "x"}, issuer) == write_jwt({"sub": "x"}, Issuer(lambda: ACCOUNT))


@pytest.mark.rule("D-JWT-3")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seed": ACCOUNT, "nkey": A_KEY},
        {"seed": ACCOUNT, "sign": bytes},
        {"nkey": A_KEY},
        {"sign": bytes},
        {"seed": ACCOUNT, "nkey": A_KEY, "sign": bytes},
        {"seed": CURVE},
        {"seed": "SA"},
    ],
)
def test_other_issuers_are_rejected(given):
    with pytest.raises(InvalidValue):
        Issuer(**given)


@pytest.mark.rule("D-JWT-3")
@pytest.mark.parametrize("signature", [b"", bytes(63), "x" * 64, None])
def test_a_function_that_returns_no_signature(signature):
    with pytest.raises(InvalidValue, match="sign did not return 64 bytes"):
        write_jwt({"sub": "x"}, Issuer(nkey=A_KEY, sign=lambda _: signature))


GOOD = write_jwt({"sub": "x"}, Issuer(ACCOUNT))
HEADER, CLAIMS, SIGNATURE = GOOD.split(".")
BAD = [
    (None, "not a str"),
    ("", "three parts"),
    (HEADER + "." + CLAIMS, "three parts"),
    (GOOD + ".", "three parts"),
    ("a" * 1024 * 1024 + "." + CLAIMS + "." + SIGNATURE, "at most 1 MiB"),
    (f"!.{CLAIMS}.{SIGNATURE}", "not JSON in base64url"),
    (f"{HEADER}.{part([])}.{SIGNATURE}", "not JSON in base64url"),
    (f"{HEADER}.e30x.{SIGNATURE}", "not JSON in base64url"),
    (
        f"{part({'typ': 'JWT', 'alg': 'none'})}.{CLAIMS}.{SIGNATURE}",
        "unsupported algorithm: 'none'",
    ),
    (f"{part({'alg': 'ed25519-nkey'})}.{CLAIMS}.{SIGNATURE}", "unsupported algorithm"),
    (f"{HEADER}.{CLAIMS}.", "not signed by its issuer"),
    (f"{HEADER}.{CLAIMS}.!", "not signed by its issuer"),
    (f"{HEADER}.{CLAIMS}.{base64url.encode(bytes(64))}", "not signed by its issuer"),
    (f"{HEADER}.{part({'sub': 'y', 'iss': A_KEY})}.{SIGNATURE}", "not signed by its issuer"),
    (f"{HEADER}.{part({'sub': 'x'})}.{SIGNATURE}", "not signed by its issuer: None"),
]


@pytest.mark.rule("JWT-4")
@pytest.mark.parametrize(("token", "said"), BAD)
def test_other_texts_are_rejected(token, said):
    with pytest.raises(InvalidValue, match=said):
        read_jwt(token)


@pytest.mark.rule("JWT-4")
def test_a_jwt_that_another_key_signed_is_rejected():
    claims = dict(read_jwt(GOOD))
    text = HEADER + "." + part(claims)
    forged = text + "." + base64url.encode(nkeys.sign(SIGNING, text.encode()))
    with pytest.raises(InvalidValue, match="not signed by its issuer"):
        read_jwt(forged)


@pytest.mark.rule("JWT-4")
def test_the_type_may_be_in_lower_case():
    text = part({"typ": "jwt", "alg": "ed25519-nkey"}) + "." + CLAIMS
    signed = text + "." + base64url.encode(nkeys.sign(ACCOUNT, text.encode()))
    assert read_jwt(signed)["sub"] == "x"
