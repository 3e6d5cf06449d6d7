"""TLS: it is used whenever it is required, and the peer's certificate is verified."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from natsproto.errors import ConnectFailed, InvalidValue, TlsFailed
from natsproto.events import Connected, Disconnected
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises, take
from natsproto.testing.peers import FOREVER, Listener
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.testing.server import Server

_NEEDS = ("trustme",)
_NAME = "server.example"
_CLIENT_HELLO = b"\x16\x03"  # how its TLS record starts


def _server(ctx: Context) -> Server:
    """Return a server at 127.0.0.1 with a certificate for that address alone."""
    return ctx.shared_server(tls=ctx.certificates.server("127.0.0.1"))


def _named_server(ctx: Context) -> Server:
    """Return a server whose certificate is for another name than its address."""
    return ctx.shared_server(tls=ctx.certificates.server(_NAME))


async def _works(ctx: Context, client: Client) -> None:
    sub = await client.subscribe(ctx.subject)
    payload = bytes(range(256)) * 1000
    await client.publish(ctx.subject, b"small")
    await client.publish(ctx.subject, payload)
    assert await take(sub, 2) == [b"small", payload]


def _why(error: ConnectFailed) -> Exception:
    """Return the reason why the only attempt failed."""
    [(_, why)] = error.errors
    return why


@check(needs=_NEEDS)
async def check_tls(ctx: Context) -> None:
    """TLS works with a given authority, for an address as well as for a name."""
    client = await ctx.connect(_server(ctx), tls=ctx.certificates.client())
    assert client.connected_url.startswith("tls://127.0.0.1:")
    await _works(ctx, client)


@check()
async def check_tls_of_a_wrong_type(ctx: Context) -> None:
    """A value that is not a context is rejected before the client dials."""
    with Listener(b"") as unused, raises(InvalidValue, within=SOON):
        await ctx.connect("nats://" + unused.address, tls={"ca": "ca.pem"})
    assert unused.heard == []


@check(needs=_NEEDS)
async def check_tls_large_payloads(ctx: Context) -> None:
    """TLS transfers megabytes in both directions at once."""
    client = await ctx.connect(_server(ctx), tls=ctx.certificates.client())
    sub = await client.subscribe(ctx.subject)
    payloads = [bytes([n]) * 1024 * 1024 for n in range(8)]
    for payload in payloads:
        await client.publish(ctx.subject, payload)
    for payload in payloads:
        assert (await sub.next(WAIT)).data == payload


@check(needs=_NEEDS)
async def check_tls_without_scheme(ctx: Context) -> None:
    """If the server requires TLS, it is used even if the URL does not request it."""
    url = f"nats://127.0.0.1:{_server(ctx).port}"
    await _works(ctx, await ctx.connect(url, tls=ctx.certificates.client()))


@check(needs=_NEEDS)
async def check_tls_unknown_authority(ctx: Context) -> None:
    """A certificate from an untrusted authority is rejected at once."""
    with raises(ConnectFailed, within=SOON) as caught:
        await ctx.connect(_server(ctx), tls=ctx.certificates.stranger())
    assert isinstance(_why(caught.error), TlsFailed)


@check(needs=_NEEDS)
async def check_tls_default_authorities(ctx: Context) -> None:
    """Without a context only the authorities that the system trusts are trusted."""
    for url in (_server(ctx).url, f"nats://127.0.0.1:{_server(ctx).port}"):
        with raises(ConnectFailed) as caught:
            await ctx.connect(url)
        assert isinstance(_why(caught.error), TlsFailed)


@check(needs=_NEEDS)
async def check_tls_wrong_name(ctx: Context) -> None:
    """A certificate for another host is rejected."""
    context = ctx.certificates.client()
    with raises(ConnectFailed) as caught:
        await ctx.connect(_named_server(ctx), tls=context)
    assert isinstance(_why(caught.error), TlsFailed)
    with raises(ConnectFailed):
        await ctx.connect(f"tls://localhost:{_server(ctx).port}", tls=context)


@check(needs=_NEEDS)
async def check_tls_hostname(ctx: Context) -> None:
    """tls_hostname is the name that the certificate is checked against."""
    context = ctx.certificates.client()
    await _works(ctx, await ctx.connect(_named_server(ctx), tls=context, tls_hostname=_NAME))
    with raises(ConnectFailed):
        await ctx.connect(_server(ctx), tls=context, tls_hostname=_NAME)


@check(needs=_NEEDS)
async def check_tls_client_certificate(ctx: Context) -> None:
    """A server that requires a client certificate gets it; without one, connect fails."""
    server = ctx.shared_server(tls=ctx.certificates.server("127.0.0.1", verify=True))
    await _works(ctx, await ctx.connect(server, tls=ctx.certificates.client(certificate=True)))
    with raises(ConnectFailed, within=SOON):
        await ctx.connect(server, tls=ctx.certificates.client())


@check(needs=_NEEDS, since=(2, 10, 4))
async def check_tls_first(ctx: Context) -> None:
    """With tls_first TLS starts before INFO, if the server is configured for it."""
    server = ctx.shared_server(tls=ctx.certificates.server("127.0.0.1", handshake_first=True))
    context = ctx.certificates.client()
    await _works(ctx, await ctx.connect(server, tls=context, tls_first=True))
    with raises(ConnectFailed):
        await ctx.connect(server, tls=context, connect_timeout=0.3)


@check(needs=_NEEDS)
async def check_tls_optional(ctx: Context) -> None:
    """If TLS is available but not required, the URL decides."""
    tls = ctx.certificates.server("127.0.0.1")
    server = ctx.shared_server(tls=tls, allow_non_tls=True)
    plain = await ctx.connect(f"nats://127.0.0.1:{server.port}", name="plain")
    secure = await ctx.connect(
        f"tls://127.0.0.1:{server.port}", name="secure", tls=ctx.certificates.client()
    )
    await _works(ctx, plain)
    await _works(ctx, secure)
    connections = server.monitor("/connz")["connections"]
    versions = {each["name"]: each.get("tls_version") for each in connections}
    assert versions["plain"] is None
    assert versions["secure"]


@check(needs=_NEEDS)
async def check_tls_reconnect(ctx: Context) -> None:
    """A reconnect is as secure as the first connection."""
    server = ctx.own_server(tls=ctx.certificates.server("127.0.0.1"))
    client = await ctx.connect(server, tls=ctx.certificates.client(), name="secure")
    server.kill()
    await next_event(client, Disconnected)
    server.restart()
    while not (await next_event(client, Connected)).again:
        pass
    await _works(ctx, client)
    [connection] = server.monitor("/connz")["connections"]
    assert connection["tls_version"]


@check()
async def check_tls_not_offered(ctx: Context) -> None:
    """If TLS is required and not offered, connect fails."""
    url = f"127.0.0.1:{ctx.server.port}"
    with raises(ConnectFailed, within=SOON) as caught:
        await ctx.connect("tls://" + url)
    assert isinstance(_why(caught.error), TlsFailed)
    with raises(ConnectFailed, within=SOON):
        await ctx.connect("nats://" + url, tls=True)


@check()
async def check_tls_stripped(ctx: Context) -> None:
    """Whatever INFO says, nothing is sent in plaintext if TLS is required."""
    infos = [
        b'INFO {"server_id":"x","version":"2.10.0","auth_required":true}\r\n',
        b'INFO {"server_id":"x","version":"2.10.0","tls_available":false}\r\n',
        b'INFO {"server_id":"x","version":"2.10.0","tls_required":true}\r\n',
        b'INFO {"server_id":"x","version":"2.10.0","tls_available":true}\r\nPONG\r\n',
        b"",
    ]
    heard: list[bytes] = []
    for info in infos:
        # Its answer to a ClientHello ends the handshake; a client that waits for INFO times out.
        with Listener(info, (_CLIENT_HELLO, b"not TLS\r\n"), FOREVER) as listener:
            with raises(ConnectFailed):
                await ctx.connect(f"tls://joe:hush-hush@{listener.address}", connect_timeout=1.0)
            with raises(ConnectFailed):
                await ctx.connect(
                    f"nats://{listener.address}",
                    user="joe",
                    password="hush-hush",
                    tls=ssl.create_default_context(),
                    tls_first=True,
                    connect_timeout=1.0,
                )
        heard += listener.heard
    assert len(heard) == 2 * len(infos)
    for data in heard:
        assert data == b"" or data.startswith(_CLIENT_HELLO), data
        assert b"hush-hush" not in data
