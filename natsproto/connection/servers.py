"""Servers: which one to try next, and when.

The pool is one list, in the order in which servers are tried. A request for the next server returns
the head of the list and moves it to the end (round robin). The server in use was tried last, so it
is at the end: after a loss all others come first. Members that the cluster announces are inserted
before it.

There are two such requests. `next_untried` is for the first connect: each server that the user
named once, and failures do not count. `next` is for reconnecting: a server that fails
max_reconnects times in a row leaves the pool; None means that there is nothing to try. `choose` is
`next` with the option choose_server, which may prefer another server (choice.py).

    input           failures    the pool
    next_untried    -           moves the server to its end
    next, choose    -           moves the server to its end; the first round is over
    failed          + 1 (not    drops the server if it has failed max_reconnects times
                    at first)
    connected       0           moves the server to its end; the first round is over
    discover        -           adds and drops members; those that the user named stay
    set_servers     kept        is replaced; a server at the same address stays the same object

INFO is not trusted: before TLS, anyone on the network path can have written it. It may announce
addresses to try, but never the name that certificates are checked against, and never an address
without TLS if the user required TLS (POOL-10, POOL-11).

`Attempts` asks the pool, and decides when to dial:

    phase            the server                        delay before it       gives up
    first connect    each configured server once       none                  when all were tried
    reconnecting     the pool's next                   0 for the first, then when the pool is empty
                                                       longer each time
    after a flap     likewise                          continues to grow     likewise

In each phase it also gives up after an error that another attempt would only repeat.

A flap is a connection that did not last: a server that accepts us and drops us at once would
otherwise be dialed without any pause (D-RECON-2).
"""

from __future__ import annotations

from natsproto.errors import AuthorizationFailed, ConnectFailed, InvalidValue, LocalError
from natsproto.events import ServerChoiceFailed
from natsproto.options import read_servers
from natsproto.urls import ServerUrl
from natsproto.wire.text import cut_middle

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Protocol

    from natsproto.choice import KnownServer
    from natsproto.errors import NatsError
    from natsproto.options import Options, ServersLike
    from natsproto.wire.frames import Info

    from .bus import Bus

    class Rng(Protocol):
        """The injected randomness; random.Random is one."""

        def random(self) -> float: ...
        def randrange(self, __limit: int) -> int: ...


MAX_DISCOVERED = 1000  # more members than any cluster has, but few enough to scan quickly
_MAX_DOUBLINGS = 60  # by then, a microsecond has grown to 30,000 years
# A connection that lasted this long is not a flap.
_STABLE = 1.0


class Server:
    """A member of the pool; `name` is its URL as text, without credentials.

    `failures` counts failed attempts in a row, and `last_error` is the error of the last one.
    `auth_error` is the text of the server's last authorization error, "" if there is none, so that
    the same one twice in a row can be recognized.
    """

    __slots__ = ("auth_error", "discovered", "failures", "last_error", "name", "tls_name", "url")

    def __init__(self, url: ServerUrl, discovered: bool, tls_name: str) -> None:
        self.url: ServerUrl = url
        self.name: str = str(url)
        self.discovered: bool = discovered
        self.tls_name: str = tls_name
        self.failures: int = 0
        self.last_error: Exception | None = None
        self.auth_error: str = ""

    def __repr__(self) -> str:
        origin = "discovered" if self.discovered else "configured"
        return "Server(%s, %s, failures=%d)" % (cut_middle(str(self.url)), origin, self.failures)


class Pool:
    """The servers of one connection."""

    __slots__ = ("_current", "_options", "_rng", "_secure", "_servers", "_untried")

    def __init__(self, options: Options, rng: Rng) -> None:
        self._options = options
        self._rng = rng
        self._current: Server | None = None
        self._secure = False
        self._servers: list[Server] = []
        self._fill(options.servers)
        # None: the first round is over.
        self._untried: list[Server] | None = list(self._servers)

    @property
    def urls(self) -> list[ServerUrl]:
        """All servers, starting with the next one to try."""
        return [server.url for server in self._servers]

    @property
    def servers(self) -> list[Server]:
        """All servers, starting with the next one to try."""
        return list(self._servers)

    @property
    def current(self) -> Server | None:
        """The server that was connected last; it may have left the pool."""
        return self._current

    def others(self) -> bool:
        """Return whether there is another server to move to."""
        return any(server is not self._current for server in self._servers)

    def next_untried(self) -> Server | None:
        """Return the server to try for the first connect; None if each was tried once (POOL-3)."""
        if not self._untried:
            return None
        server = self._untried.pop(0)
        self._move_to_end(server)
        return server

    def next(self) -> Server | None:
        """Return the server to try for a reconnect, or None if none is left to try (POOL-4)."""
        self._untried = None
        if not self._servers or self._options.max_reconnects == 0:
            return None
        server = self._servers[0]
        self._move_to_end(server)
        return server

    def choose(self, info: Info | None) -> tuple[Server | None, float | None]:  # POOL-16
        """Return the server to try for a reconnect, and its delay if the program sets it.

        Raises InvalidValue if choose_server fails; then call `next` instead.
        """
        chooser = self._options.choose_server
        if chooser is not None and self._servers and self._options.max_reconnects:
            from natsproto.choice import choose_server

            choice = choose_server(chooser, [self._show(each) for each in self._servers], info)
            if choice is not None:
                self._untried = None
                server = self._servers[choice[0]]
                self._move_to_end(server)
                return server, choice[1]
        return self.next(), None

    def _show(self, server: Server) -> KnownServer:
        from natsproto.choice import KnownServer

        error = server.last_error
        current = server is self._current
        return KnownServer(server.name, server.discovered, server.failures, error, current)

    def failed(self, server: Server, error: Exception) -> None:
        """Record a failed attempt, before the handshake; a lost connection is not a failure."""
        server.last_error = error
        if self._untried is not None:
            return
        server.failures += 1
        # POOL-5
        if 0 <= self._options.max_reconnects <= server.failures and server in self._servers:
            self._servers.remove(server)

    def connected(self, server: Server) -> None:
        """Record that the handshake is complete: this is now the current server."""
        self._untried = None
        self._current = server
        server.failures = 0  # POOL-6
        server.last_error = None
        if server in self._servers:
            self._move_to_end(server)

    def delay(self, attempt: int) -> float:
        """Return how long to wait before an attempt; 0 is the first one after a loss (POOL-7)."""
        options = self._options
        delays = options.reconnect_delays
        if delays:  # POOL-15
            return delays[min(max(attempt, 0), len(delays) - 1)]
        if attempt <= 0:
            return 0.0
        # Bounded before it is computed: 2 ** 2000 is too large for a float.
        wait = options.reconnect_wait * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)
        wait = min(wait, options.reconnect_wait_max)
        return wait * (1 + options.reconnect_jitter * self._rng.random())

    def discover(self, urls: list[str], via: Server) -> list[ServerUrl]:
        """Update the pool from the cluster members in INFO of `via`; return the new ones."""
        if self._options.ignore_discovered:  # POOL-13
            return []
        found = self._read_discovered(urls[:MAX_DISCOVERED], via)
        # POOL-9: a server that does not advertise members says nothing about the others.
        if not found:
            return []
        listed = {url.address for url in found}
        keep = (via, self._current)
        self._servers = [
            server
            for server in self._servers
            if not server.discovered or server in keep or server.url.address in listed
        ]
        known = {server.url.address for server in self._servers}
        new: list[ServerUrl] = []
        for url in found:
            if url.address not in known:
                known.add(url.address)
                new.append(url)
                self._insert(Server(url, True, via.tls_name), via)  # POOL-10
        return new

    def set_servers(self, servers: ServersLike) -> None:  # POOL-14
        """Replace the pool, including discovered members; InvalidValue leaves it unchanged."""
        urls = read_servers(servers, self._options.secure)
        if urls[0].is_websocket != self._options.servers[0].is_websocket:
            raise InvalidValue(
                "server %s: a connection cannot change between WebSocket and plain"
                % cut_middle(str(urls[0])),
                "OPT-7",
            )
        self._fill(urls)
        if self._untried is not None:
            self._untried = list(self._servers)

    def _fill(self, urls: list[ServerUrl]) -> None:
        known = {server.url.address: server for server in self._servers}
        if self._current is not None:
            known[self._current.url.address] = self._current
        self._secure = self._options.secure or any(url.wants_tls for url in urls)
        self._servers = []
        seen: set[str] = set()
        for url in urls:
            if url.address not in seen:
                seen.add(url.address)
                self._servers.append(self._configure(url, known.get(url.address)))
        if self._options.shuffle:
            self._shuffle()  # POOL-1
        if self._current in self._servers:
            self._move_to_end(self._current)

    def _configure(self, url: ServerUrl, server: Server | None) -> Server:  # POOL-2
        """Return the server for a URL that the user specified; it may already be known."""
        name = self._options.tls_hostname or url.host
        if server is None:
            return Server(url, False, name)
        server.url = url
        server.name = str(url)
        server.discovered = False
        server.tls_name = name
        return server

    def _shuffle(self) -> None:
        servers = self._servers
        for i in range(len(servers) - 1, 0, -1):
            j = self._rng.randrange(i + 1)
            servers[i], servers[j] = servers[j], servers[i]

    def _move_to_end(self, server: Server) -> None:
        self._servers.remove(server)
        self._servers.append(server)

    def _insert(self, server: Server, via: Server) -> None:
        """Insert a server before `via`, which is at the end because it was tried last (POOL-12)."""
        end = len(self._servers)
        if end and self._servers[-1] is via:
            end -= 1
        self._servers.insert(self._rng.randrange(end + 1) if self._options.shuffle else end, server)

    def _read_discovered(self, texts: list[str], via: Server) -> list[ServerUrl]:
        """Return the URLs of the members in INFO, with the scheme and credentials of `via`."""
        scheme = via.url.scheme
        if self._secure:  # POOL-11
            scheme = "wss" if via.url.is_websocket else "tls"
        urls: list[ServerUrl] = []
        for text in texts:
            url = _read_address(scheme, text)
            if url is not None:
                user, password, token = via.url.user, via.url.password, via.url.token
                urls.append(ServerUrl(scheme, url.host, url.port, "", user, password, token))
        return urls


def _read_address(scheme: str, text: str) -> ServerUrl | None:
    """Parse host:port or host, and nothing else (POOL-8)."""
    if "@" in text or "/" in text:
        return None
    try:
        return ServerUrl.parse(scheme + "://" + text)
    except InvalidValue:
        return None


class Attempts:
    """The attempts of one client to connect and to reconnect."""

    __slots__ = (
        "_bus",
        "_connected_at",
        "_count",
        "_errors",
        "_final",
        "_flaps",
        "_pool",
        "_reconnecting",
        "server",
    )

    def __init__(self, pool: Pool, bus: Bus, reconnecting: bool) -> None:
        self._pool = pool
        self._bus = bus
        self._reconnecting = reconnecting  # or else this is the first round
        #: The server that was chosen last; before that, the first one.
        self.server: Server = pool.servers[0]
        self._count = 1  # of reconnecting; the first connect was the immediate one
        self._errors: list[tuple[str, NatsError]] = []  # the last of each server since a success
        self._final: NatsError | None = None  # another attempt would only repeat it
        self._connected_at = 0.0
        self._flaps = 0  # connections in a row that did not last

    def choose(self, info: Info | None = None) -> float | None:  # RECON-1
        """Choose the next server; return the delay before dialing it, None if there is none."""
        if self._final is not None:
            return None
        server = self._pool.next_untried()
        delay = 0.0
        if server is None and self._reconnecting:
            server, chosen = self._choose(info)
            delay = self._pool.delay(self._count) if chosen is None else chosen
            self._count += 1
        if server is None:
            return None
        self.server = server
        return delay

    def confirm(self, info: Info | None = None) -> None:
        """Choose another server if the pool was replaced during the delay (RECON-6)."""
        if self.server not in self._pool.servers:
            self.server = self._choose(info)[0] or self.server

    def _choose(self, info: Info | None) -> tuple[Server | None, float | None]:
        try:
            return self._pool.choose(info)
        except InvalidValue as error:
            self._bus.emit(ServerChoiceFailed(error))  # POOL-17
            return self._pool.next(), None

    def failed(self, error: NatsError, refusal: str = "") -> None:
        """Note that an attempt failed; `refusal` is what the server said of the credentials."""
        self._pool.failed(self.server, error)
        url = self.server.name
        self._errors = [each for each in self._errors if each[0] != url]
        self._errors.append((url, error))
        self._note_end(error, refusal)

    def connected(self, now: float) -> None:
        """Note that the handshake is complete."""
        self._reconnecting = True
        self._connected_at = now
        self._errors = []
        self._pool.connected(self.server)

    def lost(self, error: NatsError | None, refusal: str, now: float) -> None:
        """Note that the connection is lost; with None, it was abandoned on purpose."""
        if now - self._connected_at >= _STABLE:
            self._flaps = 0
            self.server.auth_error = ""
        self._count = self._flaps
        self._flaps += 1
        if error is not None:
            self._errors = [(self.server.name, error)]
        self._note_end(error, refusal)

    def _note_end(self, error: NatsError | None, refusal: str) -> None:
        """Find out whether there is any use in trying again."""
        again = refusal != "" and refusal == self.server.auth_error
        self.server.auth_error = refusal
        # CONN-17: the same refusal twice in a row; D-CONN-18: a mistake of our own.
        if again or isinstance(error, LocalError):
            self._final = error

    def forgive(self) -> None:
        """Reconnect without delay next time, however short the connection was."""
        self._flaps = 0

    def why_failed(self) -> NatsError:  # CONN-9
        """Return one error for all attempts: that of refused credentials, if there is any."""
        if self._final is not None:
            return self._final
        for _, error in self._errors:
            if isinstance(error, AuthorizationFailed):
                return error
        return ConnectFailed(list(self._errors))
