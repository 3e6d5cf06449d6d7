"""Seeded mutations of the transcripts: consecutive writes with one to three defects."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.wire.support import PEERS, transcripts, writes

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS = [
    b"\r\n", b"\n", b"\r", b" ", b"  ", b"\t", b"\0", b"'", b":", b"{", b"}", b'"', b"\xff",
    b"\xc3", b"0", b"1", b"5", b"-1", b"+1", b"1_0", b"007", b"99999999", b"9" * 18, b"9" * 19,
    b"\xd9\xa1", b"MSG ", b"HMSG ", b"msg ", b"PUB ", b"HPUB ", b"SUB ", b"UNSUB ", b"INFO ",
    b"CONNECT ", b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'x'\r\n", b"MSG a 1 5\r\nhello\r\n",
    b"HMSG a 1 12 12\r\nNATS/1.0\r\n\r\n\r\n", b"NATS/1.0", b"NATS/1.0 503\r\n", b"A: b\r\n",
    b'INFO {"max_payload":3}\r\n', b"INFO []\r\n", b"[" * 40,
]  # fmt: skip


class Mutator:
    """An endless supply of (peer, stream, cuts), the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        # Large payloads teach nothing here; the limits have tests of their own.
        self._sides = [side for side in sides() if sum(map(len, side[1])) <= 20_000]

    def __iter__(self) -> Iterator[tuple[str, bytes, list[int]]]:
        rng = self._rng
        while True:
            peer, parts = rng.choice(self._sides)
            start = rng.randrange(max(1, len(parts) - 3))
            window = parts[start : start + rng.randrange(2, 13)]
            whole = rng.randrange(len(window))  # writes that are not mutated
            data = b"".join(window[whole:])
            for _ in range(rng.randrange(1, 4)):
                data = self._mutate(data)
            data = b"".join([*window[:whole], data])
            yield peer, data, [rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 4))]

    def _mutate(self, data: bytes) -> bytes:
        rng = self._rng
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16)))
        kind = rng.randrange(8)
        if kind == 0:  # another byte
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        if kind == 1:
            return data[:at] + rng.choice(TOKENS) + data[at:]
        if kind == 2:
            return data[:at] + rng.choice(TOKENS) + data[end:]
        if kind == 3:
            return data[:at] + data[end:]
        if kind == 4:
            return data[:at] + data[at:end] * 2 + data[end:]
        if kind == 5:  # the rest is moved to the front, or dropped
            return data[at:] + data[:at] if rng.randrange(2) else data[:at]
        if kind == 6:  # one bit
            if at == len(data):
                return data
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        return self._renumber(data)

    def _renumber(self, data: bytes) -> bytes:
        """Replace a number, so that sizes and ids are wrong."""
        fields = data.split(b" ")
        digits = [i for i, field in enumerate(fields) if field[:1].isdigit()]
        if not digits:
            return data
        i = self._rng.choice(digits)
        number = b"%d" % self._rng.choice((0, 1, 2, 3, 5, 12, 100, 70_000, 2_000_000))
        fields[i] = number + fields[i].lstrip(b"0123456789")
        return b" ".join(fields)


def sides() -> list[tuple[str, list[bytes]]]:
    """Return each stream of each transcript as the writes that it was made of."""
    found: list[tuple[str, list[bytes]]] = []
    for path in transcripts():
        by_side: dict[tuple[str, str], list[bytes]] = {}
        for conn, direction, data in writes(path):
            by_side.setdefault((conn, direction), []).append(data)
        found += [(PEERS[direction], parts) for (_, direction), parts in by_side.items()]
    return found
