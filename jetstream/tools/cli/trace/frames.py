"""Bytes cut into frames, without interpreting them: a transcript has the bytes of each frame."""

from __future__ import annotations

WITH_PAYLOAD = (b"MSG", b"HMSG", b"PUB", b"HPUB")
LONGEST_LINE = 1024 * 1024  # WIRE-14
LARGEST = 64 * 1024 * 1024 + LONGEST_LINE  # a payload and its headers


def frame_size(data: bytes) -> int:
    """Return the size of the frame that the bytes begin with; 0 if its line is not complete.

    Raises ValueError if the bytes are not NATS protocol.
    """
    line, newline, _ = data.partition(b"\n")
    if not newline:
        if len(line) > LONGEST_LINE:
            raise ValueError("line is too long")
        return 0
    fields = line.split()
    size = len(line) + 1
    if fields and fields[0].upper() in WITH_PAYLOAD:
        if not fields[-1].isdigit():
            raise ValueError("size of the payload is not a number")
        payload = int(fields[-1]) if len(fields[-1]) < 18 else LARGEST + 1
        if payload > LARGEST:
            raise ValueError("payload is too large")
        size += payload + 2
    return size


class Cutter:
    """Cuts a stream of bytes into frames; bytes after an error are returned as they arrive."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._need = 0  # size of the frame that `_kept` begins with; 0: not known
        self._broken = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that these bytes complete."""
        kept = self._kept
        kept += data
        frames: list[bytes] = []
        at = 0
        while not self._broken:
            if not self._need:
                self._measure(kept, at)
            if self._broken or not self._need or len(kept) - at < self._need:
                break
            frames.append(bytes(kept[at : at + self._need]))
            at += self._need
            self._need = 0
        del kept[:at]
        if self._broken and kept:
            frames.append(bytes(kept))
            kept.clear()
        return frames

    def _measure(self, kept: bytearray, at: int) -> None:
        end = kept.find(b"\n", at) + 1
        try:
            self._need = frame_size(bytes(kept[at:end] if end else kept[at:]))
        except ValueError:
            self._broken = True

    def rest(self) -> bytes:
        """Return the bytes of a frame that is not complete."""
        return bytes(self._kept)
