"""The history of every message, in arrays: millions of messages must fit into memory."""

from __future__ import annotations

import os
from array import array
from collections import Counter

# How much memory the second half of a run may take: what the run itself needs, plus a margin.
RSS_AT_LEAST = 6 * 2**20
RSS_EACH = 24

PAGE = os.sysconf("SC_PAGE_SIZE")


class Ledger:
    """The history of messages, numbered from 0; all times are of one monotonic clock."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.deliveries = 0
        self.published = 0  # acknowledged by the server
        self.acked = bytearray(count)  # 1: a consumer has acknowledged it
        self.in_doubt: set[int] = set()  # acknowledged, but not confirmed
        self.all_acked = False  # as the server reports
        self.stored = bytearray(count)  # how often
        self.delivered = array("I", bytes(4 * count))
        self.confirmed = bytearray(count)
        self.first_at = array("d", bytes(8 * count))
        self.faults: list[tuple[str, float, float]] = []  # what, from, until
        self.forgotten: list[tuple[int, float]] = []  # redelivered with a delivery count of 1: when
        self.odd: list[str] = []
        self.rss: list[tuple[int, int]] = []  # messages delivered, bytes

    def note_published(self, number: int) -> None:
        if self.confirmed[number]:
            self.odd.append(f"{number} was confirmed twice")
        self.confirmed[number] = 1
        self.published += 1

    def note_delivered(self, number: int, times: int, now: float) -> None:
        self.delivered[number] += 1
        if self.delivered[number] == 1:
            self.first_at[number] = now
        elif times == 1:
            self.forgotten.append((number, now))
        self.deliveries += 1
        if self.deliveries % max(50, self.count // 50) == 0:
            self.sample()

    def note_acked(self, number: int) -> None:
        self.acked[number] = 1

    def note_in_doubt(self, number: int) -> None:
        self.in_doubt.add(number)

    def never_acked(self) -> list[int]:
        # If the server reports all as acknowledged, those in doubt are, too: only the answer was
        # lost.
        settled = self.in_doubt if self.all_acked else ()
        return [n for n in range(self.count) if not self.acked[n] and n not in settled]

    def note_stored(self, number: int) -> None:
        self.stored[number] = min(255, self.stored[number] + 1)

    def sample(self) -> None:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        self.rss.append((self.deliveries, pages * PAGE))

    @property
    def again(self) -> int:
        """Return the number of deliveries beyond the first of each message."""
        return self.deliveries - sum(1 for times in self.delivered if times)

    def complaints(self) -> list[str]:
        """Return every violated expectation as a sentence."""
        found = list(self.odd)
        every = range(self.count)
        stored = Counter(self.stored)
        for what, numbers in (
            ("confirmed to the publisher and not stored", self.where(self.confirmed, self.stored)),
            ("stored and not confirmed", self.where(self.stored, self.confirmed)),
            ("stored and not delivered", self.where(self.stored, self.delivered)),
            ("delivered and not stored", self.where(self.delivered, self.stored)),
            ("acknowledged and not delivered", self.where(self.acked, self.delivered)),
            ("never acknowledged", self.never_acked()),
            ("never confirmed", [n for n in every if not self.confirmed[n]]),
            ("stored more than once", [n for n in every if self.stored[n] > 1]),
            ("delivered again as new, without a fault", self.unexplained()),
        ):
            if numbers:
                found.append(f"{len(numbers)} {what}, as {numbers[:5]}")
        if stored[1] != self.count:
            found.append(f"{stored[1]} of {self.count} are stored once")
        return found + self.memory()

    def where(self, one: bytearray | array[int], other: bytearray | array[int]) -> list[int]:
        """Return the messages that are in the first array and not in the second."""
        return [number for number in range(self.count) if one[number] and not other[number]]

    def unexplained(self) -> list[int]:
        # A server that dies, or a leader that is deposed, may have delivered messages that no other
        # server knows of: they are delivered again with a delivery count of 1. No other message is.
        return [
            number
            for number, at in self.forgotten
            if not any(
                begin <= at and end >= self.first_at[number] for _, begin, end in self.faults
            )
        ]

    def memory(self) -> list[str]:
        half = len(self.rss) // 2
        if half < 2:
            return []
        (first, before), (last, after) = self.rss[half], self.rss[-1]
        most = max(RSS_AT_LEAST, RSS_EACH * (last - first))
        if after - before <= most:
            return []
        return [f"RSS grew from {before >> 20} to {after >> 20} MB in the second half"]
