"""The JWTs of NATS: claims in JSON, signed with an nkey.

A JWT is three parts in base64url with dots between them: a constant header, the claims, and the
Ed25519 signature of the first two parts. The claim `iss` is the public key that signed them. So
`read_jwt` proves that the owner of that key wrote the claims; whether to trust it is up to the
caller.

The claims of operators, accounts and users are in claims.py and account_claims.py.
"""

from __future__ import annotations

import json
from hashlib import sha256

from natsproto.errors import InvalidValue
from natsproto.secret import as_secret
from natsproto.wire import base64url
from natsproto.wire.text import encode, shorten

from . import nkeys
from .claim_checks import check_map

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.secret import SecretLike

    from .nkeys import Signer

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_MOST = 1024 * 1024
_SIGNATURE = 64


class Issuer:
    """A key that signs JWTs: a seed, or a public key and a function that signs with its seed."""

    __slots__ = ("key", "sign")

    def __init__(self, seed: SecretLike = "", nkey: str = "", sign: Signer | None = None) -> None:
        if bool(seed) == bool(nkey) or bool(nkey) != (sign is not None):
            raise InvalidValue("issuer is neither a seed nor an nkey with sign", "D-JWT-3")
        secret = as_secret(seed)
        #: The public key.
        self.key: str = nkey.strip() if nkey else nkeys.public_key(secret.reveal())
        #: Returns the signature of bytes.
        self.sign: Signer = sign or (lambda data: nkeys.sign(secret.reveal(), data))

    @property
    def kind(self) -> str:
        """The type of the key, as its letter."""
        return nkeys.decode_public_key(self.key)[0]

    def __repr__(self) -> str:
        return "Issuer(%s)" % self.key


def write_jwt(claims: dict[str, Any], issuer: Issuer) -> str:
    """Return the JWT of claims, with the issuer and an id added to them."""
    claims["iss"] = issuer.key
    claims["jti"] = ""
    digest = sha256(json.dumps(claims).encode()).digest()
    claims["jti"] = nkeys.encode_base32(digest)  # JWT-2
    parts = [base64url.encode(json.dumps(each).encode()) for each in (_HEADER, claims)]  # JWT-1
    text = ".".join(parts)
    signature = issuer.sign(text.encode())
    if not isinstance(signature, bytes) or len(signature) != _SIGNATURE:
        raise InvalidValue("sign did not return %d bytes" % _SIGNATURE, "D-JWT-3")
    return text + "." + base64url.encode(signature)


def read_jwt(token: str) -> dict[str, Any]:
    """Return the claims of a JWT, whose signature is that of their issuer; raise InvalidValue."""
    if not isinstance(token, str):
        raise InvalidValue("JWT is %s, not a str" % type(token).__name__, "JWT-4")
    token = token.strip()
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _MOST:
        text = "JWT does not consist of three parts of at most 1 MiB: %d characters"
        raise InvalidValue(text % len(token), "JWT-4")
    header, claims = [_read_part(each) for each in parts[:2]]
    if str(header.get("typ")).upper() != "JWT" or header.get("alg") != _HEADER["alg"]:
        raise InvalidValue(
            "JWT has an unsupported algorithm: %s" % shorten(header.get("alg")), "JWT-4"
        )
    issuer = claims.get("iss")
    try:
        signature = base64url.decode(parts[2])
        genuine = nkeys.verify(str(issuer), encode(parts[0] + "." + parts[1]), signature)
    except ValueError:  # InvalidValue is a ValueError, too
        genuine = False
    if not genuine:
        raise InvalidValue("JWT is not signed by its issuer: %s" % shorten(issuer), "JWT-4")
    return claims


def _read_part(text: str) -> dict[str, Any]:
    try:
        return check_map("part", json.loads(base64url.decode(text)))
    except ValueError:  # InvalidValue is a ValueError, too
        raise InvalidValue("JWT has a part that is not JSON in base64url", "JWT-4") from None
