"""Authentication: every kind of credentials, and servers that reject them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.auth import nkeys
from natsproto.errors import AuthorizationFailed, ConnectionClosed
from natsproto.events import Closed, Connected, Disconnected
from natsproto.testing import jwts
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises, take
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.testing.server import Server

_PASSWORD = "p%:@/ö"


def _users(ctx: Context) -> Server:
    """Return a server with a user and, if a library is installed, with an nkey."""
    return ctx.shared_server(authorization={"users": [{"user": "joe", "password": _PASSWORD}]})


def _keys(ctx: Context) -> Server:
    users = [{"nkey": nkeys.public_key(jwts.USER)}]
    return ctx.shared_server(authorization={"users": users})


async def _works(ctx: Context, client: Client) -> None:
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_user_and_password(ctx: Context) -> None:
    """A user with the right password is accepted."""
    await _works(ctx, await ctx.connect(_users(ctx), user="joe", password=_PASSWORD))


@check()
async def check_wrong_password(ctx: Context) -> None:
    """A wrong password raises AuthorizationFailed at once, and the message does not show it."""
    with raises(AuthorizationFailed, within=SOON) as caught:
        await ctx.connect(_users(ctx), user="joe", password="wrong-one")
    assert "wrong-one" not in repr(caught.error)


@check()
async def check_no_credentials(ctx: Context) -> None:
    """Missing credentials raise AuthorizationFailed as well."""
    with raises(AuthorizationFailed, within=SOON):
        await ctx.connect(_users(ctx))


@check()
async def check_credentials_in_url(ctx: Context) -> None:
    """Percent-encoded credentials in the URL take precedence over the options."""
    url = f"nats://joe:p%25%3A%40%2F%C3%B6@127.0.0.1:{_users(ctx).port}"
    client = await ctx.connect(url)
    await _works(ctx, client)
    assert client.connected_url == _users(ctx).url
    await ctx.connect(url, user="joe", password="wrong-one")


@check()
async def check_token(ctx: Context) -> None:
    """A token is accepted as an option and in the URL."""
    server = ctx.shared_server(authorization={"token": "t-0/k@n"})
    await _works(ctx, await ctx.connect(server, token="t-0/k@n"))
    await ctx.connect(f"nats://t-0%2Fk%40n@127.0.0.1:{server.port}")
    with raises(AuthorizationFailed):
        await ctx.connect(server, token="another")


@check()
async def check_one_server_rejects_the_credentials(ctx: Context) -> None:
    """If a server rejects the credentials, the next one is tried."""
    client = await ctx.connect(
        [_users(ctx).url, ctx.server.url], shuffle=False, user="joe", password="wrong"
    )
    assert client.connected_url == ctx.server.url


@check(needs=("cryptography",))
async def check_nkey(ctx: Context) -> None:
    """The seed of an nkey signs the server's nonce."""
    await _works(ctx, await ctx.connect(_keys(ctx), nkey_seed=jwts.USER))
    with raises(AuthorizationFailed):
        await ctx.connect(_keys(ctx), nkey_seed=jwts.STRANGER)


@check(needs=("cryptography",))
async def check_signature_callback(ctx: Context) -> None:
    """A callback can sign the nonce, so that the seed is kept elsewhere."""
    await ctx.connect(
        _keys(ctx),
        nkey=nkeys.public_key(jwts.USER),
        sign=lambda nonce: nkeys.sign(jwts.USER, nonce),
    )


@check(needs=("cryptography",))
async def check_creds_file(ctx: Context) -> None:
    """The path of a .creds file is sufficient."""
    server = ctx.shared_server(**jwts.server_config())
    good = ctx.path(jwts.creds(jwts.user_jwt(jwts.USER), jwts.USER))
    bad = ctx.path(jwts.creds(jwts.user_jwt(jwts.USER), jwts.STRANGER))
    await _works(ctx, await ctx.connect(server, creds=good))
    with raises(AuthorizationFailed):
        await ctx.connect(server, creds=bad)


@check(needs=("cryptography",))
async def check_jwt_and_seed(ctx: Context) -> None:
    """A JWT works with its seed, or with a callback that signs."""
    server = ctx.shared_server(**jwts.server_config())
    jwt = jwts.user_jwt(jwts.USER)
    await _works(ctx, await ctx.connect(server, jwt=jwt, nkey_seed=jwts.USER))
    await ctx.connect(server, jwt=jwt, sign=lambda nonce: nkeys.sign(jwts.USER, nonce))


@check(needs=("cryptography",))
async def check_expired_jwt(ctx: Context) -> None:
    """When a user's JWT expires and there is no newer one, the client closes with the reason."""
    server = ctx.shared_server(**jwts.server_config())
    jwt = jwts.user_jwt(jwts.USER, expires=int(time.time()) + 2)
    client = await ctx.connect(server, jwt=jwt, nkey_seed=jwts.USER)
    sub = await client.subscribe(ctx.subject)
    lost = await next_event(client, Disconnected)
    assert isinstance(lost.error, AuthorizationFailed)
    closed = await next_event(client, Closed)
    assert isinstance(closed.error, AuthorizationFailed)
    with raises(ConnectionClosed) as caught:
        await sub.next(WAIT)
    assert str(closed.error) in str(caught.error)


@check(needs=("cryptography",))
async def check_renewed_creds(ctx: Context) -> None:
    """A .creds file is read at every attempt, so a client reconnects with a renewed one."""
    server = ctx.shared_server(**jwts.server_config())
    soon = jwts.user_jwt(jwts.USER, expires=int(time.time()) + 2)
    path = ctx.path(jwts.creds(soon, jwts.USER))
    client = await ctx.connect(server, creds=path)
    await next_event(client, Connected)
    with open(path, "w") as file:  # noqa: ASYNC230 a few bytes
        file.write(jwts.creds(jwts.user_jwt(jwts.USER), jwts.USER))
    assert isinstance((await next_event(client, Disconnected)).error, AuthorizationFailed)
    assert (await next_event(client, Connected)).again
    await _works(ctx, client)


@check()
async def check_credential_callbacks(ctx: Context) -> None:
    """Callbacks return the credentials of each attempt: after a change the new ones are used."""

    def config(password: str) -> dict[str, Any]:
        return {"authorization": {"user": "joe", "password": password}}

    asked: list[str] = []

    def password() -> str:
        asked.append(current)
        return current

    current = "first"
    server = ctx.own_server(**config(current))
    client = await ctx.connect(server, user=lambda: "joe", password=password)
    assert asked == ["first"]
    current = "second"
    server.reload(config(current))  # disconnects clients that used the first one
    await next_event(client, Disconnected)
    assert (await next_event(client, Connected)).again
    assert asked[-1] == "second"
    await _works(ctx, client)


@check()
async def check_failing_callback(ctx: Context) -> None:
    """A callback that fails raises AuthorizationFailed, and connect does not hang."""

    def fail() -> str:
        raise ValueError("the vault is closed")

    with raises(AuthorizationFailed, within=SOON):
        await ctx.connect(_users(ctx), user="joe", password=fail)


@check()
async def check_thrown_out_for_good(ctx: Context) -> None:
    """Credentials that are rejected twice in a row end the client: retrying would not help."""
    server = ctx.own_server(authorization={"user": "joe", "password": "old"})
    client = await ctx.connect(server, user="joe", password="old", max_reconnects=-1)
    server.reload({"authorization": {"user": "joe", "password": "new"}})
    closed = await next_event(client, Closed)
    assert isinstance(closed.error, AuthorizationFailed)
    assert client.state == "CLOSED"
