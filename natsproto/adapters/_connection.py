"""Making a connection: its options, which may name files, and its random numbers.

The names here are those of natsproto.adapters.driver, which adapters import. Modules that only some
options need are imported when they are used.
"""

from __future__ import annotations

import os

from natsproto.connection import Connection
from natsproto.errors import InvalidState, InvalidValue
from natsproto.options import Options
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.connection.servers import Rng
    from natsproto.options import ServersLike
    from natsproto.trace.connection import Sink

_FILE_TYPE = 0o170000
_REGULAR_FILE = 0o100000


class SystemRng:
    """Random numbers of the operating system, with the methods that a Connection needs.

    random.SystemRandom does the same, but MicroPython does not have it. Where `os.urandom` is
    missing, pass a function that returns the given number of unpredictable random bytes.
    """

    def __init__(self, urandom: Callable[[int], bytes] | None = None) -> None:
        system: Callable[[int], bytes] = getattr(os, "urandom", _no_urandom)
        self._urandom = system if urandom is None else urandom

    def random(self) -> float:
        """Return a number from 0.0 up to, but not including, 1.0."""
        return (int.from_bytes(self._urandom(7), "big") >> 3) / (1 << 53)

    def randrange(self, limit: int) -> int:
        """Return a number from 0 up to, but not including, `limit`."""
        # 128 bits more than needed make the bias of the remainder unmeasurable.
        size = len("%x" % limit) // 2 + 17
        return int.from_bytes(self._urandom(size), "big") % limit

    def shuffle(self, items: list[Any]) -> None:
        """Put the items into a random order."""
        for i in range(len(items) - 1, 0, -1):
            j = self.randrange(i + 1)
            items[i], items[j] = items[j], items[i]


def _no_urandom(size: int) -> bytes:
    raise InvalidState("random numbers are not available: pass an rng to make_connection")


RNG = SystemRng()


def make_connection(servers: ServersLike, options: dict[str, Any], *, rng: Rng = RNG) -> Connection:
    """Check the options and return a connection that has not begun to connect.

    `options` are the keywords of natsproto.options.Options, except that `creds` is the path of a
    file here, and that `tls` must be a bool, None or an ssl.SSLContext (D-OPT-16). An option that
    does not exist raises InvalidValue, with the name that was probably meant. `context` names a
    file with settings, see natsproto.adapters.contexts; True means the selected one. `trace` is a
    sink for every step of the connection, see natsproto.trace.
    """
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
    if sink is not None:
        from natsproto.trace import TracedConnection

        return TracedConnection(checked, rng=rng, sink=sink)
    return Connection(checked, rng=rng)


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
    return "; do you mean %r?" % close[0] if close else ""


def _check_tls(tls: object) -> None:
    try:
        from ssl import SSLContext
    except ImportError:
        raise InvalidValue("tls needs the module ssl, which is missing", "D-OPT-16") from None
    if not isinstance(tls, SSLContext):
        # D-OPT-16: the type alone, because the object may hold the path or the password of a key.
        name = type(tls).__name__
        raise InvalidValue("tls is not True or an ssl.SSLContext: %s" % name, "D-OPT-16")
