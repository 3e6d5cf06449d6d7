"""What passes: failures of servers and connections that a query or a task should outlive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerNotFound,
    ConsumerUnavailable,
    HeartbeatMissed,
    JetStreamNotAvailable,
    MessagesMissed,
    NoSuitablePeers,
    TemporarilyUnavailable,
    TooManyRequests,
)
from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")

#: What a question is asked again for. The API errors are those of a cluster amid an election.
UNANSWERED = (
    ConnectionClosed,
    ConnectionLost,
    JetStreamNotAvailable,
    NoSuitablePeers,
    TemporarilyUnavailable,
    TimeoutExpired,
    TooManyRequests,
)
#: What a range is begun anew for, behind what was read.
PASSING = (
    *UNANSWERED,
    ConsumerDeleted,
    ConsumerNotFound,
    ConsumerUnavailable,
    HeartbeatMissed,
    MessagesMissed,
)
# Together they last 13 s and more: after a crash of a leader the election of another takes 4 to 9.
_TRIES = 10
_PAUSE = 0.1
_LONGEST = 2.0


class Patience:
    """How often in a row something may fail."""

    def __init__(self) -> None:
        self._failures = 0

    def progress(self) -> None:
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Wait a little, ever longer; raise the error if it was the last of too many."""
        self._failures += 1
        if self._failures >= _TRIES:
            raise error
        time.sleep(min(_PAUSE * 2**self._failures, _LONGEST))


def ask(question: Callable[[], Answer]) -> Answer:
    """The answer to something that may be asked twice."""
    patience = Patience()
    while True:
        try:
            return question()
        except UNANSWERED as caught:
            error = caught
        patience.failed(error)
