"""Transcripts of a real server, cut in every way that a socket may cut them.

Each stream is read whole once; every other way of reading it must give the same frames and, where
it ends in garbage, the same error at the same byte.
"""

from __future__ import annotations

import random

import pytest

from natsproto import (
    Connect,
    Err,
    HeaderError,
    Info,
    LocalError,
    Msg,
    Ok,
    Parser,
    Ping,
    Pong,
    ProtocolError,
    Pub,
    Sub,
    Unsub,
    encode,
)
from natsproto.wire import encode_server
from tests.wire.support import (
    Result,
    byte_by_byte,
    pieces,
    read,
    read_all,
    streams,
    transcripts,
    writes,
)

STREAMS = streams()
WHOLE = {stream: read([stream.data], Parser(peer=stream.peer)) for stream in STREAMS}
SHORT = 4096  # every split in two up to this length; the seven longer streams are split at random
SPLITS = 1000

each_stream = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)

# Clients may send garbage too, and seven transcripts are about that.
GARBAGE = {
    "60-err-unknown-op A>": "unknown operation",
    "61-err-sub-parse A>": "1 fields, not 2 or 3",
    "62-err-pub-bad-size A>": "b'xx' is not a number",
    "63-err-pub-negative-size A>": "b'-1' is not a number",
    "64-err-hpub-bad A>": "header size 20 is above the total size 10",
    "69-err-pub-body-not-terminated A>": "no CRLF after a payload of 2 bytes",
    "73-err-connect-bad-json A>": "bad JSON",
}


def test_no_transcript_is_missing():
    assert len(transcripts()) == 97
    assert len(STREAMS) == 210
    assert sum(len(result.frames) for result in WHOLE.values()) == 1674


@pytest.mark.rule("D-WIRE-17")
def test_only_transcripts_of_invalid_input_end_with_it():
    reasons = {s.name: result.error[0] for s, result in WHOLE.items() if result.error is not None}
    assert reasons == GARBAGE


@pytest.mark.rule("D-WIRE-16")
@each_stream
def test_every_byte_belongs_to_a_frame(stream):
    """Nothing is left over at the end: one more frame is read as such."""
    if WHOLE[stream].error is None:
        result = read([stream.data, b"PING\r\n"], Parser(peer=stream.peer))
        assert result == Result([*WHOLE[stream].frames, Ping()], None)


@pytest.mark.rule("D-WIRE-16")
@each_stream
def test_byte_by_byte(stream):
    assert read(byte_by_byte(stream.data), Parser(peer=stream.peer)) == WHOLE[stream]


def test_the_number_of_splits_in_two():
    assert sum(len(stream.data) - 1 for stream in STREAMS if len(stream.data) <= SHORT) == 168_485


@pytest.mark.rule("D-WIRE-16")
@pytest.mark.parametrize(
    "stream", [s for s in STREAMS if len(s.data) <= SHORT], ids=lambda stream: stream.name
)
def test_every_split_in_two(stream):
    data, expected = stream.data, WHOLE[stream]
    for cut in range(1, len(data)):
        assert read([data[:cut], data[cut:]], Parser(peer=stream.peer)) == expected, cut


@pytest.mark.rule("D-WIRE-16")
@each_stream
def test_a_thousand_random_splits(stream):
    rng = random.Random(stream.name)
    data, expected = stream.data, WHOLE[stream]
    for _ in range(SPLITS):
        # Few large pieces or many small ones, and now and then an empty one.
        where = [rng.randrange(len(data) + 1) for _ in range(rng.choice((1, 2, 3, 5, 8, 20)))]
        assert read(pieces(data, where), Parser(peer=stream.peer)) == expected, where


def encoded(frame) -> bytes:
    """Return the frame as our encoder writes it."""
    if isinstance(frame, Pub):
        headers = frame.headers
        return encode.pub(frame.subject, frame.data, reply=frame.reply, headers=headers)
    if isinstance(frame, Sub):
        return encode.sub(frame.subject, frame.sid, queue=frame.queue)
    if isinstance(frame, Unsub):
        return encode.unsub(frame.sid, after=frame.after)
    if isinstance(frame, Connect):
        return encode.connect(frame.fields)
    return encode.ping() if isinstance(frame, Ping) else encode.pong()


def reencoded(data: bytes) -> bytes | None:
    """Return a client's frames as our encoder writes them; None if they are invalid."""
    try:
        return b"".join(map(encoded, read_all(data, peer="client")))
    except (LocalError, HeaderError, ProtocolError):
        return None


NOT_OURS = {  # transcript: writes that our encoder produces differently or not at all
    "02": (1, "header lines with no space or several behind the colon"),
    "04": (4, "lower case, tabs and runs of spaces"),
    "05": (8, "status lines, which are the server's to write"),
    "06": (1, "a NUL in a subject: refused"),
    "07": (7, "header blocks that nobody can read"),
    "60": (1, "garbage"),
    "61": (1, "garbage"),
    "62": (2, "garbage"),
    "63": (2, "garbage"),
    "64": (2, "garbage"),
    "67": (1, "a subject with an empty token: refused"),
    "68": (1, "a wildcard to publish to: refused"),
    "69": (2, "garbage"),
    "73": (1, "garbage"),
    "90": (3, "JSON with spaces"),
    "91": (2, "JSON with spaces"),
    "92": (2, "JSON with spaces"),
    "121": (1, "a filter with a wildcard, in the subject of CONSUMER.CREATE"),
}


@pytest.mark.rule("ENC-1", "ENC-2", "ENC-3", "ENC-4")
def test_encoding_returns_the_bytes_that_were_read():
    same, others = 0, {}
    for path in transcripts():
        for data in [data for _, direction, data in writes(path) if direction == ">"]:
            if reencoded(data) == data:
                same += 1
            else:
                number = path.stem.partition("-")[0]
                others[number] = others.get(number, 0) + 1
    assert others == {number: count for number, (count, _) in NOT_OURS.items()}
    assert same == 774 - 42


def sent_by_a_server(frame) -> bytes:
    """The frame as our encoder writes it."""
    if isinstance(frame, Msg):
        return encode_server.msg_checked(
            frame.raw_subject, frame.sid, frame.data, frame.raw_reply, frame.raw_headers
        )
    if isinstance(frame, Info):
        return encode_server.info(frame.fields)
    if isinstance(frame, Err):
        return encode_server.err(frame.text)
    simple = {Ok: encode_server.ok, Ping: encode_server.ping, Pong: encode_server.pong}
    return simple[type(frame)]()


@pytest.mark.rule("ENC-8")
@pytest.mark.parametrize(
    "stream", [s for s in STREAMS if s.peer == "server"], ids=lambda stream: stream.name
)
def test_encoding_returns_the_bytes_of_the_server(stream):
    expected = stream.data
    if stream.name == "58-consumer-reset A<":  # once, the server sends an empty reply (WIRE-3)
        assert expected.count(b"  ") == 1
        expected = expected.replace(b"  ", b" ")
    assert b"".join(map(sent_by_a_server, WHOLE[stream].frames)) == expected


@pytest.mark.rule("WIRE-18")
def test_the_transcripts_hold_every_operation():
    kinds = {type(frame).__name__ for result in WHOLE.values() for frame in result.frames}
    assert kinds == {"Msg", "Info", "Ping", "Pong", "Ok", "Err", "Connect", "Pub", "Sub", "Unsub"}
