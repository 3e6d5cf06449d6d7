"""The options of a connection as adapters take them: some name files, and one is for traces.

Modules that only some options need are imported when they are used.
"""

from __future__ import annotations

import os

from natsproto.errors import InvalidValue
from natsproto.options import Options
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.options import ServersLike
    from natsproto.trace.connection import Sink

_FILE_TYPE = 0o170000
_REGULAR_FILE = 0o100000
# Options for adapters of hosts that do more than move bytes.
_HOST = ("host_websocket", "host_signing")


def read_options(
    servers: ServersLike, options: dict[str, Any], host: tuple[str, ...] = ()
) -> tuple[Options, Sink | None]:
    """Check the options of `make_connection`; return them, and the sink of traces, if any."""
    for name in _HOST:  # D-OPT-20
        if options.get(name) and name not in host:
            raise InvalidValue(
                "%s is not for programs: this adapter cannot do it" % name, "D-OPT-20"
            )
    if "context" in options:
        servers, options = _add_context(servers, options)
    options, sink = _take_trace(options)
    creds: Any = options.get("creds")
    if (isinstance(creds, str) and creds) or hasattr(creds, "__fspath__"):
        options = dict(options)
        options["creds"] = _credentials_reader(creds)
    try:
        checked = Options(servers=servers, **options)
    except TypeError:
        _reject_unknown(options)
        raise
    if checked.tls is not None and checked.tls is not True:
        _check_tls(checked.tls)
    return checked, sink


def _take_trace(options: dict[str, Any]) -> tuple[dict[str, Any], Sink | None]:
    """Return the options without `trace`, and its sink."""
    # MicroPython has no environment. The variable is looked up here, so that the module of traces
    # is imported only if there is one.
    environ: dict[str, str] = getattr(os, "environ", {})
    if "trace" not in options and not environ.get("NATSPROTO_TRACE"):
        return options, None
    from natsproto.trace import sink_of

    options = dict(options)
    trace = options.pop("trace", None)
    return options, sink_of(trace)


def _add_context(
    servers: ServersLike, options: dict[str, Any]
) -> tuple[ServersLike, dict[str, Any]]:
    options = dict(options)
    name = options.pop("context")
    if name is None or name is False:
        return servers, options
    from .contexts import merge_context, read_context

    return merge_context(read_context(name), servers, options)  # D-CTX-5


def _credentials_reader(creds: str | os.PathLike[str]) -> Callable[[], str]:
    path = creds if isinstance(creds, str) else os.fspath(creds)
    try:
        regular = os.stat(path)[0] & _FILE_TYPE == _REGULAR_FILE
    except (OSError, ValueError):  # ValueError: a path with a NUL
        regular = False
    if not regular:
        raise InvalidValue("creds file does not exist: %s" % shorten(path))

    # Read again at every attempt: credentials are renewed by replacing the file.
    def read() -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    return read


def _reject_unknown(options: dict[str, Any]) -> None:
    """Raise InvalidValue for the first option that does not exist, if there is one."""
    known: dict[str, Any] | None = getattr(Options.__init__, "__kwdefaults__", None)
    if known is None:
        return  # MicroPython: the TypeError has to do
    for name in options:
        if name not in known:
            hint = _hint(name, known)
            raise InvalidValue("option does not exist: %s%s" % (shorten(name), hint)) from None


def _hint(name: str, known: dict[str, Any]) -> str:
    from difflib import get_close_matches

    from natsproto.hints import OPTIONS

    if name in OPTIONS:  # D-HINT-1
        return "; %s" % OPTIONS[name]
    close = get_close_matches(name, known, 1)
    return "; did you mean %r?" % close[0] if close else ""


def _check_tls(tls: object) -> None:
    try:
        from ssl import SSLContext
    except ImportError:
        raise InvalidValue("tls needs the module ssl, which is missing", "D-OPT-16") from None
    if not isinstance(tls, SSLContext):
        # D-OPT-16: the type alone, because the object may hold the path or the password of a key.
        name = type(tls).__name__
        raise InvalidValue("tls is not True or an ssl.SSLContext: %s" % name, "D-OPT-16")
