"""The options of nats-py as those of natsproto."""

from __future__ import annotations

import base64
import os
import sys
from collections import UserString
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union
from urllib.parse import quote

from natsproto.auth import nkeys, parse_creds
from natsproto.compat.nats import errors
from natsproto.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from urllib.parse import ParseResult

    from .pool import Choice, Srv


class RawCredentials(UserString):
    """The text of a .creds file, for `user_credentials`."""


Credentials = Union[str, tuple[str, str], RawCredentials, Path]

DEFAULT_INBOX_PREFIX = b"_INBOX"
DEFAULT_PENDING_SIZE = 2 * 1024 * 1024
DEFAULT_RECONNECT_TIME_WAIT = 2
DEFAULT_MAX_RECONNECT_ATTEMPTS = 60
DEFAULT_PING_INTERVAL = 120
DEFAULT_MAX_OUTSTANDING_PINGS = 2
DEFAULT_MAX_FLUSHER_QUEUE_SIZE = 1024
DEFAULT_FLUSH_TIMEOUT = 10
DEFAULT_CONNECT_TIMEOUT = 2
DEFAULT_DRAIN_TIMEOUT = 30

# Options by other names, with the same meaning.
_RENAMED = {
    "pedantic": "pedantic",
    "verbose": "verbose",
    "no_echo": "no_echo",
    "connect_timeout": "connect_timeout",
    "ping_interval": "ping_interval",
    "max_outstanding_pings": "max_pings_out",
    "tls_handshake_first": "tls_first",
    "tls": "tls",
    "tls_hostname": "tls_hostname",
    "name": "name",
    "user": "user",
    "password": "password",
    "token": "token",
}


def core_options(given: dict[str, Any], choice: Choice) -> dict[str, Any]:
    """Return the keywords of natsproto.options.Options for the options of `Client.connect`."""
    wanted = {core: given[name] for name, core in _RENAMED.items() if given[name] is not None}
    most = given["max_reconnect_attempts"]
    prefix = given["inbox_prefix"]
    wanted.update(
        inbox_prefix=(prefix.decode() if isinstance(prefix, bytes) else prefix).rstrip("."),
        shuffle=not given["dont_randomize"],
        # In nats-py 0 means no limit, and a server is dropped by one failure more.
        max_reconnects=(most + 1 if most > 0 else -1) if given["allow_reconnect"] else 0,
        retry_on_first_connect=given["allow_reconnect"],
        choose_server=choice,
        max_pending_out=max(0, given["pending_size"]),
    )
    headers = given["ws_connection_headers"]
    if headers:
        wanted["ws_headers"] = [
            (name, value)
            for name, values in headers.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
    wanted.update(_credentials(given))
    return wanted


def server_urls(pool: list[Srv], require_tls: bool) -> list[str]:
    """Return the URLs for natsproto.

    require_tls: whether `tls://` insists on TLS; nats-py does not, so that anyone on the network
        path can have a client send its credentials in plain text
    """
    urls = [_usable(srv.uri).geturl() for srv in pool]
    if not require_tls:
        urls = ["nats" + url[len("tls") :] if url.startswith("tls://") else url for url in urls]
    return urls


def _usable(uri: ParseResult) -> ParseResult:
    """Return an address as natsproto reads it, without parts that nats-py ignores, such as a path.

    Credentials are quoted, because nats-py sends them as they are in the URL.
    """
    credentials, _, place = uri.netloc.rpartition("@")
    if not uri.username and not uri.password:
        credentials = ""
    quoted = quote(credentials, safe=":") + "@" if credentials else ""
    uri = uri._replace(netloc=quoted + place)
    return uri if uri.scheme in ("ws", "wss") else uri._replace(path="", query="", fragment="")


def _credentials(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    credentials, jwt, sign = given["user_credentials"], given["user_jwt_cb"], given["signature_cb"]
    if credentials:
        read = _reader(credentials)
        # Before anything is dialed: a file that cannot be read is the caller's mistake.
        _check_seed(read()[1])
        found.update(jwt=lambda: read()[0], nkey_seed=lambda: read()[1])
    elif jwt is not None:
        found.update(jwt=lambda: bytes(jwt()).decode().strip(), sign=_signer(sign))
    elif given["nkeys_seed_str"]:
        found["nkey_seed"] = _check_seed(given["nkeys_seed_str"].strip())
    elif given["nkeys_seed"]:
        path = Path(os.path.expanduser(given["nkeys_seed"]))
        found["nkey_seed"] = lambda: path.read_text().strip()
        _check_seed(path.read_text().strip())
    return found


def _reader(credentials: Credentials) -> Callable[[], tuple[str, str]]:
    """Return a function that reads the JWT and the seed, again for every connection."""
    if isinstance(credentials, tuple):
        jwt, seed = (Path(path).expanduser() for path in credentials)
        return lambda: (jwt.read_text().strip(), seed.read_text().strip())
    if isinstance(credentials, UserString):
        text = str(credentials)
        return lambda: _parse(text)
    path = Path(credentials).expanduser()
    return lambda: _parse(path.read_text())


def _parse(text: str) -> tuple[str, str]:
    try:
        return parse_creds(text)
    except InvalidValue as error:
        made = _invalid_seed() if "SEED" in str(error) else errors.InvalidUserCredentialsError()
        raise made from error


def _check_seed(seed: str) -> str:
    try:
        nkeys.decode_seed(seed)
    except InvalidValue as error:
        raise _invalid_seed() from error
    return seed


def _invalid_seed() -> Exception:
    """Return the error for a seed that is not one.

    nats-py raises that of the package nkeys, which this layer does not need. For programs that
    import it, the error belongs to both classes.
    """
    theirs: Any = getattr(sys.modules.get("nkeys"), "ErrInvalidSeed", None)
    if theirs is None:
        return errors.InvalidUserCredentialsError()
    kind = type("InvalidSeedError", (errors.InvalidUserCredentialsError, theirs), {})
    return kind()  # type: ignore[no-any-return]


def _signer(sign: Callable[[str], bytes] | None) -> Callable[[bytes], bytes]:
    """Return a signer for natsproto; `signature_cb` returns its signature in base64."""
    if sign is None:
        raise errors.InvalidUserCredentialsError
    return lambda nonce: base64.b64decode(bytes(sign(nonce.decode())))
