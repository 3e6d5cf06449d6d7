"""Options of a connection, checked before anything is done with them.

A setting that cannot work is rejected here, with its name, its value and the reason. Times are in
seconds. Secrets are kept in `auth` and appear in no text.
"""

from __future__ import annotations

from .durations import LONGEST, in_range, to_seconds
from .errors import InvalidValue
from .secret import Secret
from .urls import ServerUrl
from .wire.subjects import check_publish
from .wire.text import cut_middle, shorten, show

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias, TypedDict

    from .auth import Auth
    from .auth.nkeys import Signer
    from .choice import ServerChooser
    from .durations import Seconds
    from .secret import SecretLike

    ServersLike: TypeAlias = str | list[str] | tuple[str, ...]
    WsHeadersLike: TypeAlias = dict[str, str] | list[tuple[str, str]]

    class OptionsDict(TypedDict, total=False):
        """The keywords of Options, except servers, for functions that pass them on."""

        name: str
        user: SecretLike
        password: SecretLike
        token: SecretLike
        nkey_seed: SecretLike
        jwt: SecretLike
        creds: SecretLike
        nkey: str
        sign: Signer | None
        tls: object
        tls_first: bool
        tls_hostname: str
        inbox_prefix: str
        no_echo: bool
        verbose: bool
        pedantic: bool
        ping_interval: Seconds
        max_pings_out: int
        connect_timeout: Seconds
        max_reconnects: int
        reconnect_wait: Seconds
        reconnect_wait_max: Seconds
        reconnect_jitter: float
        reconnect_delays: list[Seconds] | tuple[Seconds, ...]
        choose_server: ServerChooser | None
        shuffle: bool
        ignore_discovered: bool
        retry_on_first_connect: bool
        max_pending_out: int
        max_msgs: int
        max_bytes: int
        ws_headers: WsHeadersLike
        ws_compression: bool
        # Not an option of a connection: adapters replace it with the settings that it names.
        context: str | bool
        # Not an option of a connection either: a sink for its steps, see natsproto.trace.
        trace: Callable[[Any], object] | bool


__all__ = ["DEFAULT_SERVER", "Options", "ServerUrl", "read_servers"]

DEFAULT_SERVER = "nats://127.0.0.1:4222"
_TOKEN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
_OWN_HEADERS = ("host", "upgrade", "connection")


class Options:
    """The options of one connection; all have defaults.

    servers                 one URL or several, as a list or separated by commas
    name                    name of the client in the server's monitoring
    user password token nkey_seed jwt creds nkey sign
                            credentials, see natsproto.auth; kept in `auth`
    tls                     True, or a context for the adapter: never connect without TLS
    tls_first               start TLS before INFO; implies tls
    tls_hostname            the name to check certificates against; "": the host of the URL
    inbox_prefix            the first tokens of all reply subjects
    no_echo                 do not deliver messages of this connection to its own subscriptions
    verbose, pedantic       have the server acknowledge every operation; have it check more
    ping_interval           time between PINGs of the client
    max_pings_out           disconnect after this many unanswered PINGs
    connect_timeout         for one server, from the dial to the end of the handshake
    max_reconnects          consecutive attempts for each server; 0: none, -1: no limit
    reconnect_wait          pause before the second attempt; doubles up to reconnect_wait_max
    reconnect_jitter        largest fraction of a pause that is added to it at random
    reconnect_delays        pauses before each attempt in a row, instead; the last one repeats
    choose_server           a function that chooses the server of a reconnect, and its pause
    shuffle                 try servers in random order
    ignore_discovered       use only the given servers, not those that the cluster announces
    retry_on_first_connect  keep trying in the background if the first connect fails
    max_pending_out         bytes to buffer without a connection; 0: publishing raises then
    max_msgs, max_bytes     limits of subscriptions that set none themselves
    ws_headers              headers of the HTTP request of a WebSocket
    ws_compression          compress the messages of a WebSocket if the server does
    host_websocket          set by adapters: the host opens WebSockets, with framing and TLS
    host_signing            set by adapters: the adapter signs the nonces of servers
    """

    __slots__ = (
        "_auth",
        "choose_server",
        "connect_timeout",
        "host_signing",
        "host_websocket",
        "ignore_discovered",
        "inbox_prefix",
        "max_bytes",
        "max_msgs",
        "max_pending_out",
        "max_pings_out",
        "max_reconnects",
        "name",
        "no_echo",
        "pedantic",
        "ping_interval",
        "reconnect_delays",
        "reconnect_jitter",
        "reconnect_wait",
        "reconnect_wait_max",
        "retry_on_first_connect",
        "servers",
        "shuffle",
        "tls",
        "tls_first",
        "tls_hostname",
        "verbose",
        "ws_compression",
        "ws_headers",
    )

    def __init__(
        self,
        *,
        servers: ServersLike = DEFAULT_SERVER,
        name: str = "",
        user: SecretLike = "",
        password: SecretLike = "",
        token: SecretLike = "",
        nkey_seed: SecretLike = "",
        jwt: SecretLike = "",
        creds: SecretLike = "",
        nkey: str = "",
        sign: Signer | None = None,
        tls: object = None,
        tls_first: bool = False,
        tls_hostname: str = "",
        inbox_prefix: str = "_INBOX",
        no_echo: bool = False,
        verbose: bool = False,
        pedantic: bool = False,
        ping_interval: Seconds = 120.0,  # OPT-11
        max_pings_out: int = 2,
        connect_timeout: Seconds = 5.0,
        max_reconnects: int = 60,
        reconnect_wait: Seconds = 0.25,
        reconnect_wait_max: Seconds = 10.0,
        reconnect_jitter: float = 0.5,
        reconnect_delays: list[Seconds] | tuple[Seconds, ...] = (),
        choose_server: ServerChooser | None = None,
        shuffle: bool = True,
        ignore_discovered: bool = False,
        retry_on_first_connect: bool = False,
        max_pending_out: int = 8 * 1024 * 1024,
        max_msgs: int = 65536,
        max_bytes: int = 64 * 1024 * 1024,
        ws_headers: WsHeadersLike = (),  # type: ignore[assignment]
        ws_compression: bool = False,
        host_websocket: bool = False,
        host_signing: bool = False,
    ) -> None:
        self.host_websocket: bool = _flag("host_websocket", host_websocket)
        self.host_signing: bool = _flag("host_signing", host_signing)
        self._auth: Auth | None = None  # there are no credentials
        if user or password or token or nkey_seed or jwt or creds or nkey or sign is not None:
            from .auth import choose_auth

            self._auth = choose_auth(
                user=user,
                password=password,
                token=token,
                nkey_seed=nkey_seed,
                jwt=jwt,
                creds=creds,
                nkey=nkey,
                sign=sign,
                host_signing=host_signing,
            )
        self.tls_first: bool = _flag("tls_first", tls_first)
        self.tls: object = _tls(tls, tls_first)
        self.tls_hostname: str = _text("tls_hostname", tls_hostname)
        self.servers: list[ServerUrl] = read_servers(servers, self.secure)
        self.name: str = _text("name", name)
        check_publish(inbox_prefix, "inbox prefix")  # OPT-14
        self.inbox_prefix: str = inbox_prefix
        self.no_echo: bool = _flag("no_echo", no_echo)
        self.verbose: bool = _flag("verbose", verbose)
        self.pedantic: bool = _flag("pedantic", pedantic)
        self.ping_interval: float = _seconds("ping_interval", ping_interval, 0.001)
        self.max_pings_out: int = _whole("max_pings_out", max_pings_out, 1)
        self.connect_timeout: float = _seconds("connect_timeout", connect_timeout, 0.001)
        self.max_reconnects: int = _whole("max_reconnects", max_reconnects, -1)
        self.reconnect_wait_max: float = _seconds("reconnect_wait_max", reconnect_wait_max, 0.0)
        # D-OPT-12: a first pause above the maximum would silently be shortened.
        self.reconnect_wait: float = _seconds(
            "reconnect_wait", reconnect_wait, 0.0, self.reconnect_wait_max, " (reconnect_wait_max)"
        )
        self.reconnect_jitter: float = _fraction("reconnect_jitter", reconnect_jitter)
        self.reconnect_delays: list[float] = _delays(reconnect_delays)
        self.choose_server: ServerChooser | None = _chooser(choose_server)
        self.shuffle: bool = _flag("shuffle", shuffle)
        self.ignore_discovered: bool = _flag("ignore_discovered", ignore_discovered)
        self.retry_on_first_connect: bool = _flag("retry_on_first_connect", retry_on_first_connect)
        self.max_pending_out: int = _whole("max_pending_out", max_pending_out, 0)
        self.max_msgs: int = _whole("max_msgs", max_msgs, 1)
        self.max_bytes: int = _whole("max_bytes", max_bytes, 1)
        self.ws_headers: list[tuple[str, Secret]] = _ws_headers(ws_headers)
        self.ws_compression: bool = _flag("ws_compression", ws_compression)
        if host_websocket:
            self._check_host()

    def _check_host(self) -> None:
        """Reject options that the WebSocket of a host does not support (D-OPT-19)."""
        for url in self.servers:
            if not url.is_websocket:
                text = "server is not a WebSocket: %s; use ws or wss" % cut_middle(str(url))
                raise InvalidValue(text, "D-OPT-19")
        for name in ("tls_hostname", "ws_headers", "ws_compression"):
            if getattr(self, name):
                raise InvalidValue("%s is up to the host of the adapter" % name, "D-OPT-19")
        if self.tls is not None and self.tls is not True:
            text = "tls is not a bool, and the host of the adapter has its own context: %s"
            raise InvalidValue(text % type(self.tls).__name__, "D-OPT-19")

    @property
    def auth(self) -> Auth:
        """The credentials."""
        if self._auth is None:
            from .auth import choose_auth

            self._auth = choose_auth()
        return self._auth

    @property
    def has_auth(self) -> bool:
        """Whether there are credentials: most clients need not import natsproto.auth."""
        return self._auth is not None

    @property
    def secure(self) -> bool:
        """Whether TLS is required, whatever the URLs and the servers say."""
        return self.tls is not None

    def __repr__(self) -> str:
        names = sorted([name.lstrip("_") for name in self.__slots__])
        fields = ["%s=%s" % (name, self._show(name)) for name in names]
        return "Options(%s)" % ", ".join(fields)

    def _show(self, name: str) -> str:
        value = getattr(self, name)
        # D-OPT-13: the repr of a user's object may contain anything.
        if name in ("tls", "choose_server") and value is not None and value is not True:
            return type(value).__name__
        return show(value)  # D-ERR-11


def read_servers(servers: ServersLike, secure: bool) -> list[ServerUrl]:
    """Return the URLs of one pool; InvalidValue if they cannot be used together."""
    texts = split_servers(servers) if isinstance(servers, str) else servers
    if not isinstance(texts, (list, tuple)):
        name = type(texts).__name__
        raise InvalidValue("servers is not a str or a list of str: %s" % name, "OPT-6")
    if not texts:
        raise InvalidValue("servers is empty: at least one is required", "OPT-6")
    urls = [ServerUrl.parse(text) for text in texts]
    for url in urls:
        if url.is_websocket != urls[0].is_websocket:
            raise InvalidValue(
                "WebSocket and plain servers do not mix: %s and %s; a cluster announces its members"
                " for one kind at a time" % (cut_middle(str(urls[0])), cut_middle(str(url))),
                "OPT-7",
            )
        if secure and url.scheme == "ws":
            text = "server would have no TLS: %s; use wss" % cut_middle(str(url))
            raise InvalidValue(text, "D-OPT-8")
    return urls


def split_servers(text: str) -> list[str]:
    """Split a list of URLs at its commas, except those in credentials (OPT-18)."""
    parts = text.split(",")
    urls = [parts[-1]]
    for part in reversed(parts[:-1]):
        # A comma before an @ without a new scheme between them belongs to a user or a password.
        if "@" in urls[0] and "://" not in urls[0].partition("@")[0]:
            urls[0] = part + "," + urls[0]
        else:
            urls.insert(0, part)
    return [url.strip() for url in urls] if len(urls) > 1 else urls


def _tls(value: object, tls_first: bool) -> object:
    """Return True, a context, or None: TLS only if a URL or a server requires it."""
    if value is None or value is False:
        return True if tls_first else None
    if value is not True and isinstance(value, (str, bytes, int, float)):
        raise InvalidValue("tls is not a bool or a context: %s" % type(value).__name__, "OPT-10")
    return value


def _delays(values: list[Seconds] | tuple[Seconds, ...]) -> list[float]:
    if not isinstance(values, (list, tuple)):
        raise InvalidValue("reconnect_delays is not a list: %s" % shorten(values), "POOL-15")
    return [_seconds("reconnect_delays", value, 0.0) for value in values]


def _chooser(value: ServerChooser | None) -> ServerChooser | None:
    if value is not None and not callable(value):
        raise InvalidValue("choose_server is not a function: %s" % shorten(value), "POOL-16")
    return value


def _ws_headers(headers: WsHeadersLike) -> list[tuple[str, Secret]]:
    """Return the headers with hidden values, which may be tokens or cookies (WS-10)."""
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, (list, tuple)):
        name = type(pairs).__name__
        raise InvalidValue("ws_headers is not a dict or a list of pairs: %s" % name, "WS-10")
    hidden: list[tuple[str, Secret]] = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise InvalidValue("ws_headers has an entry that is not a pair", "WS-10")
        name, value = pair
        if not isinstance(name, str) or not name or [char for char in name if char not in _TOKEN]:
            raise InvalidValue("ws_headers has an invalid name: %s" % shorten(name), "WS-10")
        low = name.lower()
        if low in _OWN_HEADERS or low.startswith("sec-websocket-"):
            raise InvalidValue("ws_headers must not set %s" % name, "WS-10")
        if not isinstance(value, str) or [char for char in value if not " " <= char <= "~"]:
            raise InvalidValue("ws_headers has an invalid value for %s" % name, "WS-10")
        hidden.append((name, Secret(value)))
    return hidden


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue("%s %s is not a str" % (name, shorten(value)), "OPT-10")
    return value


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue("%s %s is neither True nor False" % (name, shorten(value)), "OPT-10")
    return value


def _whole(name: str, value: int, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidValue(
            "%s %s is not a whole number from %d" % (name, shorten(value), least), "D-OPT-9"
        )
    return value


def _fraction(name: str, value: float) -> float:
    if not in_range(value, 0.0, 1.0):
        text = "%s %s is not a number from 0.0 to 1.0" % (name, shorten(value))
        raise InvalidValue(text, "D-OPT-9")
    return float(value)


def _seconds(
    name: str, value: Seconds, least: float, most: float = LONGEST, why: str = ""
) -> float:
    seconds: float = to_seconds(value)
    if not in_range(seconds, least, most):
        text = "%s %s is not a number from %s to %s%s"
        text %= (name, shorten(value), least, float(most), why)
        raise InvalidValue(text, "D-OPT-12" if why else "D-OPT-9")
    return float(seconds)
