"""Helpers for the tests of the wire: reading a stream in pieces, and the transcripts."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from natsproto import Parser, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from natsproto.wire.frames import Frame

VECTORS = Path(__file__).parent.parent / "vectors"
PEERS = {"<": "server", ">": "client"}  # other directions are the recorder's remarks


class Result(NamedTuple):
    """The result of a stream: its frames, and how it ended if it ended in garbage."""

    frames: list[Frame]
    error: tuple[str, int, bytes] | None  # reason, offset, excerpt


def read(chunks: Iterable[bytes], parser: Parser) -> Result:
    """Feed the chunks in order; those after garbage are not fed."""
    frames: list[Frame] = []
    try:
        for chunk in chunks:
            frames += parser.feed(chunk)
    except ProtocolError as error:
        return Result(frames + error.frames, (error.reason, error.offset, error.excerpt))
    return Result(frames, None)


def read_all(*chunks: bytes, peer: str = "server") -> list[Frame]:
    """Return the frames of a stream that has no garbage in it."""
    parser = Parser(peer=peer)
    return [frame for chunk in chunks for frame in parser.feed(chunk)]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return the data cut at these places, in any order; a repeated place adds an empty piece."""
    return [data[a:b] for a, b in pairwise([0, *sorted(cuts), len(data)])]


class Stream(NamedTuple):
    """The bytes that one side of one connection of a transcript sent."""

    name: str
    peer: str
    data: bytes


def transcripts() -> list[Path]:
    return sorted(VECTORS.glob("*.json"))


def writes(path: Path) -> list[tuple[str, str, bytes]]:
    """Return the transcript's writes in order: connection, direction, bytes."""
    frames = json.loads(path.read_text(encoding="utf-8"))["frames"]
    return [
        (frame["conn"], frame["dir"], base64.b64decode(frame["b64"]))
        for frame in frames
        if frame["dir"] in PEERS
    ]


def streams() -> list[Stream]:
    """Return every stream of every transcript, in a fixed order."""
    found: list[Stream] = []
    for path in transcripts():
        sides: dict[tuple[str, str], list[bytes]] = {}
        for conn, direction, data in writes(path):
            sides.setdefault((conn, direction), []).append(data)
        found += [
            Stream(f"{path.stem} {conn}{direction}", PEERS[direction], b"".join(parts))
            for (conn, direction), parts in sides.items()
        ]
    return found
