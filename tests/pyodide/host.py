"""Programs for Pyodide: what only its adapter does. `main` runs them all."""

from __future__ import annotations

import asyncio
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import js

from natsproto.adapters._webcrypto import sign_nonce
from natsproto.adapters.pyodide import connect
from natsproto.auth.challenge import Challenge
from natsproto.errors import (
    AuthorizationFailed,
    ConnectFailed,
    InvalidValue,
    MissingExtra,
    NatsError,
)
from natsproto.events import Connected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsproto.client import Client

WAIT = 5.0


async def main(given: dict[str, Any], omitted: list[str]) -> dict[str, str]:
    """Run the programs with these URLs and credentials; return those that failed, and why."""
    failed = {}
    for program in PROGRAMS:
        if program.__name__ in omitted:
            continue
        try:
            await program(given)
        except Exception:
            failed[program.__name__] = traceback.format_exc()
    return failed


@contextmanager
def raises(kind: type[NatsError], *texts: str) -> Iterator[None]:
    caught = None
    try:
        yield
    except kind as error:
        caught = error
    assert caught is not None, f"{kind.__name__} was not raised"
    assert all(text in str(caught) for text in texts), caught


async def works(client: Client) -> None:
    sub = await client.subscribe("works")
    await client.publish("works", b"1")
    assert (await sub.next(WAIT)).data == b"1"


async def nkeys(given: dict[str, Any]) -> None:
    """WebCrypto signs with a seed, at every attempt."""
    async with connect(given["nkeys"], nkey_seed=given["seed"]) as client:
        await works(client)
        events = client.events
        await client.force_reconnect()
        while not isinstance(event := await events.next(WAIT), Connected) or not event.again:
            pass
        await works(client)
    with raises(AuthorizationFailed, "Authorization Violation"):
        await connect(given["nkeys"], nkey_seed=given["stranger"])


async def functions_that_sign(given: dict[str, Any]) -> None:
    """A function may return the signature, a coroutine or a promise; a failure ends the attempt."""

    async def sign(nonce: bytes) -> bytes:
        challenge = Challenge({}, nonce, given["seed"])
        return (await sign_nonce(challenge))[0]

    async def fail(nonce: bytes) -> bytes:
        raise ValueError("hush")

    async with connect(given["nkeys"], nkey=given["public"], sign=sign) as client:
        await works(client)
    promise = js.eval("() => Promise.resolve(new Uint8Array(64))")
    for wrong in (lambda nonce: bytes(64), lambda nonce: promise()):
        with raises(AuthorizationFailed, "Authorization Violation"):
            await connect(given["nkeys"], nkey=given["public"], sign=wrong)
    with raises(AuthorizationFailed, "callback sign failed: ValueError"):
        await connect(given["nkeys"], nkey=given["public"], sign=fail)


async def slow_functions(given: dict[str, Any]) -> None:
    """A signature that does not come in time ends the attempt, and the function is canceled."""
    canceled = asyncio.Event()

    async def sign(nonce: bytes) -> bytes:
        try:
            await asyncio.sleep(60)
        finally:
            canceled.set()
        return b""

    with raises(ConnectFailed, "was not signed within 0.2 s"):
        await connect(given["nkeys"], nkey=given["public"], sign=sign, connect_timeout=0.2)
    await asyncio.wait_for(canceled.wait(), WAIT)


async def stubborn_functions(given: dict[str, Any]) -> None:
    """A signature that comes although its attempt has ended is ignored."""
    tasks = []

    async def sign(nonce: bytes) -> bytes:
        tasks.append(asyncio.current_task())
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return bytes(64)

    client = await connect(
        given["nkeys"],
        nkey=given["public"],
        sign=sign,
        connect_timeout=0.2,
        reconnect_delays=[60.0],
        retry_on_first_connect=True,
    )
    while not tasks:
        await client.events.next(WAIT)
    await asyncio.wait(tasks, timeout=WAIT)
    assert [task.exception() for task in tasks] == [None]
    assert client.state == "WAITING"
    await client.close()


async def credentials(given: dict[str, Any]) -> None:
    """Creds are text or the path of a file; a JWT comes with its seed."""
    path = Path("/tmp/user.creds")
    path.write_text(given["creds"])  # noqa: ASYNC240 in memory
    for options in (
        {"creds": given["creds"]},
        {"creds": lambda: given["creds"]},
        {"creds": path},
        {"jwt": given["jwt"], "nkey_seed": given["seed"]},
    ):
        async with connect(given["jwts"], **options) as client:
            await works(client)
    with raises(InvalidValue, "AUTH-9"):
        connect(given["jwts"], creds="not creds")


async def no_webcrypto(given: dict[str, Any]) -> None:
    """Without Ed25519 in WebCrypto, a library is needed, and the error says so."""
    crypto = js.crypto
    hide = "(value) => Object.defineProperty(globalThis, 'crypto', {value, configurable: true})"
    js.eval(hide)(None)
    try:
        with raises(MissingExtra, "page is not from https", "load cryptography"):
            await connect(given["nkeys"], nkey_seed=given["seed"])
    finally:
        js.eval(hide)(crypto)


async def tls(given: dict[str, Any]) -> None:
    """wss has TLS from the start; there is no upgrade, whatever INFO says."""
    async with connect(given["wss"], tls=True) as client:
        assert client.info.tls_required
        assert client.connected_url == given["wss"]
        await works(client)


async def certificates(given: dict[str, Any]) -> None:
    """The host checks certificates: here one for another name."""
    with raises(ConnectFailed, "WebSocket was not opened"):
        await connect(given["other_name"])


async def discovery(given: dict[str, Any]) -> None:
    """Members of a cluster are used only on request (D-POOL-18)."""
    one, other = given["cluster"]
    async with connect(one) as client:
        await client.flush(WAIT)
        assert client.servers == [one]
    async with connect(one, ignore_discovered=False) as client:
        await client.flush(WAIT)
        assert sorted(client.servers) == sorted([one, other])


async def no_server(given: dict[str, Any]) -> None:
    """An attempt that fails is reported at once, not at the timeout."""
    began = time.monotonic()
    with raises(ConnectFailed, "WebSocket was not opened"):
        await connect(given["nobody"])
    assert time.monotonic() - began < 4.0
    # The host refuses this URL with an exception, not with an event.
    with raises(ConnectFailed, "WebSocket was not opened: SyntaxError"):
        await connect("ws://[fe80::1%eth0]:1")


async def mistakes(given: dict[str, Any]) -> None:
    """What this adapter cannot do is rejected before anything is opened."""
    for servers in ("nats://127.0.0.1", ["tls://a", "tls://b"], "127.0.0.1"):
        with raises(InvalidValue, "use ws or wss (D-OPT-19)"):
            connect(servers)
    for name, value in [("tls_hostname", "a"), ("ws_headers", {"A": "b"}), ("tls", object())]:
        with raises(InvalidValue, "D-OPT-19"):
            connect("wss://a", **{name: value})
    socket = js.WebSocket
    js.eval("() => { delete globalThis.WebSocket }")()
    try:
        with raises(MissingExtra, "this host has no WebSocket"):
            connect("ws://a")
    finally:
        js.eval("(value) => { globalThis.WebSocket = value }")(socket)


PROGRAMS = [
    nkeys,
    functions_that_sign,
    slow_functions,
    stubborn_functions,
    credentials,
    no_webcrypto,
    tls,
    certificates,
    discovery,
    no_server,
    mistakes,
]
