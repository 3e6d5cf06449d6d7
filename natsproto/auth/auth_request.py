"""AuthRequest: a server's knowledge of a client that wants to connect (ADR-26)."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

from . import claim_checks as checks
from .claims import UserClaims

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Self

    from .limits import UserLimits

GLOBAL_ACCOUNT = "$G"


class RequestPart(Record):
    """A part of a request: a JSON object. Unknown fields are ignored, missing ones are empty."""

    __slots__ = ()
    # Fields that have a different name in JSON.
    NAMES: tuple[tuple[str, str], ...] = ()
    NUMBERS: tuple[str, ...] = ()
    LISTS: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Return the part in this map; raise InvalidValue for values of other types."""
        part = cls()
        names = dict(cls.NAMES)
        slots: tuple[str, ...] = cls.__slots__
        for slot in slots:
            kind: type = int if slot in cls.NUMBERS else list if slot in cls.LISTS else str
            value = body.get(names.get(slot, slot))
            if value is None:
                value = kind()
            if not isinstance(value, kind):
                text = "%s of a request is not of type %s: %s"
                raise InvalidValue(text % (slot, kind.__name__, shorten(value)), "CALLOUT-1")
            setattr(part, slot, value)
        return part


class AuthServer(RequestPart):
    """The server: `id` is its public key, `xkey` its curve key if requests are encrypted."""

    __slots__ = ("name", "host", "id", "version", "cluster", "tags", "xkey")
    LISTS: tuple[str, ...] = ("tags",)
    name: str
    host: str
    id: str
    version: str
    cluster: str
    tags: list[str]
    xkey: str


class AuthClient(RequestPart):
    """The connection: its origin and kind, and the nonce of the server."""

    __slots__ = (
        "host",
        "id",
        "user",
        "name",
        "tags",
        "name_tag",
        "kind",
        "type",
        "mqtt_id",
        "nonce",
    )
    NUMBERS: tuple[str, ...] = ("id",)
    LISTS: tuple[str, ...] = ("tags",)
    host: str
    id: int
    user: str
    name: str
    tags: list[str]
    name_tag: str
    kind: str
    type: str
    mqtt_id: str
    nonce: str


class AuthOptions(RequestPart):
    """The fields of CONNECT, among them the credentials of the client; its repr omits these."""

    __slots__ = (
        "user",
        "password",
        "token",
        "jwt",
        "nkey",
        "signature",
        "name",
        "lang",
        "version",
        "protocol",
    )
    NAMES: tuple[tuple[str, str], ...] = (
        ("password", "pass"),
        ("token", "auth_token"),
        ("signature", "sig"),
    )
    NUMBERS: tuple[str, ...] = ("protocol",)
    user: str
    password: str
    token: str
    jwt: str
    nkey: str
    signature: str
    name: str
    lang: str
    version: str
    protocol: int

    def __repr__(self) -> str:  # D-AUTH-1
        return "AuthOptions(user=%s, name=%s)" % (shorten(self.user), shorten(self.name))


class AuthTls(RequestPart):
    """The state of TLS; certificates of the client are in PEM, verified or not."""

    __slots__ = ("version", "cipher", "certs", "verified_chains")
    LISTS: tuple[str, ...] = ("certs", "verified_chains")
    version: str
    cipher: str
    certs: list[str]
    verified_chains: list[list[str]]


class AuthRequest:
    """A client that wants to connect (CALLOUT-1). Return `request.user(...)` to accept it.

    user_nkey  the public key that the user must have
    tls        None without TLS
    """

    def __init__(
        self,
        server: AuthServer,
        user_nkey: str,
        client: AuthClient,
        options: AuthOptions,
        tls: AuthTls | None = None,
    ) -> None:
        self.server: AuthServer = server
        self.user_nkey: str = user_nkey
        self.client: AuthClient = client
        self.options: AuthOptions = options
        self.tls: AuthTls | None = tls

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> AuthRequest:
        """Return the request in the fields of a JWT; raise InvalidValue."""
        tls = body.get("client_tls")
        return cls(
            AuthServer.from_json(checks.map_in(body, "server_id")),
            checks.check_text("user_nkey", body.get("user_nkey")),
            AuthClient.from_json(checks.map_in(body, "client_info")),
            AuthOptions.from_json(checks.map_in(body, "connect_opts")),
            None if tls is None else AuthTls.from_json(checks.map_in(body, "client_tls")),
        )

    def user(
        self,
        limits: UserLimits | None = None,
        *,
        account: str = GLOBAL_ACCOUNT,
        name: str = "",
        expires: float = 0,
        tags: Sequence[str] = (),
    ) -> UserClaims:
        """Return a user with the key of the request.

        limits   what the user may do; by default everything in its account
        account  the name of its account in the server's configuration; with an operator, its key
        expires  when the connection ends, in seconds since 1970; 0: never
        """
        name = name or self.options.user or self.options.name
        return UserClaims(
            self.user_nkey, limits, name=name, audience=account, expires=expires, tags=tags
        )

    def __repr__(self) -> str:
        return "<AuthRequest %s from %s>" % (self.options, shorten(self.client.host))
