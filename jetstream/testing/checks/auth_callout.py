"""Auth callouts: a service authorizes clients for a server (ADR-26)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jetstream
import jetstream.blocking
from jetstream.testing.services import Served, service_of, settings
from jetstream.testing.streams import until
from jetstream.testing.suite import check
from natsproto.auth import (
    AccountClaims,
    AuthCallout,
    Permissions,
    UserClaims,
    UserLimits,
    nkeys,
    xkeys,
)
from natsproto.errors import AuthorizationFailed, NatsError, UserRejected
from natsproto.testing import jwts
from natsproto.testing.blocking_view import View, viewed
from natsproto.testing.checks.errors import denied
from natsproto.testing.context import WAIT, raises

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.auth import AuthRequest
    from natsproto.testing.context import Context
    from natsproto.testing.server import Server

_ISSUER, _APP = (nkeys.encode_seed("A", bytes([number]) * 32) for number in (31, 32))
_XKEY = nkeys.encode_seed("X", bytes([33]) * 32)
_SERVICE: dict[str, Any] = {"user": "auth", "password": "secret"}


def _config(timeout: float = 4 * WAIT, **callout: Any) -> dict[str, Any]:
    return {
        "accounts": {"APP": {}, "AUTH": {"users": [_SERVICE]}},
        "authorization": {
            "timeout": timeout,
            "auth_callout": {
                "issuer": nkeys.public_key(_ISSUER),
                "auth_users": ["auth"],
                "account": "AUTH",
                **callout,
            },
        },
    }


async def _serve(
    ctx: Context,
    server: Server,
    authorize: Callable[[AuthRequest], Any],
    callout: AuthCallout | None = None,
    **credentials: Any,
) -> Served:
    """Run a service that authorizes clients of the server."""
    credentials = credentials or _SERVICE
    client = await ctx.connect(server, **credentials)
    asker = await ctx.connect(server, **credentials)
    service = service_of(client, **settings(ctx, {}))
    add: Any = jetstream.add_auth_callout
    if isinstance(client, View):
        add = viewed(jetstream.blocking.add_auth_callout)
    add(service, callout or AuthCallout(_ISSUER), authorize)
    return await Served(ctx, service, client, asker).run()


async def _authorize(request: AuthRequest) -> Any:
    """Accept ada, with limits; reject bob with a reason; fail for others."""
    options = request.options
    if (options.user, options.password) == ("ada", "right"):
        assert (request.client.kind, request.client.type) == ("Client", "nats")
        assert "right" not in repr(request)
        permissions = Permissions(publish_allow=["ada.>"])
        return request.user(UserLimits(permissions=permissions), account="APP")
    if options.user == "bob":
        raise UserRejected("bob has left")
    raise KeyError(options.user)


async def _check_answers(ctx: Context, server: Server, served: Served) -> None:
    """Check the answers of `_authorize`, and what the service counts."""
    client = await ctx.connect(server, user="ada", password="right")
    await client.publish("ada.x", b"")
    await client.publish("bob.x", b"")
    assert (await denied(client)).subject == "bob.x"
    for user in ("bob", "eve"):
        with raises(AuthorizationFailed, within=2 * WAIT):
            await ctx.connect(server, user=user, password="right")
    stats = await _failed_once(served)  # only eve is an error of the service
    assert stats.num_requests == 3
    assert "KeyError" in stats.last_error


async def _failed_once(served: Served) -> Any:
    """Return the statistics once they have an error, which is counted after the client's answer."""
    found: list[Any] = []

    async def look() -> bool:
        found.append(await served.stats_of("auth"))
        return bool(found[-1].num_errors)

    await until(served.asker, look)
    assert found[-1].num_errors == 1
    return found[-1]


@check(needs=("cryptography",))
async def check_auth_callout(ctx: Context) -> None:
    """Clients are accepted, rejected with a reason, and rejected if the function fails."""
    server = ctx.shared_server(**_config())
    served = await _serve(ctx, server, _authorize)
    await _check_answers(ctx, server, served)
    await served.stop()


@check(needs=("cryptography", "nacl"))
async def check_auth_callout_encrypted(ctx: Context) -> None:
    """Callouts work with encryption; an unencrypted service then cannot read the requests."""
    server = ctx.shared_server(**_config(xkey=xkeys.public_xkey(_XKEY)))
    served = await _serve(ctx, server, _authorize, AuthCallout(_ISSUER, xkey_seed=_XKEY))
    await _check_answers(ctx, server, served)
    await served.stop()
    served = await _serve(ctx, server, _authorize)
    with raises(AuthorizationFailed, within=2 * WAIT):
        await ctx.connect(server, user="ada", password="right")
    await _failed_once(served)
    await served.stop()


@check(needs=("cryptography",))
async def check_auth_callout_of_a_stranger(ctx: Context) -> None:
    """Users with another key, or signed by a stranger, are not accepted."""
    server = ctx.shared_server(**_config())

    async def other_key(request: AuthRequest) -> UserClaims:
        return UserClaims(nkeys.public_key(jwts.USER), audience="APP")

    async def stranger(request: AuthRequest) -> str:
        return request.user(account="APP").encode(_APP, now=time.time())

    for authorize in (other_key, stranger):
        served = await _serve(ctx, server, authorize)
        with raises(AuthorizationFailed, within=2 * WAIT):
            await ctx.connect(server, user="ada", password="right")
        await served.stop()


@check(needs=("cryptography",))
async def check_auth_callout_that_is_too_slow(ctx: Context) -> None:
    """A client is rejected if the answer takes too long; the late answer is ignored."""
    server = ctx.shared_server(**_config(timeout=1.0))
    gate = await ctx.connect(server, **_SERVICE)
    opened = await gate.subscribe(ctx.subject)
    await gate.flush(WAIT)

    async def authorize(request: AuthRequest) -> UserClaims:
        await opened.next(timeout=6 * WAIT)
        return request.user(account="APP")

    served = await _serve(ctx, server, authorize)
    with raises(NatsError, within=6 * WAIT):
        await ctx.connect(server, user="ada", password="right", connect_timeout=6 * WAIT)
    await served.asker.publish(ctx.subject, b"")
    await served.asker.flush(WAIT)
    stats = await served.stats_of("auth")
    assert stats.num_errors == 0
    await served.stop()


@check(needs=("cryptography",))
async def check_auth_callout_of_an_operator(ctx: Context) -> None:
    """With an operator, the callout account places users in other accounts, which sign them."""
    service_key, app = nkeys.public_key(jwts.STRANGER), nkeys.public_key(_APP)
    account = AccountClaims(
        nkeys.public_key(jwts.ACCOUNT), auth_users=[service_key], allowed_accounts=[app]
    )
    config: dict[str, Any] = jwts.server_config(account=account)
    config["resolver_preload"][app] = AccountClaims(app).encode(jwts.OPERATOR, now=jwts.ISSUED)
    server = ctx.shared_server(**config)
    now = time.time()
    nobody = UserLimits(permissions=Permissions(publish_deny=[">"], subscribe_deny=[">"]))
    sentinel = UserClaims(nkeys.public_key(jwts.USER), nobody).encode(jwts.ACCOUNT, now=now)

    async def authorize(request: AuthRequest) -> str:
        assert request.options.jwt == sentinel
        if request.options.token != "right":
            raise UserRejected("wrong token")
        return UserClaims(request.user_nkey, name="ada").encode(_APP, now=now)

    service_jwt = UserClaims(service_key).encode(jwts.ACCOUNT, now=now)
    served = await _serve(
        ctx,
        server,
        authorize,
        AuthCallout(jwts.ACCOUNT),
        jwt=service_jwt,
        nkey_seed=jwts.STRANGER,
    )
    credentials: dict[str, Any] = {"jwt": sentinel, "nkey_seed": jwts.USER}
    client = await ctx.connect(server, token="right", **credentials)
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    assert (await sub.next(timeout=WAIT)).data == b"1"
    with raises(AuthorizationFailed, within=2 * WAIT):
        await ctx.connect(server, token="wrong", **credentials)
    await served.stop()
