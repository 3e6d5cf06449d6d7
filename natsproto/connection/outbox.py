"""Bytes on their way out: frames, joined late; publishes survive a reconnect."""

from __future__ import annotations

from .waitable import Waitable

# Larger frames and payloads go out alone: joining would copy them once more.
LARGE = 64 * 1024
# Enough for few system calls; more would be out of the cache when it is sent.
HIGH_WATER = 256 * 1024


class Outbox:
    """Frames that the adapter has not taken yet.

    `frames` holds them whole or, for plain publishes, as four pieces in a row: `PUB subject `, the
    size and its CRLF, the payload, CRLF. `size` is about how many bytes that is. Above HIGH_WATER
    callers should wait for `writable`, which becomes ready when the adapter has taken them.
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
        """Everything: joined, but for what is large, which stays alone."""
        large = self.large
        frames = self.clear()
        if not frames:
            return []
        return _joined(frames) if large else [b"".join(frames)]

    def drop_last(self) -> bool:
        """Forget the last frame; False if all were taken meanwhile."""
        frames = self.frames
        if not frames:
            return False
        pieces = 1 if len(frames[-1]) > 2 else 4
        self.size -= sum([len(piece) for piece in frames[-pieces:]])
        frames[-pieces:] = []
        if not frames:
            self.clear()  # sizes of pieces are only about right
        return True

    def only_publishes(self) -> list[bytes]:
        """Take everything, but leave out what only made sense on the transport that is gone."""
        fleeting = self._fleeting
        frames = self.clear()
        publishes: list[bytes] = []
        place = 0
        while place < len(frames):
            frame = frames[place]
            pieces = 1 if frame.endswith(b"\n") else 4
            if frame.startswith((b"PUB ", b"HPUB ")) and place not in fleeting:
                publishes.append(b"".join(frames[place : place + pieces]))
            place += pieces
        return publishes

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
