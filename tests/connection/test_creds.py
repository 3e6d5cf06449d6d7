"""The text of .creds files."""

from __future__ import annotations

import pytest

from natsproto.auth import nkeys
from natsproto.auth.creds import format_creds, parse_creds
from natsproto.errors import InvalidValue

SEED = nkeys.encode_seed("U", bytes(32))


@pytest.mark.rule("AUTH-13")
def test_both_ways():
    text = format_creds(" a.b.c\n", SEED + "\n")
    assert parse_creds(text) == ("a.b.c", SEED)
    lines = text.splitlines()
    assert lines[0] == "-----BEGIN NATS USER JWT-----"
    assert "------END USER NKEY SEED------" in lines


@pytest.mark.rule("AUTH-12", "AUTH-13")
@pytest.mark.parametrize(
    ("jwt", "seed", "said"),
    [
        ("a.b.c", nkeys.encode_seed("A", bytes(32)), "creds need a user"),
        ("a.b.c", "SU", "has 2 characters"),
        ("a.b", SEED, "three parts"),
        ("a.b.c\nd", SEED, "three parts"),
        ("", SEED, "three parts"),
    ],
)
def test_invalid_parts_are_rejected(jwt, seed, said):
    with pytest.raises(InvalidValue, match=said):
        format_creds(jwt, seed)


@pytest.mark.rule("AUTH-9")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is missing"),
        ("---BEGIN NATS USER JWT---\na", "has no end"),
        ("---BEGIN NATS USER JWT---\n---END---", "is empty"),
    ],
)
def test_incomplete_texts_are_rejected(text, said):
    with pytest.raises(InvalidValue, match=said):
        parse_creds(text)
