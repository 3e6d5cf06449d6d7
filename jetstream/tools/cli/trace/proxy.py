"""A proxy between clients and a server: it forwards bytes unchanged, and reports them.

TLS ends at the proxy, separately on each side: the client may use TLS and the server not, or the
other way around. Only in that case does the proxy change something: `tls_required` in the first
INFO.

    accepted      the client's leg is paused, the server is dialed
    greeting      the first line of the server is awaited
    securing      TLS with the server; INFO to the client; TLS with the client
    forwarding    bytes are passed on and reported

In front of a WebSocket the client speaks first, and TLS comes before everything: there is no
greeting, and no byte is ever changed.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

from .dialogue import RECEIVED, SENT

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from natsproto.urls import ServerUrl


class Settings:
    """Where to listen, where to connect, and TLS for each side."""

    def __init__(
        self,
        host: str,
        port: int,
        server: ServerUrl,
        *,
        upstream_tls: ssl.SSLContext,
        requires_tls: bool = False,
        tls_first: bool = False,
        listen_tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.server = server
        self.upstream_tls = upstream_tls
        self.requires_tls = requires_tls
        self.tls_first = tls_first
        self.listen_tls = listen_tls


class Proxy:
    """Listens, and forwards each connection; `report` gets bytes, `ended` the end of each."""

    def __init__(
        self,
        settings: Settings,
        report: Callable[[str, str, bytes], None],
        ended: Callable[[str, str], None],
    ) -> None:
        self.settings = settings
        self.report = report
        self.ended = ended
        self.port: int = 0
        self._links: list[Link] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to listen; after that, `port` is known."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._accept, self.settings.host, self.settings.port
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    def _accept(self) -> Leg:
        link = Link(self, _name(self._count))
        self._count += 1
        self._links.append(link)
        return link.client

    def open(self, link: Link) -> None:
        """Connect a link that was accepted to the server."""
        task = asyncio.get_running_loop().create_task(link.open())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget(self, link: Link, why: str) -> None:
        """Forget a link that has ended."""
        if link in self._links:
            self._links.remove(link)
            self.ended(link.name, why)

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._listener is not None:
            self._listener.close()
        for link in list(self._links):
            link.close("the trace ends")
        if self._tasks:
            await asyncio.wait(self._tasks)


class Leg(asyncio.Protocol):
    """One side of a link."""

    def __init__(self, link: Link, direction: str) -> None:
        self._link = link
        self.direction = direction
        self.transport: Any = None
        self.paused: bool = False  # because the other side cannot keep up

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; of a client, connect its link."""
        self.transport = transport
        if self.direction == SENT:
            self.transport.pause_reading()
            self._link.accepted()

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the link."""
        self._link.received(self.direction, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the link."""
        who = "client" if self.direction == SENT else "server"
        self._link.close(f"the {who} closed the connection" + (f": {exc}" if exc else ""))

    def pause_writing(self) -> None:
        """Stop reading from the other side."""
        self._link.hold(self.direction, True)

    def resume_writing(self) -> None:
        """Read from the other side again."""
        self._link.hold(self.direction, False)


class Link:
    """A client, a server, and the bytes between them."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        self.name = name
        self.client: Leg = Leg(self, SENT)
        self.server: Leg = Leg(self, RECEIVED)
        self._proxy = proxy
        self._greeting = b""
        self._greeted: asyncio.Future[None] | None = None
        self._closed = False

    def accepted(self) -> None:
        """Connect to the server."""
        self._proxy.open(self)

    async def open(self) -> None:
        """Connect to the server, secure both sides, and forward."""
        settings = self._proxy.settings
        loop = asyncio.get_running_loop()
        self._greeted = loop.create_future()
        server = settings.server
        try:
            first = settings.tls_first or server.scheme == "wss"
            context = settings.upstream_tls if first else None
            await loop.create_connection(
                lambda: self.server,
                server.host,
                server.port,
                ssl=context,
                server_hostname=server.host if context else None,
            )
            if server.is_websocket:
                await self._pass_on(loop)
            else:
                await self._greeted
                await self._secure(loop)
        except (OSError, asyncio.CancelledError) as error:  # SSLError is an OSError
            self.close(f"{server.host}:{server.port}: {error}")

    async def _pass_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forward from the first byte on."""
        self._greeted = None
        if self._proxy.settings.listen_tls is not None:
            await self._secure_client(loop)
        if not self.client.transport.is_closing():
            self.client.transport.resume_reading()

    async def _secure(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = self._proxy.settings
        line, newline, rest = self._greeting.partition(b"\n")
        fields = _info(line)
        wants = settings.requires_tls or fields.get("tls_required") is True
        if wants and not settings.tls_first:
            self.server.transport = await loop.start_tls(
                self.server.transport,
                self.server,
                settings.upstream_tls,
                server_hostname=settings.server.host,
            )
        secure = settings.listen_tls is not None
        if secure and settings.tls_first:
            await self._secure_client(loop)
        if secure != (fields.get("tls_required") is True) and fields:
            fields["tls_required"] = secure
            line = b"INFO %s \r" % json.dumps(fields, separators=(",", ":")).encode()
        self.client.transport.write(line + newline)
        self._proxy.report(self.name, RECEIVED, line + newline)
        if secure and not settings.tls_first:
            await self._secure_client(loop)
        self._greeted = None
        if rest:
            self.received(RECEIVED, rest)
        if not self.client.transport.is_closing():
            self.client.transport.resume_reading()

    async def _secure_client(self, loop: asyncio.AbstractEventLoop) -> None:
        self.client.transport = await loop.start_tls(
            self.client.transport,
            self.client,
            cast("ssl.SSLContext", self._proxy.settings.listen_tls),
            server_side=True,
        )

    def received(self, direction: str, data: bytes) -> None:
        """Forward bytes, and report them; keep the greeting until both sides are secure."""
        if direction == RECEIVED and self._greeted is not None:
            self._greeting += data
            if b"\n" in self._greeting and not self._greeted.done():
                self._greeted.set_result(None)
            return
        to = self.server if direction == SENT else self.client
        to.transport.write(data)  # D-PROXY-1
        self._proxy.report(self.name, direction, data)

    def hold(self, direction: str, stop: bool) -> None:
        """Stop or resume reading from the side opposite to the one that cannot keep up."""
        source = self.server if direction == SENT else self.client
        if source.transport is None or source.paused == stop:
            return
        source.paused = stop
        if stop:
            source.transport.pause_reading()
        else:
            source.transport.resume_reading()

    def close(self, why: str) -> None:
        """Close both sides after all received bytes are sent."""
        if self._closed:
            return
        self._closed = True
        if self._greeted is not None and not self._greeted.done():
            self._greeted.cancel()
        for leg in (self.client, self.server):
            if leg.transport is not None:
                leg.transport.close()
        self._proxy.forget(self, why)


def _info(line: bytes) -> dict[str, Any]:
    """Return the fields of INFO; empty if the line is not one."""
    name, _, rest = line.partition(b" ")
    if name.upper() != b"INFO":
        return {}
    try:
        fields: Any = json.loads(rest)
    except ValueError:
        return {}
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def _name(number: int) -> str:
    """Return A, B ... Z, AA, AB ..."""
    name = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(65 + letter) + name
    return name
