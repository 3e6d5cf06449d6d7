"""Contexts of the NATS command line (ADR-21): named files with the settings of a connection.

`connect(context="prod")` reads them, and so does `read_context`. The files are in the directory
`nats` below $XDG_CONFIG_HOME, or ~/.config:

    context.txt         the name of the selected context
    context/prod.json   a context
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

from natsproto.errors import InvalidValue
from natsproto.options import DEFAULT_SERVER, read_servers, split_servers
from natsproto.wire.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.options import OptionsDict

__all__ = ["NatsContext", "context_names", "read_context", "selected_context"]

# Fields that have the name and the meaning of an option.
_SAME = ["token", "user", "password", "inbox_prefix"]
# Fields that contain a path.
_PATHS = ["nkey", "cert", "key", "ca"]
# Fields for people and for other programs: they do not change what a client does.
_NOTES = ["name", "description", "color_scheme", "jetstream_event_prefix"]
# Fields that this library cannot honor (D-CTX-4), and why.
_REJECTED = {
    "nsc": "it needs the program nsc; use creds",
    "socks_proxy": "proxies are not supported",
    "windows_cert_store": "the certificate store of Windows is not supported",
    "windows_cert_match_by": "the certificate store of Windows is not supported",
    "windows_cert_match": "the certificate store of Windows is not supported",
    "windows_ca_certs_match": "the certificate store of Windows is not supported",
}
_TEXTS = [
    *_SAME,
    *_PATHS,
    *_NOTES,
    "url",
    "creds",
    "user_jwt",
    "user_seed",
    "jetstream_domain",
    "jetstream_api_prefix",
]
_AUTH = ["token", "user", "password", "nkey_seed", "jwt", "creds", "nkey", "sign"]


class NatsContext:
    """A context: `servers` and `options` for connect(), `jetstream` for JetStream().

    The repr has no values, because some are secret.
    """

    def __init__(
        self, name: str, servers: str, options: OptionsDict, jetstream: dict[str, str]
    ) -> None:
        self.name: str = name
        #: The servers, separated by commas; "" if the context names none.
        self.servers: str = servers
        #: The keyword arguments of connect().
        self.options: OptionsDict = options
        #: The keyword arguments of JetStream(): `domain` or `prefix`, or none.
        self.jetstream: dict[str, str] = jetstream

    def __repr__(self) -> str:
        return f"NatsContext({self.name!r}, options={sorted(self.options)})"


def context_names() -> list[str]:
    """Return the names of all contexts, sorted."""
    try:
        files = os.listdir(os.path.join(_directory(), "context"))
    except OSError:
        return []
    return sorted(file[:-5] for file in files if file.endswith(".json") and len(file) > 5)


def selected_context() -> str:
    """Return the name of the selected context, or ""."""
    try:
        with open(os.path.join(_directory(), "context.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_context(name: str | bool = True) -> NatsContext:
    """Read a context; True means the selected one.

    Raises InvalidValue if it does not exist, or has a setting that cannot be honored. The text of
    the error contains no value of the file.
    """
    if name is True:
        name = selected_context()
        if not name:
            raise InvalidValue("no context is selected: name one (CTX-2)")
    if not isinstance(name, str):
        raise InvalidValue(f"context is {type(name).__name__}, not a str or True (CTX-2)")
    if not name or ".." in name or "/" in name or "\\" in name or "\0" in name:
        raise InvalidValue(f"context {shorten(name)} is not a name (CTX-2)")
    return _Reader(name, _load(name)).read()


def merge_context(
    context: NatsContext, servers: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the servers and options to connect with: arguments replace those of the context."""
    chosen: dict[str, Any] = dict(context.options)
    # D-CTX-5: one credential replaces all of them, because two kinds would contradict each other.
    if any(options.get(name) for name in _AUTH):
        for name in _AUTH:
            chosen.pop(name, None)
    chosen.update(options)
    return (context.servers or servers) if servers == DEFAULT_SERVER else servers, chosen


def _directory() -> str:  # CTX-1
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "nats")


def _load(name: str) -> dict[str, Any]:
    path = os.path.join(_directory(), "context", name + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            fields: dict[str, Any] | None = json.load(file)
    except OSError:
        raise InvalidValue(f"context {shorten(name)} does not exist: {path} (CTX-2)") from None
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InvalidValue(f"context {shorten(name)} is not a JSON object (CTX-3)")
    return fields


class _Reader:
    """Turns the fields of one file into servers and options."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self._name = name
        # The command line writes every field and treats an empty one as not set; so do we.
        self._fields = {key: value for key, value in fields.items() if value}

    def read(self) -> NatsContext:
        self._check()
        fields = self._fields
        options: dict[str, Any] = {key: fields[key] for key in _SAME if key in fields}
        options.update(self._credentials())
        options.update(self._tls())
        return NatsContext(self._name, self._servers(), options, self._jetstream())  # type: ignore[arg-type]

    def _check(self) -> None:
        for key, value in self._fields.items():
            if key in _REJECTED:
                raise self._bad(key, f"is not supported: {_REJECTED[key]}", "D-CTX-4")
            if key == "tls_first":
                if not isinstance(value, bool):
                    raise self._bad(key, "is neither true nor false", "CTX-3")
            elif key not in _TEXTS:
                raise self._bad(key, "is not known", "D-CTX-4")
            elif not isinstance(value, str):
                raise self._bad(key, "is not a string", "CTX-3")

    def _servers(self) -> str:
        url: str = self._fields.get("url", "")
        if url:
            read_servers(split_servers(url), secure=False)
        return url

    def _credentials(self) -> dict[str, Any]:
        fields = self._fields
        options: dict[str, Any] = {}
        if "creds" in fields:
            options["creds"] = self._creds(fields["creds"])
        if "nkey" in fields:
            path = self._file("nkey", _expand(fields["nkey"]))
            options["nkey_seed"] = partial(read_seed, path)
        if "user_seed" in fields:
            options["nkey_seed"] = fields["user_seed"]
        if "user_jwt" in fields:
            options["jwt"] = fields["user_jwt"]
            if "nkey_seed" not in options:  # a bearer JWT needs no signature
                options["sign"] = _no_signature
        return options

    def _creds(self, text: str) -> str | Callable[[], str]:
        scheme, separator, rest = text.partition(":")
        if scheme == "data" and separator:
            try:
                decoded = base64.b64decode(rest.rpartition(",")[2], validate=True).decode()
            except (binascii.Error, ValueError):
                raise self._bad("creds", "is not base64 after data:", "CTX-3") from None
            return lambda: decoded
        scheme, separator, rest = text.partition("://")
        if not separator:
            return self._file("creds", _expand(text))
        if scheme == "file":
            return self._file("creds", _expand(rest))
        if scheme == "env":
            return partial(_read_variable, rest)
        raise self._bad(
            "creds", f"has a scheme that is not supported: {shorten(scheme)}", "D-CTX-4"
        )

    def _tls(self) -> dict[str, Any]:
        fields = self._fields
        options: dict[str, Any] = {"tls_first": True} if "tls_first" in fields else {}
        if ("cert" in fields) != ("key" in fields):
            raise self._bad("cert", "and key belong together: one of them is missing", "CTX-3")
        if "ca" in fields or "cert" in fields:
            paths = {
                key: self._file(key, _expand(fields[key])) for key in _PATHS[1:] if key in fields
            }
            try:
                context = ssl.create_default_context(cafile=paths.get("ca"))
                if "cert" in paths:
                    context.load_cert_chain(paths["cert"], paths["key"])
            except (OSError, ValueError) as error:  # SSLError is an OSError
                kind = type(error).__name__
                raise self._bad("ca", f"or cert cannot be loaded: {kind}", "CTX-3") from None
            options["tls"] = context
        return options

    def _jetstream(self) -> dict[str, str]:
        named = {"domain": "jetstream_domain", "prefix": "jetstream_api_prefix"}
        return {key: self._fields[field] for key, field in named.items() if field in self._fields}

    def _file(self, key: str, path: str) -> str:
        if not os.path.isfile(path):
            raise self._bad(key, f"file does not exist: {shorten(path)}", "CTX-3")
        return path

    def _bad(self, key: str, why: str, rule: str) -> InvalidValue:
        return InvalidValue(f"context {shorten(self._name)}: {shorten(key)} {why}", rule)


def _expand(path: str) -> str:
    return os.path.expanduser(os.path.expandvars(path))


def read_seed(path: str) -> str:
    """Return the seed in a file, which may have comments around it."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return next((line for line in lines if line.startswith("SU")), "".join(lines))


def _read_variable(name: str) -> str:
    return os.environ[name]


def _no_signature(nonce: bytes) -> bytes:
    return bytes(64)
