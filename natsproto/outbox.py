"""Bytes on their way out: whole frames, joined late; publishes survive a reconnect."""

from __future__ import annotations

from .waitable import Waitable

# Larger frames go out alone: joining would copy them once more.
LARGE = 64 * 1024
# With a megabyte the C library gave the memory back after each flush and got it anew, page by page,
# in some processes: 30 us a message of 16 KiB instead of 7. Less than this is more system calls.
HIGH_WATER = 256 * 1024


class Outbox:
    """Frames that the adapter has not taken yet.

    `size` counts their bytes. Above HIGH_WATER callers should wait for `writable`, which becomes
    ready when the adapter has taken them.
    """

    __slots__ = ("_fleeting", "frames", "large", "size", "writable")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.size = 0
        self.large = False  # whether any of them is
        self.writable = Waitable()
        self._fleeting: set[int] = set()  # places in `frames`

    def add(self, frame: bytes, *, fleeting: bool = False) -> bool:
        """True: it is the first since the last `take`, or there are too many: tell the port.

        A fleeting frame does not survive the transport, even if it is a publish.
        """
        if fleeting:
            self._fleeting.add(len(self.frames))
        if len(frame) > LARGE:
            self.large = True
        self.frames.append(frame)
        size = self.size
        self.size = size + len(frame)
        return not size or size > HIGH_WATER

    def take(self) -> list[bytes]:
        """Everything: joined, but for large frames, which stay alone."""
        large = self.large
        frames = self.clear()
        if not frames:
            return []
        return _joined(frames) if large else [b"".join(frames)]

    def only_publishes(self) -> list[bytes]:
        """Take everything, but leave out what only made sense on the transport that is gone."""
        fleeting = self._fleeting
        return [
            frame
            for place, frame in enumerate(self.clear())
            if frame.startswith((b"PUB ", b"HPUB ")) and place not in fleeting
        ]

    def clear(self) -> list[bytes]:
        """Take everything as it is."""
        frames = self.frames
        self.frames = []
        self.size = 0
        self.large = False
        self._fleeting = set()
        return frames


def _joined(frames: list[bytes]) -> list[bytes]:
    """Joined but for the large ones."""
    pieces: list[bytes] = []
    group: list[bytes] = []
    for frame in frames:
        if len(frame) > LARGE:
            pieces.append(b"".join(group))
            pieces.append(frame)
            group = []
        else:
            group.append(frame)
    pieces.append(b"".join(group))
    return [piece for piece in pieces if piece]
