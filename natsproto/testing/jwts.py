"""JWTs for nats-server: an operator, an account, and users of the account."""

from __future__ import annotations

from natsproto.auth import (
    AccountClaims,
    AccountLimits,
    OperatorClaims,
    UserClaims,
    format_creds,
    nkeys,
)

OPERATOR, ACCOUNT, USER, STRANGER, SYSTEM = (
    nkeys.encode_seed(kind, bytes([number]) * 32)
    for number, kind in enumerate(["O", "A", "U", "U", "A"], 1)
)
ISSUED = 1700000000


def server_config(
    *, jetstream: bool = False, account: AccountClaims | None = None
) -> dict[str, object]:
    """Return the configuration of a server that knows the operator and the account."""
    limits = AccountLimits()
    if jetstream:
        limits = AccountLimits(memory_storage=-1, disk_storage=-1, max_streams=-1, max_consumers=-1)
    own = account or AccountClaims(nkeys.public_key(ACCOUNT), limits, name="account")
    system = AccountClaims(nkeys.public_key(SYSTEM), name="system")
    operator = OperatorClaims(nkeys.public_key(OPERATOR), name="operator")
    return {
        "operator": operator.encode(OPERATOR, now=ISSUED),
        "system_account": system.subject,  # JetStream needs one
        "resolver": "MEMORY",
        "resolver_preload": {
            each.subject: each.encode(OPERATOR, now=ISSUED) for each in (own, system)
        },
    }


def user_jwt(seed: str, *, expires: int = 0) -> str:
    """Return the JWT of a user of the account; `expires` is in seconds since 1970, 0: never."""
    user = UserClaims(nkeys.public_key(seed), name="user", expires=expires)
    return user.encode(ACCOUNT, now=ISSUED)


def creds(jwt: str, seed: str) -> str:
    """Return the text of a .creds file."""
    return format_creds(jwt, seed)
