"""Read the subject, the reply and the size back from an encoded publish.

Publishes that wait for a connection are kept as bytes, the form in which they are sent. Only the
few that the next server does not accept have to be read again.
"""

from __future__ import annotations


def _words(frame: bytes) -> list[bytes]:
    """Return the first line of a PUB or HPUB: its name, the subject, a reply or not, the sizes."""
    return frame[: frame.find(b"\r\n")].split(b" ")


def subject_of(frame: bytes) -> bytes:
    """Return the subject of a PUB or HPUB."""
    return _words(frame)[1]


def reply_of(frame: bytes) -> bytes:
    """Return its reply subject, b"" if it has none."""
    words = _words(frame)
    return words[2] if len(words) == (5 if words[0] == b"HPUB" else 4) else b""


def size_of(frame: bytes) -> int:
    """Return the size of its headers and payload together."""
    return int(_words(frame)[-1])
