"""The text of .creds files: the JWT of a user and its seed."""

from __future__ import annotations

from natsproto.errors import InvalidValue

from . import nkeys

_CREDS = """-----BEGIN NATS USER JWT-----
%s
------END NATS USER JWT------

************************* IMPORTANT *************************
The seed below proves the identity of the user. Keep it secret.

-----BEGIN USER NKEY SEED-----
%s
------END USER NKEY SEED------

*************************************************************
"""


def parse_creds(text: str) -> tuple[str, str]:
    """Return the JWT and the seed in the text of a .creds file.

    Raises InvalidValue if one of them is missing.
    """
    return _creds_block(text, "NATS USER JWT"), _creds_block(text, "USER NKEY SEED")


def format_creds(jwt: str, seed: str) -> str:
    """Return the text of a .creds file, which `connect(creds=path)` and other clients read.

    Raises InvalidValue unless the seed is that of a user, and the JWT one line of text.
    """
    prefix, _ = nkeys.decode_seed(seed)
    if prefix != nkeys.USER:
        raise InvalidValue("nkey seed has type %s; creds need a user (U)" % prefix, "AUTH-12")
    jwt = jwt.strip()
    if len(jwt.split(".")) != 3 or len(jwt.split()) != 1:
        raise InvalidValue("JWT does not consist of three parts with dots between them", "AUTH-13")
    return _CREDS % (jwt, seed.strip())  # AUTH-13


def _creds_block(text: str, title: str) -> str:
    """Return the text between the line with BEGIN and this title and the next such line."""
    value = ""
    inside = False
    for line in text.split("\n"):
        line = line.strip()
        marker = line.strip("-").strip() if line[:3] == line[-3:] == "---" else ""
        if inside and marker:
            if value:
                return value
            raise InvalidValue("block %r of creds is empty" % title, "AUTH-9")
        if inside:
            value += line
        elif marker == "BEGIN " + title:
            inside = True
    problem = "has no end" if inside else "is missing"
    raise InvalidValue("block %r of creds %s" % (title, problem), "AUTH-9")
