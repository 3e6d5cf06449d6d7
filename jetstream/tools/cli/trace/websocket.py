"""The NATS bytes inside a WebSocket, for the trace: each direction by itself, read only.

    HTTP      the request or the response, up to an empty line
    frames    the payloads of data frames, unmasked and inflated; control frames are skipped

It is independent of the client's own WebSocket, which speaks; this one listens, to both sides. The
server compresses only without a context between messages (WS-11), so each message is inflated by
itself.
"""

from __future__ import annotations

import zlib

_END_OF_HTTP = b"\r\n\r\n"
_CONTROL = 0x08
_FINAL = 0x80
_COMPRESSED = 0x40
_MASKED = 0x80
# What a sender removes from the end of a compressed message (RFC 7692, 7.2.1).
_TAIL = b"\x00\x00\xff\xff"


class Unwrapper:
    """One direction of a WebSocket connection: its bytes in, NATS bytes out."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._upgraded = False
        self._message = b""  # fragments of a compressed message
        self._compressed = False
        self._broken = False

    def feed(self, data: bytes) -> bytes:
        """Return the NATS bytes of the frames that these bytes complete.

        A response that refuses the upgrade is returned as it is, and so are bytes after an error.
        The headers of a request never are: they may contain secrets.
        """
        if self._broken:
            return data
        self._kept += data
        if not self._upgraded and not self._read_http():
            return self._give_up() if self._broken else b""
        payloads: list[bytes] = []
        try:
            while (size := self._frame(payloads)) > 0:
                del self._kept[:size]
        except zlib.error:
            payloads.append(self._give_up())
        return b"".join(payloads)

    def _read_http(self) -> bool:
        """Remove the headers; return whether frames follow."""
        kept = self._kept
        end = kept.find(_END_OF_HTTP)
        refused = kept.startswith(b"HTTP/") and b" 101" not in kept.partition(b"\r")[0]
        self._broken = refused and end > 0
        if end > 0 and not refused:
            del kept[: end + len(_END_OF_HTTP)]
            self._upgraded = True
        return self._upgraded

    def _give_up(self) -> bytes:
        self._broken = True
        rest = bytes(self._kept)
        self._kept.clear()
        return rest

    def _frame(self, payloads: list[bytes]) -> int:
        """Read the first frame; return its size, 0 if it is not complete."""
        kept = self._kept
        if len(kept) < 2:
            return 0
        at, size = 2, kept[1] & 0x7F
        if size >= 126:
            width = 2 if size == 126 else 8
            at, size = at + width, int.from_bytes(kept[at : at + width], "big")
        masked = bool(kept[1] & _MASKED)
        start = at + 4 * masked
        if len(kept) < at or len(kept) < start + size:
            return 0
        payload = bytes(kept[start : start + size])
        if masked:
            payload = unmasked(payload, bytes(kept[at:start]))
        if not kept[0] & _CONTROL:
            payloads.append(self._data(kept[0], payload))
        return start + size

    def _data(self, head: int, payload: bytes) -> bytes:
        """Return the bytes of a data frame; those of a compressed message after its last frame."""
        self._compressed = self._compressed or bool(head & _COMPRESSED)
        if not self._compressed:
            return payload
        self._message += payload
        if not head & _FINAL:
            return b""
        message, self._message = self._message, b""
        self._compressed = False
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(message + _TAIL)


def unmasked(payload: bytes, mask: bytes) -> bytes:
    """Return a payload without its mask; as numbers, which is a hundred times faster than bytes."""
    key = mask * (len(payload) // 4 + 1)
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(key[: len(payload)], "big")
    return mixed.to_bytes(len(payload), "big")
