"""Server URLs: the address to connect to, and the credentials to use.

    [scheme://][user:password@ or token@]host[:port][/path]

The default scheme is nats; tls is nats over TLS; ws and wss are WebSocket, and only these may have
a path. Error messages about a URL never contain its credentials, nor anything that may have been
intended as credentials, which is everything before the last `@`.
"""

from __future__ import annotations

from .errors import InvalidValue
from .secret import Secret
from .wire.record import Record
from .wire.text import shorten

PORTS = {"nats": 4222, "tls": 4222, "ws": 80, "wss": 443}
_HOST = "abcdefghijklmnopqrstuvwxyz0123456789-._"
_IPV6 = "abcdef0123456789:."
_DIGITS = "0123456789"
_HEX = "0123456789abcdefABCDEF"


class ServerUrl(Record):
    """The URL of one server. URLs that differ only in their credentials are equal."""

    __slots__ = (
        "_password",
        "_token",
        "_user",
        "host",
        "is_websocket",
        "path",
        "port",
        "scheme",
        "wants_tls",
    )

    def __init__(
        self,
        scheme: str,
        host: str,
        port: int,
        path: str = "",
        user: str = "",
        password: str = "",
        token: str = "",
    ) -> None:
        self.scheme: str = scheme
        self.host: str = host
        self.port: int = port
        self.path: str = path
        self._user = _hide(user)
        self._password = _hide(password)
        self._token = _hide(token)
        #: Whether the scheme requires TLS.
        self.wants_tls: bool = scheme in ("tls", "wss")
        #: Whether the scheme is ws or wss.
        self.is_websocket: bool = scheme in ("ws", "wss")

    @classmethod
    def parse(cls, text: str) -> ServerUrl:
        """Parse a URL; raise InvalidValue, without any credentials, if it is invalid."""
        if not isinstance(text, str):
            raise InvalidValue("server is %s, not a str" % type(text).__name__, "OPT-1")
        for char in text:
            if char <= " " or char == "\x7f" or char.isspace() or 0xD800 <= ord(char) <= 0xDFFF:
                raise _bad(text, "contains %r" % char, "OPT-3")
        scheme, rest = _split_scheme(text)
        userinfo, at, rest = rest.rpartition("@")
        user, password, token = _read_userinfo(text, userinfo) if at else ("", "", "")
        authority, path = _split_path(text, scheme, rest)
        host, port = _split_authority(text, authority)
        return cls(scheme, host, port or PORTS[scheme], path, user, password, token)

    @property
    def user(self) -> str:
        """The user name, or ""."""
        return _reveal(self._user)

    @property
    def password(self) -> str:
        """The password, or ""."""
        return _reveal(self._password)

    @property
    def token(self) -> str:
        """The token, or ""."""
        return _reveal(self._token)

    @property
    def address(self) -> str:
        """The host and port, as in "host:4222" or "[::1]:4222"; this identifies a server."""
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)

    def __str__(self) -> str:
        return "%s://%s%s" % (self.scheme, self.address, self.path)

    def __repr__(self) -> str:
        return "ServerUrl(%s)" % shorten(str(self))

    def _fields(self) -> list[tuple[str, object]]:
        # D-OPT-5: neither repr nor == sees the credentials.
        names = ("scheme", "host", "port", "path")
        return [(name, getattr(self, name)) for name in names]


def hide_credentials(text: str) -> str:
    """Return the text with the credentials of all URLs in it replaced by *** (D-LOG-2).

    A password may contain anything but whitespace, so everything up to the last @ of a word is
    replaced, which may be more than the credentials.
    """
    parts: list[str] = []
    for word in text.split(" "):
        scheme, separator, rest = word.partition("://")
        credentials, at, place = rest.rpartition("@")
        parts.append(scheme + separator + "***@" + place if credentials or at else word)
    return " ".join(parts)


# None instead of an empty Secret: a URL without credentials can be copied and pickled.
def _hide(text: str) -> Secret | None:
    return Secret(text) if text else None


def _reveal(secret: Secret | None) -> str:
    return "" if secret is None else secret.reveal()


def _bad(text: str, why: str, rule: str) -> InvalidValue:
    return InvalidValue("server %s %s" % (shorten(_redact(text)), why), rule)


def _redact(text: str) -> str:
    scheme = text.partition("://")[0]
    at = text.rfind("@")
    if at >= 0:
        text = (scheme + "://" if scheme.lower() in PORTS else "") + "***" + text[at:]
    for char in "?#":
        head, mark, _ = text.partition(char)
        text = head + mark + "***" if mark else head
    return text


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, mark, rest = text.partition("://")
    if not mark:
        return "nats", text
    scheme = scheme.lower()
    if scheme not in PORTS:
        raise _bad(text, "has a scheme that is not one of nats, tls, ws, wss", "OPT-1")
    return scheme, rest


def _read_userinfo(text: str, userinfo: str) -> tuple[str, str, str]:
    """Return user, password and token."""
    for char in "/?#":
        if char in userinfo:
            raise _bad(text, "has %r before '@': in credentials, percent-encode it" % char, "OPT-2")
    user, colon, password = userinfo.partition(":")
    if not user:
        raise _bad(text, "has no user or token before '@'", "OPT-2")
    if not colon:
        return "", "", _unquote(text, user)
    return _unquote(text, user), _unquote(text, password), ""


def _unquote(text: str, quoted: str) -> str:
    head, *rest = quoted.split("%")
    raw = head.encode()
    for piece in rest:
        if len(piece) < 2 or piece[0] not in _HEX or piece[1] not in _HEX:
            raise _bad(text, "has a '%' without two hex digits in its credentials", "OPT-2")
        raw += bytes([int(piece[:2], 16)]) + piece[2:].encode()
    try:
        return raw.decode()
    except UnicodeError:
        raise _bad(text, "has credentials that are not UTF-8", "OPT-2") from None


def _split_path(text: str, scheme: str, rest: str) -> tuple[str, str]:
    if "?" in rest or "#" in rest:
        raise _bad(text, "has a query or a fragment; options are arguments of connect()", "OPT-4")
    authority, slash, path = rest.partition("/")
    if path and scheme not in ("ws", "wss"):
        raise _bad(text, "has a path, which only ws and wss may have", "OPT-4")
    return authority, slash + path if path else ""


def _split_authority(text: str, authority: str) -> tuple[str, int]:
    """Return host and port; 0 if there is no port."""
    if authority[:1] == "[":
        host, bracket, rest = authority[1:].partition("]")
        _check_ipv6(text, host if bracket else "")
        if rest and rest[0] != ":":
            raise _bad(text, "has something other than a port after ']'", "OPT-3")
        return host, _read_port(text, rest[1:]) if rest else 0
    host, colon, port = authority.partition(":")
    if ":" in port:
        raise _bad(text, "has an IPv6 address without brackets", "OPT-3")
    if not host:
        raise _bad(text, "has no host", "OPT-3")
    host = host.lower()
    for char in host:
        if char < "\x80" and char not in _HOST:
            raise _bad(text, "has %r in its host" % char, "OPT-3")
    return host, _read_port(text, port) if colon else 0


def _check_ipv6(text: str, host: str) -> None:
    address, percent, zone = host.partition("%")
    strange = [char for char in address.lower() if char not in _IPV6]
    if ":" not in address or strange or (percent and not zone):
        raise _bad(text, "has no IPv6 address between brackets", "OPT-3")


def _read_port(text: str, port: str) -> int:
    digits = 0 < len(port) <= 5 and all(char in _DIGITS for char in port)
    if not digits or not 1 <= int(port) <= 65535:
        raise _bad(text, "has a port that is not a number from 1 to 65535", "OPT-3")
    return int(port)
