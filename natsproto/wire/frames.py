"""Frames: the units of the wire protocol.

A server sends Msg, Info, Ping, Pong, Ok and Err; a client sends Connect, Pub, Sub, Unsub, Ping and
Pong.
"""

from __future__ import annotations

from natsproto.hinting import add_hints

from . import text as _text
from .headers import Headers, read_status
from .record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Frame: TypeAlias = "Msg | Info | Ping | Pong | Ok | Err | Connect | Pub | Sub | Unsub"


class _Payload(Record):
    """The common part of MSG, HMSG, PUB and HPUB: raw bytes, decoded on access.

    Raw, because an invalid message from another publisher must not break the connection; decoded
    late, because most readers use few of the fields.
    """

    __slots__ = ("_headers", "data", "raw_headers", "raw_reply", "raw_subject")

    raw_subject: bytes  # WIRE-15
    raw_reply: bytes
    data: bytes
    raw_headers: bytes | None
    # None until they are read. The parser leaves it unset in messages without headers.
    _headers: Headers | None

    @property
    def subject(self) -> str:
        """The subject that the message was published to."""
        return _text.decode(self.raw_subject)

    @property
    def reply(self) -> str:
        """The subject to reply to; "" if the publisher expects no reply."""
        return _text.decode(self.raw_reply)

    @property
    def headers(self) -> Headers | None:
        """The headers, or None without a header block; raises HeaderError if it is invalid."""
        if self.raw_headers is None:
            return None
        if self._headers is None:
            self._headers = Headers.decode(self.raw_headers)  # HDR-7
        return self._headers

    @property
    def status(self) -> int:
        """The inline status of the header block, or 0."""
        return 0 if self.raw_headers is None else read_status(self.raw_headers)[0]

    @property
    def description(self) -> str:
        """The text after the inline status, or ""."""
        return "" if self.raw_headers is None else read_status(self.raw_headers)[1]


class Msg(_Payload):
    """MSG or HMSG: a message for one of the client's subscriptions.

    `size` is its length on the wire, including the control line and line ends; limits count it.
    """

    __slots__ = ("sid", "size")

    def __init__(
        self,
        subject: bytes,
        sid: int,
        reply: bytes = b"",
        data: bytes = b"",
        headers: bytes | None = None,
        size: int = 0,
    ) -> None:
        self.raw_subject = subject
        self.sid: int = sid
        self.raw_reply = reply
        self.data = data
        self.raw_headers = headers
        self._headers = None
        self.size: int = size

    def _fields(self) -> list[tuple[str, object]]:
        return [
            ("subject", self.raw_subject),
            ("sid", self.sid),
            ("reply", self.raw_reply),
            ("data", self.data),
            ("headers", self.raw_headers),
        ]


add_hints(
    Msg,
    "natsproto.hints",
    "MESSAGE",
    "respond header metadata ack ack_sync nak term in_progress is_acked",
)


class Pub(_Payload):
    """PUB or HPUB: a client publishes."""

    __slots__ = ()

    def __init__(
        self, subject: bytes, reply: bytes = b"", data: bytes = b"", headers: bytes | None = None
    ) -> None:
        self.raw_subject = subject
        self.raw_reply = reply
        self.data = data
        self.raw_headers = headers
        self._headers = None

    def _fields(self) -> list[tuple[str, object]]:
        return [
            ("subject", self.raw_subject),
            ("reply", self.raw_reply),
            ("data", self.data),
            ("headers", self.raw_headers),
        ]


class Info(Record):
    """INFO: the server describes itself.

    `fields` holds the JSON object as received. The attributes are the fields that clients use, with
    a default where a field is missing or has another type: a proxy or a newer server must not break
    the connection.
    """

    __slots__ = (
        "api_lvl",
        "auth_required",
        "client_id",
        "client_ip",
        "cluster",
        "connect_info",
        "connect_urls",
        "domain",
        "fields",
        "headers",
        "host",
        "jetstream",
        "ldm",
        "max_payload",
        "nonce",
        "port",
        "proto",
        "server_id",
        "server_name",
        "tls_available",
        "tls_required",
        "tls_verify",
        "version",
        "ws_connect_urls",
    )

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields: dict[str, Any] = fields
        self.server_id: str = self._text("server_id")
        self.server_name: str = self._text("server_name")
        self.version: str = self._text("version")
        self.host: str = self._text("host")
        self.cluster: str = self._text("cluster")
        self.domain: str = self._text("domain")
        self.nonce: str = self._text("nonce")
        self.client_ip: str = self._text("client_ip")
        self.port: int = self._number("port")
        self.proto: int = self._number("proto")
        self.client_id: int = self._number("client_id")
        self.max_payload: int = self._number("max_payload")
        self.api_lvl: int = self._number("api_lvl")
        self.headers: bool = self._flag("headers")
        self.jetstream: bool = self._flag("jetstream")
        self.auth_required: bool = self._flag("auth_required")
        self.tls_required: bool = self._flag("tls_required")
        self.tls_available: bool = self._flag("tls_available")
        self.tls_verify: bool = self._flag("tls_verify")
        self.connect_info: bool = self._flag("connect_info")
        self.ldm: bool = self._flag("ldm")
        self.connect_urls: list[str] = self._texts("connect_urls")
        self.ws_connect_urls: list[str] = self._texts("ws_connect_urls")

    def _text(self, name: str) -> str:
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""  # WIRE-10

    def _number(self, name: str) -> int:
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def _flag(self, name: str) -> bool:
        return self.fields.get(name) is True

    def _texts(self, name: str) -> list[str]:
        value: list[Any] = self.fields.get(name) or []
        return [url for url in value if isinstance(url, str)] if isinstance(value, list) else []

    def _fields(self) -> list[tuple[str, object]]:
        return [("fields", self.fields)]


class Err(Record):
    """-ERR: an error that the server reports; `text` has no quotes."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text: str = text


class Connect(Record):
    """CONNECT: a client introduces itself. The repr omits values, which may be secret."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields: dict[str, Any] = fields

    def __repr__(self) -> str:
        return "Connect(%s)" % ", ".join(sorted(self.fields))


class Sub(Record):
    """SUB: a client subscribes."""

    __slots__ = ("queue", "sid", "subject")

    def __init__(self, subject: str, sid: int, queue: str = "") -> None:
        self.subject: str = subject
        self.sid: int = sid
        self.queue: str = queue


class Unsub(Record):
    """UNSUB: a client unsubscribes, after `after` messages in total, or now if that is 0."""

    __slots__ = ("after", "sid")

    def __init__(self, sid: int, after: int = 0) -> None:
        self.sid: int = sid
        self.after: int = after


class Ping(Record):
    """PING: answer with PONG."""

    __slots__ = ()


class Pong(Record):
    """PONG: the answer to the oldest unanswered PING."""

    __slots__ = ()


class Ok(Record):
    """+OK: the server accepted the last operation; sent in verbose mode only."""

    __slots__ = ()
