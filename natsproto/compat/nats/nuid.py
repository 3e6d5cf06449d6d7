"""NUID: short unique texts, for inboxes and names."""

from __future__ import annotations

from secrets import SystemRandom

DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE = 62
PREFIX_LENGTH = 12
SEQ_LENGTH = 10
MAX_SEQ = BASE**SEQ_LENGTH
MIN_INC = 33
MAX_INC = 333
MaxInt = 2**63 - 1
INC = MAX_INC - MIN_INC
TOTAL_LENGTH = PREFIX_LENGTH + SEQ_LENGTH

_RANDOM = SystemRandom()


class NUID:
    """A source of unique texts: a random prefix, and a counter with random steps.

    When the counter is used up, the prefix changes.
    """

    def __init__(self) -> None:
        self._prefix = b""
        self._seq = 0
        self._inc = 0
        self.randomize_prefix()
        self.reset_sequential()

    def next(self) -> bytearray:
        """Return the next text, 22 characters of 0-9, A-Z and a-z."""
        self._seq += self._inc
        if self._seq >= MAX_SEQ:
            self.randomize_prefix()
            self.reset_sequential()
        digits = bytearray(SEQ_LENGTH)
        rest = self._seq
        for place in range(SEQ_LENGTH - 1, -1, -1):
            rest, digit = divmod(rest, BASE)
            digits[place] = DIGITS[digit]
        return bytearray(self._prefix) + digits

    def randomize_prefix(self) -> None:
        """Choose another random prefix."""
        self._prefix = bytes(_RANDOM.choice(DIGITS) for _ in range(PREFIX_LENGTH))

    def reset_sequential(self) -> None:
        """Choose another random start and step of the counter."""
        self._seq = _RANDOM.randrange(MAX_SEQ)
        self._inc = _RANDOM.randrange(MIN_INC, MAX_INC)
