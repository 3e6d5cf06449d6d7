"""JWTs for nats-server: an operator, an account, and users of the account."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from natsproto.auth import nkeys

if TYPE_CHECKING:
    from collections.abc import Mapping

OPERATOR, ACCOUNT, USER, STRANGER, SYSTEM = (
    nkeys.encode_seed(kind, bytes([number]) * 32)
    for number, kind in enumerate(["O", "A", "U", "U", "A"], 1)
)
_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}
_JETSTREAM = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}


def server_config(*, jetstream: bool = False) -> dict[str, object]:
    """Return the configuration of a server that knows the operator and the account."""
    limits = {**_UNLIMITED, "conn": -1, "imports": -1, "exports": -1}
    system = _encode("account", SYSTEM, OPERATOR, {"limits": limits})
    if jetstream:
        limits.update(_JETSTREAM)
    account = _encode("account", ACCOUNT, OPERATOR, {"limits": limits})
    return {
        "operator": _encode("operator", OPERATOR, OPERATOR, {}),
        "system_account": nkeys.public_key(SYSTEM),  # JetStream needs one
        "resolver": "MEMORY",
        "resolver_preload": {
            nkeys.public_key(ACCOUNT): account,
            nkeys.public_key(SYSTEM): system,
        },
    }


def user_jwt(seed: str, *, expires: int = 0) -> str:
    """Return the JWT of a user of the account; `expires` is in seconds since 1970, 0: never."""
    return _encode("user", seed, ACCOUNT, _UNLIMITED, {"exp": expires} if expires else {})


def creds(jwt: str, seed: str) -> str:
    """Return the text of a .creds file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def _encode(
    kind: str,
    seed: str,
    signer: str,
    settings: Mapping[str, object],
    more: Mapping[str, object] | None = None,
) -> str:
    claims: dict[str, object] = {
        "sub": nkeys.public_key(seed),
        "name": kind,
        "iss": nkeys.public_key(signer),
        "iat": 1700000000,
        "nats": {"type": kind, "version": 2, **settings},
        **(more or {}),
    }
    digest = hashlib.sha256(json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    body = _pack(b'{"typ":"JWT","alg":"ed25519-nkey"}') + "." + _pack(json.dumps(claims).encode())
    return body + "." + _pack(nkeys.sign(signer, body.encode()))


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
