"""Seeded mutations: streams of the transcripts, and single inputs, with one to three defects."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

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


WORDS = [
    b".", b"..", b"*", b">", b"$JS.ACK.", b"_", b":", b",", b"[", b"]", b"{", b"}", b'"', b"\\",
    b"null", b"true", b"0", b"-1", b"1e9", b"1.5", b"9" * 19, b"9" * 21, b"9" * 5000, b"NaN",
    b'"x"', b"[]", b"{}", b'"\\ud800"', b"\\u0000", b"\xff", b"\xd9\xa3", b"\0", b"\n", b"\r\n",
    b"[" * 2000, b'{"a":' * 2000, b'"error":', b'"code":', b'"type":', b'"name":', b'"seq":',
    b'"connect_urls":["a:1","[::1]:x"]', b"Nats-Sequence: x\r\n", b"KV-Operation: PURGE\r\n",
    b"Nats-Service-Error-Code: 9999\r\n", b"0001-01-01T00:00:00Z", b"2026-99-01T00:00:00Z", b"",
]  # fmt: skip


VALUES: list[Any] = [
    *(None, True, 0, -1, 7, 2**63, 2**64, 1.5, 1e300, "", "x", "a.b", "*", "é", "\0", "9" * 30),
    *([], [None], ["x", 7], {}, {"a": None}, [[[]]], "2026-01-01T00:00:00Z"),
]


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
                data = damage(rng, data, TOKENS)
            data = b"".join([*window[:whole], data])
            yield peer, data, [rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 4))]


class Inputs:
    """An endless supply of single inputs, made from samples; the same for the same seed."""

    def __init__(self, seed: int, samples: list[bytes]) -> None:
        self._rng = random.Random(seed)
        self._samples = samples

    def __iter__(self) -> Iterator[bytes]:
        rng = self._rng
        while True:
            data = rng.choice(self._samples)
            if rng.randrange(2):
                data = retype(rng, data)
            for _ in range(rng.randrange(3)):
                data = damage(rng, data, WORDS)
            yield data


def retype(rng: random.Random, data: bytes) -> bytes:
    """Return the data with another value somewhere in its JSON, if it ends with an object."""
    start = data.find(b"{")
    try:
        whole = json.loads(data[start:]) if start >= 0 else None
    except ValueError:
        return data
    place = whole
    while isinstance(place, (dict, list)) and place:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], (dict, list)) or rng.randrange(3) == 0:
            place[key] = rng.choice(VALUES)
            break
        place = place[key]
    return data if whole is None else data[:start] + json.dumps(whole).encode()


def damage(rng: random.Random, data: bytes, tokens: list[bytes]) -> bytes:
    """Return the data with one defect."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 16)))
    kind = rng.randrange(8)
    if kind == 0:  # another byte
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + rng.choice(tokens) + data[at:]
    if kind == 2:
        return data[:at] + rng.choice(tokens) + data[end:]
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
    return _renumber(rng, data)


def _renumber(rng: random.Random, data: bytes) -> bytes:
    """Replace a number, so that sizes and ids are wrong."""
    fields = data.split(b" ")
    digits = [i for i, field in enumerate(fields) if field[:1].isdigit()]
    if not digits:
        return data
    i = rng.choice(digits)
    number = b"%d" % rng.choice((0, 1, 2, 3, 5, 12, 100, 70_000, 2_000_000))
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
