"""Deliveries as they arrive at the clients of this process, before any machine has seen them.

A reader that misses a message cannot tell where it was lost. With this trace it can: a delivery
that arrived, and that the reader never got, was lost by the client. One that did not arrive was
lost by the servers or on the way from them, and the consumer delivers it again after `ack_wait`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from natsproto.connection.subscriptions import Subscriptions
from natsproto.wire.frames import Msg

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = b"$JS.ACK."


class Delivery(NamedTuple):
    """The arrival of a message: when, and the number of its deliveries so far."""

    at: float
    count: int


class Trace:
    """The deliveries of one stream, by consumer and sequence."""

    def __init__(self, stream: str) -> None:
        self._prefix = PREFIX + stream.encode() + b"."
        self.arrived: dict[str, dict[int, list[Delivery]]] = {}

    @contextmanager
    def tap(self) -> Iterator[None]:
        """Look at all messages that arrive meanwhile."""
        original = Subscriptions.deliver

        def deliver(self_: Subscriptions, frames: Any, now: float) -> Any:
            return original(self_, self._noted(frames), now)

        Subscriptions.deliver = deliver  # type: ignore[method-assign]
        try:
            yield
        finally:
            Subscriptions.deliver = original  # type: ignore[method-assign]

    def _noted(self, frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            if isinstance(frame, Msg) and frame.raw_reply.startswith(self._prefix):
                self._note(frame.raw_reply)
            yield frame

    def _note(self, reply: bytes) -> None:
        tokens = reply[len(self._prefix) :].split(b".")
        consumer, count, seq = tokens[0].decode(), int(tokens[1]), int(tokens[2])
        found = self.arrived.setdefault(consumer, {}).setdefault(seq, [])
        found.append(Delivery(time.monotonic(), count))

    def lost_by_client(self, consumer: str, seen: set[int]) -> list[int]:
        """Return what arrived for a consumer, but is not among what its reader got."""
        return sorted(set(self.arrived.get(consumer, {})) - seen)

    def explain(self, consumer: str, missing: set[int]) -> str:
        """Return what is known of messages that were missing at some time."""
        arrived = self.arrived.get(consumer, {})
        never = sum(seq not in arrived for seq in missing)
        again = sum(arrived[seq][0].count > 1 for seq in missing if seq in arrived)
        first = len(missing) - never - again
        return (
            f"{len(missing)} late: {again} arrived first as a redelivery, {first} as a first"
            f" delivery, {never} did not arrive"
        )
