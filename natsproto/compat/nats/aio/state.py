"""ClientState: the status, the servers and the counters of a client."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import ParseResult, urlparse

from natsproto.compat.nats import errors
from natsproto.compat.nats.nuid import NUID
from natsproto.connection.states import CLOSED, CONNECTED
from natsproto.errors import NatsError

from .constants import DEFAULT_MAX_PAYLOAD_SIZE, PROTOCOL, __lang__, __version__
from .failures import translate
from .headers import read_headers
from .options import server_urls
from .pool import Server, Srv, parse_server_uri, read_servers
from .versions import ServerVersion

if TYPE_CHECKING:
    from natsproto.client import Client as CoreClient
    from natsproto.connection import Connection
    from natsproto.session import Session

    from .callbacks import Callbacks
    from .port import Port
    from .subscription import Subscription


class ClientState:
    """The state of a client: its status, its servers and its counters."""

    #: Whether a server with a `tls://` URL must offer TLS. nats-py connects without it, which lets
    #: anyone on the network path read the credentials; set it to False to do the same.
    require_tls_of_urls: bool = True

    DISCONNECTED = 0
    CONNECTED = 1
    CLOSED = 2
    RECONNECTING = 3
    CONNECTING = 4
    DRAINING_SUBS = 5
    DRAINING_PUBS = 6

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._client: CoreClient | None = None
        self._connection: Connection | None = None
        self._port: Port | None = None
        self._callbacks: Callbacks | None = None
        self._subs: dict[int, Subscription] = {}
        self._servers: list[Srv] = []  # before the first connection
        self._opened = False  # whether there was a connection
        self._shut = False  # whether the client was closed without having connected
        self._draining = 0  # one of the two states of a drain, or 0
        self._err: Exception | None = None
        self._errors_received = 0
        self._in_bytes = 0
        self._out_bytes = 0
        self._nuid = NUID()

    def __repr__(self) -> str:
        return f"<nats client v{__version__}>"

    # The status

    @property
    def _status(self) -> int:
        if self._draining and not self.is_closed:
            return self._draining
        state = None if self._connection is None else self._connection.state
        if state == CONNECTED:
            return self.CONNECTED
        if self._shut or (state == CLOSED and self._opened):
            return self.CLOSED
        if state is None or state == CLOSED:
            return self.DISCONNECTED
        return self.RECONNECTING if self._opened else self.CONNECTING

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, or has failed for good."""
        closed = self._connection is not None and self._connection.state == CLOSED
        return self._shut or (closed and self._opened)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and self._connection.state == CONNECTED

    @property
    def is_reconnecting(self) -> bool:
        """Whether the connection is lost, and the client tries to get another one."""
        return self._status == self.RECONNECTING

    @property
    def is_connecting(self) -> bool:
        """Whether the client tries to connect for the first time."""
        return self._status == self.CONNECTING

    @property
    def is_draining(self) -> bool:
        """Whether `drain` is under way."""
        return bool(self._draining) and not self.is_closed

    @property
    def is_draining_pubs(self) -> bool:
        """Whether `drain` has ended the subscriptions, and sends the last messages."""
        return self.is_draining and self._draining == self.DRAINING_PUBS

    @property
    def last_error(self) -> Exception | None:
        """The last error that was reported."""
        return self._err

    # The connected server

    @property
    def _server_info(self) -> dict[str, Any]:
        info = None if self._connection is None else self._connection.info
        return {} if info is None else info.fields

    @property
    def connected_url(self) -> ParseResult | None:
        """The address of the connected server, without credentials; None without a connection."""
        url = "" if self._client is None else self._client.connected_url
        return urlparse(url) if url else None

    @property
    def max_payload(self) -> int:
        """The largest payload that the server accepts."""
        size: int = self._server_info.get("max_payload", DEFAULT_MAX_PAYLOAD_SIZE)
        return size

    _max_payload = max_payload

    @property
    def client_id(self) -> int | None:
        """The id of this client at its server; None without a connection."""
        return self._server_info.get("client_id") if self.is_connected else None

    @property
    def client_ip(self) -> str | None:
        """The address of this client, as its server sees it; None without a connection."""
        return self._server_info.get("client_ip") if self.is_connected else None

    @property
    def connected_server_version(self) -> ServerVersion:
        """The version of the server."""
        return ServerVersion(self._server_info.get("version", ""))

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """The context of `tls`, or a default one."""
        return self.options.get("tls") or ssl.create_default_context()

    # The pool

    @property
    def _server_pool(self) -> list[Srv]:
        if self._connection is None:
            return self._servers
        return [Srv(_uri(server.url), server) for server in self._connection.pool.servers]

    @property
    def servers(self) -> list[ParseResult]:
        """The addresses of all known servers."""
        return [srv.uri for srv in self._server_pool]

    @property
    def discovered_servers(self) -> list[ParseResult]:
        """The addresses of the servers that the cluster announced."""
        return [srv.uri for srv in self._server_pool if srv.discovered]

    @property
    def server_pool(self) -> list[Server]:
        """A copy of the pool."""
        return [Server(srv.uri, srv.reconnects) for srv in self._server_pool]

    def set_server_pool(self, servers: list[str]) -> None:
        """Replace the pool; servers that stay keep their count of failures."""
        if self.is_closed or self._connection is None:
            raise errors.ConnectionClosedError
        urls = server_urls(read_servers(servers), self.require_tls_of_urls)
        try:
            self._connection.pool.set_servers(urls)
        except NatsError as error:
            raise translate(error) from error

    def _setup_server_pool(self, connect_url: str | list[str]) -> None:
        self._servers = self._servers + read_servers(connect_url)

    @staticmethod
    def _parse_server_uri(connect_url: str) -> ParseResult:
        return parse_server_uri(connect_url)

    # Counters

    @property
    def stats(self) -> dict[str, int]:
        """Counts of messages and of the bytes of their payloads, and of reconnects."""
        found = None if self._connection is None else self._connection.stats
        return {
            "in_msgs": 0 if found is None else found.in_msgs,
            "out_msgs": 0 if found is None else found.out_msgs,
            "in_bytes": self._in_bytes,
            "out_bytes": self._out_bytes,
            "reconnects": 0 if found is None else found.reconnects,
            "errors_received": self._errors_received,
        }

    @property
    def pending_data_size(self) -> int:
        """The bytes that were published, and wait to be sent."""
        if self._connection is None or self._port is None:
            return 0
        held = self._connection.held
        return self._connection.outbound.size + held + self._port.pending_bytes()

    _pending_data_size = pending_data_size

    # Private names of nats-py, which its tests and some programs use

    #: The connection has no tasks that a program could cancel by mistake.
    _reading_task = _flusher_task = _ping_interval_task = None

    @property
    def _inbox_prefix(self) -> bytes:
        prefix: str | bytes = self.options.get("inbox_prefix", b"_INBOX")
        return prefix if isinstance(prefix, bytes) else prefix.encode()

    def _connect_command(self) -> bytes:
        fields = {
            "echo": not self.options.get("no_echo"),
            "lang": __lang__,
            "name": self.options.get("name"),
            "pedantic": self.options.get("pedantic"),
            "protocol": PROTOCOL,
            "verbose": self.options.get("verbose"),
            "version": __version__,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return b"CONNECT %s\r\n" % json.dumps(given, sort_keys=True).encode()

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        return read_headers(headers)

    @property
    def _session(self) -> Session:
        if self._client is None:
            raise errors.ConnectionClosedError
        return self._client.session


def _uri(url: Any) -> ParseResult:
    """Return a URL of natsproto with its credentials, which programs see in nats-py."""
    text = str(url)
    credentials = url.token or (f"{url.user}:{url.password}" if url.user else "")
    return urlparse(text.replace("://", f"://{credentials}@", 1) if credentials else text)
