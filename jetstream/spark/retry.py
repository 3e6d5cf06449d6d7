"""Transient failures of servers and connections, which reads and queries retry."""

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

Result = TypeVar("Result")

#: Errors after which a call is repeated. The API errors are those of a cluster during an election.
RETRYABLE_CALLS = (
    ConnectionClosed,
    ConnectionLost,
    JetStreamNotAvailable,
    NoSuitablePeers,
    TemporarilyUnavailable,
    TimeoutExpired,
    TooManyRequests,
)
#: Errors after which a range is opened again, after the last message that was read.
RETRYABLE_READS = (
    *RETRYABLE_CALLS,
    ConsumerDeleted,
    ConsumerNotFound,
    ConsumerUnavailable,
    HeartbeatMissed,
    MessagesMissed,
)
# In total the retries last at least 13 s; after the crash of a leader, an election takes 4 to 9 s.
_ATTEMPTS = 10
_DELAY = 0.1
_LONGEST_DELAY = 2.0
# For tasks that share a limited number of consumers: about an hour.
_TURNS = 2000


class Backoff:
    """Delays that grow with each consecutive failure, up to a number of attempts."""

    def __init__(self) -> None:
        self._failures = 0
        self._turns = 0

    def reset(self) -> None:
        """Start over, because an attempt made progress."""
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Sleep before the next attempt; raise the error after the last one."""
        self._failures += 1
        if self._failures >= _ATTEMPTS:
            raise error
        time.sleep(min(_DELAY * 2**self._failures, _LONGEST_DELAY))

    def wait_for_turn(self, error: Exception) -> None:
        """Sleep until another task may have finished; raise the error after an hour."""
        self._turns += 1
        if self._turns >= _TURNS:
            raise error
        time.sleep(min(_DELAY * self._turns, _LONGEST_DELAY))


def retry(call: Callable[[], Result]) -> Result:
    """Return the result of an idempotent call, repeated after transient failures."""
    backoff = Backoff()
    while True:
        try:
            return call()
        except RETRYABLE_CALLS as caught:
            error = caught
        backoff.failed(error)
