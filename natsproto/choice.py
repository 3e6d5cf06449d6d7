"""Choice: the server to reconnect to, if the program chooses it (ADR-40).

The option `choose_server` is a function of data alone:

    def choose_server(servers: list[KnownServer], info: Info | None): ...

`servers` is a copy of the pool, starting with the next one to try; `info` is the last server's
description of itself. The result is one of the servers or its URL, a pair of that and a
delay in seconds, or None, which means that the client decides. Any other result, or an exception,
is reported as an event, and the client decides: a mistake in such a function must not cost the
connection.
"""

from __future__ import annotations

from .durations import check_seconds
from .errors import InvalidValue
from .wire.record import Record
from .wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from .durations import Seconds
    from .wire.frames import Info


class KnownServer(Record):
    """A server of the pool, as `choose_server` sees it.

    url         without credentials
    discovered  whether the cluster announced it; False: you named it
    failures    failed attempts in a row
    last_error  the error of the last attempt, or None
    current     whether the last connection was to this server
    """

    __slots__ = ("url", "discovered", "failures", "last_error", "current")

    def __init__(
        self, url: str, discovered: bool, failures: int, last_error: Exception | None, current: bool
    ) -> None:
        self.url: str = url
        self.discovered: bool = discovered
        self.failures: int = failures
        self.last_error: Exception | None = last_error
        self.current: bool = current


if TYPE_CHECKING:
    ServerChoice: TypeAlias = KnownServer | str
    ServerChooser: TypeAlias = Callable[
        [list[KnownServer], Info | None], ServerChoice | tuple[ServerChoice, Seconds] | None
    ]


def choose_server(
    chooser: ServerChooser, servers: list[KnownServer], info: Info | None
) -> tuple[int, float | None] | None:
    """Return the index of the chosen server, and its delay if there is one; None: no choice.

    Raises InvalidValue if the function raises, or returns anything else (POOL-17).
    """
    urls = [server.url for server in servers]
    try:
        result: Any = chooser(servers, info)
    except Exception as error:
        text = "choose_server raised %s: %s" % (type(error).__name__, cut_middle(str(error)))
        raise InvalidValue(text, "POOL-17") from error
    if result is None:
        return None
    choice, delay = _split(result)
    url = _url_of(choice)
    if url not in urls:
        text = "choose_server returned a server that is not in the pool: %s" % shorten(url)
        raise InvalidValue(text, "POOL-17")
    return urls.index(url), delay


def _split(result: Any) -> tuple[Any, float | None]:
    """Return the server and the delay of a result, which may be the server alone."""
    if not _is(result, tuple):
        return result, None
    if len(result) != 2:
        text = "choose_server returned neither a server nor a pair: %s" % shorten(result)
        raise InvalidValue(text, "POOL-17")
    return result[0], check_seconds("delay of choose_server", result[1], rule="POOL-17")


def _url_of(choice: Any) -> Any:
    return choice.url if _is(choice, KnownServer) else choice


def _is(value: object, cls: type) -> bool:
    """Call isinstance without narrowing: for type checkers the value stays Any."""
    return isinstance(value, cls)
