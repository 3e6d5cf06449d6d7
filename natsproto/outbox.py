"""Bytes on their way out: whole frames, joined late; publishes survive a reconnect."""

from __future__ import annotations

from .waitable import Waitable

# Larger pieces go out alone: joining would copy them once more.
_JOIN = 64 * 1024
HIGH_WATER = 1024 * 1024


class Outbox:
    """Frames that the adapter has not taken yet.

    `size` counts their bytes. Above HIGH_WATER callers should wait for `writable`, which becomes
    ready when the adapter has taken them.
    """

    __slots__ = ("_frames", "size", "writable")

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self.size = 0
        self.writable = Waitable()

    def add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.size += len(frame)

    def take(self) -> list[bytes]:
        """Everything, in pieces of about 64 KiB or one large frame."""
        frames = self._frames
        if not frames:
            return frames
        size = self.size
        self._frames = []
        self.size = 0
        return [b"".join(frames)] if size <= _JOIN else _joined(frames)

    def only_publishes(self) -> list[bytes]:
        """Take everything, but leave out what only made sense on the transport that is gone."""
        frames = [frame for frame in self._frames if frame.startswith((b"PUB ", b"HPUB "))]
        self._frames = []
        self.size = 0
        return frames


def _joined(frames: list[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    group: list[bytes] = []
    size = 0
    for frame in frames:
        if group and size + len(frame) > _JOIN:
            pieces.append(b"".join(group))
            group = []
            size = 0
        group.append(frame)
        size += len(frame)
    pieces.append(b"".join(group))
    return pieces
