"""Exit codes, and the code of each error. Scripts rely on them, so they never change (D-CLI-1)."""

from __future__ import annotations

from natsproto.errors import (
    AuthorizationFailed,
    ConnectionClosed,
    ConnectionLost,
    LocalError,
    NatsError,
    NoResponders,
    TimeoutExpired,
    TlsFailed,
)


class CommandFailed(NatsError):
    """A command failed for a reason of its own."""


OK = 0
REFUSED = 1
USAGE = 2  # argparse has it
NO_CONNECTION = 3
TIMEOUT = 4
NOT_FOUND = 5
INTERRUPTED = 130  # 128 + SIGINT, as in shells

#: Each code with its meaning, for people.
MEANINGS: dict[int, str] = {
    OK: "success; also for a command that runs until it is interrupted, and was",
    REFUSED: "the server refused: an error of the API, missing permissions, wrong credentials",
    USAGE: "the command line is wrong, or a file cannot be read or written; nothing was sent",
    NO_CONNECTION: "no server could be reached, or the connection was lost",
    TIMEOUT: "no response arrived in time",
    NOT_FOUND: "the thing does not exist: a stream, a key, an object, a responder",
    INTERRUPTED: "interrupted by Ctrl-C or SIGTERM before the command was done",
}

#: Classes of errors and their codes; the first match wins. RemoteErrors without one are REFUSED.
CODES: list[tuple[type[BaseException], int]] = [
    (NoResponders, NOT_FOUND),
    (AuthorizationFailed, REFUSED),
    (TlsFailed, NO_CONNECTION),
    (TimeoutExpired, TIMEOUT),
    (ConnectionLost, NO_CONNECTION),
    (ConnectionClosed, NO_CONNECTION),
    (LocalError, USAGE),
    (NatsError, REFUSED),
    (OSError, USAGE),
]


def code_of(error: BaseException, codes: list[tuple[type[BaseException], int]]) -> int:
    """Return the exit code of an error; raise the error if the table has none for it."""
    for kind, code in codes:
        if isinstance(error, kind):
            return code
    raise error
