"""Tokens: the last part of a reply subject, which names the request that an answer belongs to.

A reply subject is visible to everyone who receives the request. If tokens counted up, a subscriber
that saw one of them could answer the requests that follow before the real responder does: forge
the acknowledgment of a publish, or the result of an API call. So tokens are random (D-REQ-9).

They are made 64 at a time, which costs as much as counting: 0.1 us each.
"""

from __future__ import annotations

import struct
from binascii import hexlify

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

_POOL = 64
_BYTES = 8 * _POOL  # 64 random bits for each token
_CUT = "16s" * _POOL
# One less than a power of two: with one more bit, half of all numbers would be discarded.
_LIMIT = (1 << (8 * _BYTES)) - 1


class Tokens:
    """Random tokens of upper-case letters and digits; `randrange(n)` is a random number below n.

    A machine that has other subjects under the same inbox starts those with a lower-case letter.
    `pool` holds those that are ready, for code that cannot afford a call.
    """

    __slots__ = ("_randrange", "pool")

    def __init__(self, randrange: Callable[[int], int]) -> None:
        self._randrange = randrange
        self.pool: list[bytes] = []

    def next(self) -> bytes:
        """Return a token that cannot be predicted and was not used before."""
        if not self.pool:
            digits = hexlify(self._randrange(_LIMIT).to_bytes(_BYTES, "big")).upper()
            self.pool = list(struct.unpack(_CUT, digits))
        return self.pool.pop()


class Numbers(Tokens):
    """Tokens that count from 1: for a machine that no connection has subscribed yet."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0
        self.pool: list[bytes] = []

    def next(self) -> bytes:
        self._count += 1
        return b"%d" % self._count
