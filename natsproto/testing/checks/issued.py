"""JWTs that this package issues, and how a server treats them (ADR-14)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.auth import (
    AccountClaims,
    Permissions,
    SigningScope,
    UserClaims,
    UserLimits,
    format_creds,
    nkeys,
)
from natsproto.errors import AuthorizationFailed, PayloadTooLarge
from natsproto.testing import jwts
from natsproto.testing.checks.errors import denied
from natsproto.testing.context import WAIT, raises
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.testing.context import Context

_SIGNING, _SCOPED, _FOREIGN = (
    nkeys.encode_seed("A", bytes([number]) * 32) for number in (21, 22, 23)
)


def _account() -> str:
    return nkeys.public_key(jwts.ACCOUNT)


def _claims(*args: Any, **kwargs: Any) -> UserClaims:
    return UserClaims(nkeys.public_key(jwts.USER), *args, **kwargs)


def _server(ctx: Context) -> Any:
    """Return a server with an account that has signing keys, with and without a scope."""
    template = UserLimits(permissions=Permissions(publish_allow=["{{name()}}.>"]))
    keys: list[str | SigningScope] = [nkeys.public_key(_SIGNING)]
    keys += [SigningScope(nkeys.public_key(_SCOPED), template)]
    revoked = {nkeys.public_key(jwts.STRANGER): time.time() // 3600 * 3600}
    account = AccountClaims(_account(), signing_keys=keys, revocations=revoked)
    return ctx.shared_server(**jwts.server_config(account=account))


async def _connect(ctx: Context, limits: UserLimits, **options: Any) -> Client:
    jwt = _claims(limits).encode(jwts.ACCOUNT, now=time.time())
    proof: dict[str, Any] = options or {"nkey_seed": jwts.USER}
    return await ctx.connect(_server(ctx), jwt=jwt, **proof)


def _no_signature(nonce: bytes) -> bytes:
    return bytes(64)


async def _rejected(ctx: Context, jwt: str, seed: str = jwts.USER) -> None:
    with raises(AuthorizationFailed, within=WAIT):
        await ctx.connect(_server(ctx), jwt=jwt, nkey_seed=seed)


@check(needs=("cryptography",))
async def check_issued_users(ctx: Context) -> None:
    """Users that the account, or one of its signing keys, has signed are accepted."""
    now = time.time()
    user = _claims(name="ada", issuer_account=_account(), expires=now + 600, tags=["a"])
    for seed in (jwts.ACCOUNT, _SIGNING):
        path = ctx.path(format_creds(user.encode(seed, now=now), jwts.USER))
        client = await ctx.connect(_server(ctx), creds=path)
        await client.flush(timeout=WAIT)


@check(needs=("cryptography",))
async def check_issued_users_that_are_rejected(ctx: Context) -> None:
    """Expired, future, revoked and foreign users are rejected."""
    now = time.time()
    user = _claims()
    expired = _claims(expires=now - 60)
    await _rejected(ctx, expired.encode(jwts.ACCOUNT, now=now - 600))
    await _rejected(ctx, _claims(not_before=now + 600).encode(jwts.ACCOUNT, now=now))
    await _rejected(ctx, user.encode(_FOREIGN, now=now))
    await _rejected(ctx, user.encode(_SIGNING, now=now))  # without an issuer_account
    delegated = _claims(issuer_account=_account())
    await _rejected(ctx, delegated.encode(_FOREIGN, now=now))
    await _rejected(ctx, user.encode(jwts.ACCOUNT, now=now), jwts.STRANGER)
    revoked = UserClaims(nkeys.public_key(jwts.STRANGER))
    await _rejected(ctx, revoked.encode(jwts.ACCOUNT, now=now - 7200), jwts.STRANGER)


@check(needs=("cryptography",))
async def check_issued_permissions(ctx: Context) -> None:
    """A user's permissions are enforced, including those in the scope of a signing key."""
    permissions = Permissions(publish_allow=["ada.>"], subscribe_deny=["secret.>"])
    clients = [await _connect(ctx, UserLimits(permissions=permissions))]
    user = _claims(name="ada", issuer_account=_account(), scoped=True)
    jwt = user.encode(_SCOPED, now=time.time())
    clients.append(await ctx.connect(_server(ctx), jwt=jwt, nkey_seed=jwts.USER))
    for client in clients:
        await client.publish("ada.x", b"")
        await client.flush(timeout=WAIT)
        await client.publish("bob.x", b"")
        assert (await denied(client)).subject == "bob.x"


@check(needs=("cryptography",))
async def check_issued_limits(ctx: Context) -> None:
    """A user's limits on payload, network and connection type hold; a bearer needs no seed."""
    client = await _connect(ctx, UserLimits(max_payload=5, source_networks=["127.0.0.0/8"]))
    await client.publish("a", b"12345")
    await client.flush(timeout=WAIT)
    with raises(PayloadTooLarge):
        await client.publish("a", b"123456")
    await _connect(ctx, UserLimits(bearer=True), sign=_no_signature)
    for limits in (
        UserLimits(source_networks=["10.1.0.0/16", "fe80::/64"]),
        UserLimits(connection_types=["MQTT"]),
    ):
        with raises(AuthorizationFailed, within=WAIT):
            await _connect(ctx, limits)
