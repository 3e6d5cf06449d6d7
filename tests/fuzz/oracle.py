"""The invariants for any input. The tests, the seeded mutations and atheris share them."""

from __future__ import annotations

from natsproto import HeaderError, Headers, Msg, Parser, Pub
from natsproto.wire.headers import _decode, read_status
from natsproto.wire.parser import MAX_HEADERS, MAX_JSON_LINE
from tests.wire.support import pieces, read

MAX_PAYLOAD = 1024 * 1024
MAX_KEPT = max(MAX_JSON_LINE, MAX_PAYLOAD + MAX_HEADERS + 2)
PEERS = ("server", "client")


def check_stream(peer: str, stream: bytes, cuts: list[int]) -> None:
    """Check that one read and several yield the same frames or error, within bounded memory.

    `read` propagates every error except ProtocolError, because no other may be raised.
    """
    parser = Parser(peer=peer, max_payload=MAX_PAYLOAD)
    whole = read([stream], parser)
    assert parser._kept.size <= min(len(stream), MAX_KEPT)
    assert parser._need <= MAX_KEPT
    for frame in whole.frames:
        if isinstance(frame, (Msg, Pub)):
            check_message(frame)
    parts = read(pieces(stream, cuts), Parser(peer=peer, max_payload=MAX_PAYLOAD))
    assert parts == whole
    for one, other in zip(whole.frames, parts.frames):
        if isinstance(one, Msg):
            assert one.size == other.size


def check_and_tell(peer: str, stream: bytes, cuts: list[int]) -> None:
    """Run check_stream, and add its input to the error if it fails."""
    try:
        check_stream(peer, stream, cuts)
    except Exception as error:
        raise AssertionError(f"{peer}, cut at {cuts}: {stream!r}") from error


def check_message(message: Msg | Pub) -> None:
    """Check that only the headers of a message may raise, and only HeaderError."""
    assert message.subject.encode(errors="surrogateescape") == message.raw_subject
    assert message.reply.encode(errors="surrogateescape") == message.raw_reply
    assert 0 <= message.status <= 999
    if message.raw_headers is not None:
        check_block(message.raw_headers)


def check_block(block: bytes) -> None:
    """Check that a block yields its headers or HeaderError, and that headers round-trip."""
    code, description = read_status(block)
    assert 0 <= code <= 999
    assert isinstance(description, str)
    try:
        pairs = _decode(block)
    except HeaderError:
        pairs = []
    try:
        headers = Headers.decode(block)
    except HeaderError:
        assert not pairs
        return
    # The block may have been recognized by its names, instead of being decoded.
    for name, _ in pairs:
        value = next(value for key, value in pairs if key == name)
        assert headers.get(name) == headers[name] == value
    assert headers.items() == pairs
    assert Headers.decode(headers.encode()) == headers


def check_input(data: bytes) -> None:
    """Check one input of the fuzzer: the first byte picks the peer, the next two the cuts."""
    first, second, third = (data[:3] + bytes(3))[:3]
    stream = data[3:]
    cuts = [second * len(stream) // 256, third * len(stream) // 256]
    check_stream(PEERS[first & 1], stream, cuts)


def as_input(peer: str, stream: bytes, cuts: tuple[int, int] = (85, 170)) -> bytes:
    """Return the inverse of check_input; the cuts are in 256ths of the stream."""
    return bytes([PEERS.index(peer), *cuts]) + stream
