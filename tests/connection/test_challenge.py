from __future__ import annotations

import base64

import pytest

from natsproto.auth import nkeys
from natsproto.auth.challenge import Challenge, callback_failed
from natsproto.errors import AuthorizationFailed, InvalidValue, MissingExtra

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
RAW = nkeys.decode_public_key(PUBLIC)[1]
SIGNATURE = bytes(range(64))
SIG = base64.urlsafe_b64encode(SIGNATURE).decode().rstrip("=")


@pytest.mark.rule("AUTH-5")
@pytest.mark.parametrize(
    ("challenge", "fields"),
    [
        (Challenge({}, b"n", SEED, None, True), {"nkey": PUBLIC}),
        (Challenge({"jwt": "j"}, b"n", SEED), {"jwt": "j"}),
        (Challenge({"nkey": PUBLIC}, b"n", sign=lambda _: SIGNATURE), {"nkey": PUBLIC}),
    ],
)
def test_an_answer_is_signed_here(challenge, fields):
    pytest.importorskip("cryptography")
    sig = SIG
    if challenge.sign is None:
        sig = base64.urlsafe_b64encode(nkeys.sign(SEED, b"n")).decode().rstrip("=")
    assert challenge.answer() == {**fields, "sig": sig}


@pytest.mark.rule("D-AUTH-14", "AUTH-5")
@pytest.mark.parametrize(
    ("names_key", "fields"), [(True, {"nkey": PUBLIC, "sig": SIG}), (False, {"sig": SIG})]
)
def test_a_signature_of_the_adapter(names_key, fields):
    challenge = Challenge({}, b"n", SEED, None, names_key)
    assert challenge.seed.reveal() == SEED
    assert challenge.fields(SIGNATURE, RAW) == fields


@pytest.mark.rule("D-AUTH-10", "D-AUTH-14")
@pytest.mark.parametrize(
    ("signature", "error", "failure", "text"),
    [
        (b"x" * 63, None, AuthorizationFailed, "sign did not return 64 bytes"),
        ("x" * 64, None, AuthorizationFailed, "sign did not return 64 bytes"),
        (b"", OSError("hush"), AuthorizationFailed, "credentials callback sign failed: OSError"),
        (b"", MissingExtra("no Ed25519"), MissingExtra, "no Ed25519"),
    ],
)
def test_a_signature_that_failed(signature, error, failure, text):
    with pytest.raises(failure) as caught:
        Challenge({}, b"n", SEED).fields(signature, b"", error)
    assert text in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_public_key_of_the_wrong_size():
    with pytest.raises(InvalidValue, match="31 raw bytes"):
        Challenge({}, b"n", SEED, None, True).fields(SIGNATURE, bytes(31))


@pytest.mark.rule("D-AUTH-10")
def test_a_function_that_fails():
    def sign(nonce):
        raise OSError("hush")

    with pytest.raises(AuthorizationFailed) as caught:
        Challenge({}, b"n", sign=sign).answer()
    assert str(caught.value) == "credentials callback sign failed: OSError"
    assert str(callback_failed("sign", OSError("hush"))) == str(caught.value)


@pytest.mark.rule("D-AUTH-1")
def test_nothing_shows():
    challenge = Challenge({"pass": "hush"}, b"n", SEED)
    assert repr(challenge) == "Challenge(***)"
    assert SEED not in repr([getattr(challenge, name) for name in ("nonce", "seed", "sign")])
