"""The servers of a client, as nats-py shows them, and the choice of the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import ParseResult, urlparse

from natsproto.compat.nats.errors import Error

if TYPE_CHECKING:
    from natsproto.choice import KnownServer
    from natsproto.connection.servers import Server as CoreServer
    from natsproto.wire.frames import Info


@dataclass
class Server:
    """A copy of a member of the pool, for `reconnect_to_server_handler`."""

    uri: ParseResult
    reconnects: int = 0


ReconnectToServerHandler = Callable[[list[Server], dict[str, Any]], tuple[Optional[Server], float]]


class Srv:
    """A member of the pool: its address, and how often it failed in a row."""

    def __init__(self, uri: ParseResult, server: CoreServer | None = None) -> None:
        self.uri: ParseResult = uri
        self._server = server
        self._reconnects = 0

    @property
    def reconnects(self) -> int:
        """Failed attempts in a row."""
        return self._reconnects if self._server is None else self._server.failures

    @reconnects.setter
    def reconnects(self, count: int) -> None:
        if self._server is None:
            self._reconnects = count
        else:
            self._server.failures = count

    @property
    def discovered(self) -> bool:
        """Whether the cluster announced the server."""
        return self._server is not None and self._server.discovered

    def __repr__(self) -> str:
        address = self.uri.netloc.rpartition("@")[2]
        return f"Srv({self.uri.scheme}://{address}, reconnects={self.reconnects})"


def parse_server_uri(text: str) -> ParseResult:
    """Parse an address, from `host` to a whole URL; raise Error if it is invalid.

    Schemes other than ws and wss get port 4222 if they have none.
    """
    if "://" not in text:
        text = "nats://" + text
    try:
        uri = urlparse(text)
        port = uri.port
    except ValueError:
        raise Error("nats: invalid connect url option") from None
    if not uri.hostname or uri.hostname == "none" or not uri.scheme:
        raise Error("nats: invalid hostname in connect url")
    if port is None and uri.scheme not in ("ws", "wss"):
        uri = uri._replace(netloc=uri.netloc.rstrip(":") + ":4222")
    return uri


def read_servers(servers: str | list[str]) -> list[Srv]:
    """Return the servers of a client; raise Error if they cannot be used together."""
    if isinstance(servers, str):
        servers = servers.split(",")
    if not isinstance(servers, (list, tuple)):
        raise Error("nats: invalid connect url option")
    found = [Srv(parse_server_uri(text.strip())) for text in servers]
    web = {srv.uri.scheme in ("ws", "wss") for srv in found}
    if len(web) > 1:
        raise Error("nats: mixing of websocket and non websocket URLs is not allowed")
    return found


class Choice:
    """Decides which server is next, and when, as nats-py does.

    Servers follow each other without a pause, but each of them is dialed at most once within
    `reconnect_time_wait`. A handler of the program may choose instead.
    """

    def __init__(self, wait: float, handler: Any, clock: Callable[[], float]) -> None:
        self._wait = wait
        self._handler = handler
        self._clock = clock
        self._dialed: dict[str, float] = {}

    def note(self, url: str) -> None:
        """Note that a server was dialed."""
        self._dialed[url] = self._clock()

    def __call__(self, servers: list[KnownServer], info: Info | None) -> tuple[str, float]:
        """Return the URL of the next server, and the pause before it is dialed."""
        now = self._clock()
        if self._handler is not None:
            copies = [Server(urlparse(each.url), each.failures) for each in servers]
            chosen, delay = self._handler(copies, {} if info is None else dict(info.fields))
            if chosen is not None:
                url = _match(chosen, servers)
                self._dialed[url] = now + delay
                return url, delay
        url = servers[0].url
        pause = max(0.0, self._dialed.get(url, now - self._wait) + self._wait - now)
        self._dialed[url] = now + pause
        return url, pause


def _match(chosen: Server, servers: list[KnownServer]) -> str:
    for each in servers:
        uri = urlparse(each.url)
        if (uri.hostname, uri.port) == (chosen.uri.hostname, chosen.uri.port):
            return each.url
    return chosen.uri.geturl()  # natsproto reports that it is not in the pool
