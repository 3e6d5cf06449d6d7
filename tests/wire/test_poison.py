"""Malformed messages of other publishers are ordinary frames, whatever they contain.

The server forwards all of these (transcripts 05, 06 and 07 have most of them). A reader of the
subject gets text, a reader of the headers gets HeaderError, and the messages around are unharmed.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from natsproto import HeaderError, Msg, Ping
from tests.wire.support import byte_by_byte, read_all, streams

V = b"NATS/1.0\r\n"
GOOD = Msg(b"good", 1, b"", b"ok")


class Poison(NamedTuple):
    name: str
    subject: bytes = b"p.x"
    reply: bytes = b""
    block: bytes | None = None
    data: bytes = b"p"
    headers: list[tuple[str, str]] | None = None  # None: HeaderError, if there is a block at all
    status: int = 0
    description: str = ""


POISON = [
    Poison("subject that is not UTF-8", b"p.\xff\xfe"),
    Poison("subject cut in a character", b"p.\xc3"),
    Poison("subject with a surrogate in UTF-8", b"p.\xed\xa0\x80"),
    Poison("subject with a NUL", b"p.\x00"),
    Poison("subject with control characters", b"p.\x01\x0b\x0c\x1b\x7f"),
    Poison("subject with UTF-8", b"p.\xc3\xa9\xe2\x98\x83"),
    Poison("subject of 4,060 bytes", b"p." + b"a" * 4058),
    Poison("subject with empty tokens", b"p..x."),
    Poison("subject with wildcards", b"p.*.>"),
    Poison("subject like an operation", b"PING"),
    Poison("subject of digits", b"5"),
    Poison("reply that is not UTF-8", reply=b"r.\xff"),
    Poison("reply with a NUL", reply=b"r.\x00"),
    Poison("reply of 4,000 bytes", reply=b"r" * 4000),
    Poison("reply of digits", reply=b"12"),
    Poison("payload like frames", data=b"\r\nMSG a 1 1\r\nx\r\n-ERR 'x'\r\n"),
    Poison("payload of line ends", data=b"\r\n" * 50),
    Poison("payload of all bytes", data=bytes(range(256))),
    Poison("header without a colon", block=V + b"nocolon\r\n\r\n"),
    Poison("header block of garbage", block=b' !"#$%&()*+,-./'),
    Poison("header block of another protocol", block=b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
    Poison("header block of one byte", block=b"\x00"),
    Poison("header block of line ends", block=b"\r\n\r\n"),
    Poison("header lines that end with LF", block=b"NATS/1.0\nA: b\n\n"),
    Poison("header that hides behind LF", block=b"NATS/1.0\nA: b\r\n\r\n"),
    Poison("header block without its empty line", block=V + b"A: b\r\n"),
    Poison("header block without any line end", block=b"NATS/1.0"),
    Poison("header without a name", block=V + b": v\r\n\r\n"),
    Poison("header on two lines", block=V + b"A: b\r\n c\r\n\r\n"),
    Poison("header name with a space behind it", block=V + b"A : b\r\n\r\n"),
    Poison("header with a bare CR", block=V + b"A: b\rc\r\n\r\n"),
    Poison("header block with two empty lines", block=V + b"A: b\r\n\r\n\r\n"),
    Poison("header that is not UTF-8", block=V + b"A: \xff\r\n\r\n", headers=[("A", "\udcff")]),
    Poison("header name that is not UTF-8", block=V + b"\xff: b\r\n\r\n",
           headers=[("\udcff", "b")]),
    Poison("header with a NUL", block=V + b"A: \x00\r\n\r\n", headers=[("A", "\0")]),
    Poison("headers that differ in case", block=V + b"a: 1\r\nA: 2\r\n\r\n",
           headers=[("a", "1"), ("A", "2")]),
    Poison("header without a value", block=V + b"A:\r\n\r\n", headers=[("A", "")]),
    Poison("empty header block", block=V + b"\r\n", headers=[]),
    Poison("header called Status", block=V + b"Status: 100\r\nDescription: Idle Heartbeat\r\n\r\n",
           headers=[("Status", "100"), ("Description", "Idle Heartbeat")]),
    Poison("header called Status, 503", block=V + b"Status: 503\r\n\r\n",
           headers=[("Status", "503")]),
    Poison("status line of a publisher, 100", block=b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
           headers=[], status=100, description="Idle Heartbeat"),
    Poison("status line of a publisher, 409",
           block=b"NATS/1.0 409 Consumer Deleted\r\nX: y\r\n\r\n",
           headers=[("X", "y")], status=409, description="Consumer Deleted"),
    Poison("status line of a publisher, 503", block=b"NATS/1.0 503\r\n\r\n",
           headers=[], status=503),
    Poison("status line and a header without a colon", block=b"NATS/1.0 404 No\r\nx\r\n\r\n",
           status=404, description="No"),
    Poison("status that is not UTF-8", block=b"NATS/1.0 408 \xff\r\n\r\n", headers=[], status=408,
           description="\udcff"),
    Poison("status of four digits", block=b"NATS/1.0 5030\r\n\r\n", headers=[]),
    Poison("status of words", block=b"NATS/1.0 No Messages\r\n\r\n", headers=[]),
    Poison("status glued to the version", block=b"NATS/1.0503\r\n\r\n"),
]  # fmt: skip


def on_the_wire(poison: Poison) -> bytes:
    reply = b" " + poison.reply if poison.reply else b""
    if poison.block is None:
        line = b"MSG %s 1%s %d\r\n" % (poison.subject, reply, len(poison.data))
        return line + poison.data + b"\r\n"
    sizes = (len(poison.block), len(poison.block) + len(poison.data))
    line = b"HMSG %s 1%s %d %d\r\n" % (poison.subject, reply, *sizes)
    return line + poison.block + poison.data + b"\r\n"


@pytest.mark.rule("WIRE-15", "HDR-5", "HDR-6", "HDR-7", "HDR-8")
@pytest.mark.parametrize("poison", POISON, ids=lambda poison: poison.name)
def test_an_odd_message_is_an_ordinary_frame(poison):
    good = b"MSG good 1 2\r\nok\r\n"
    wire = good + on_the_wire(poison) + good + b"PING\r\n"
    # A second time, because by then its numbers are known and the hot loop takes it.
    for chunks in ([wire], byte_by_byte(wire), [on_the_wire(poison), wire]):
        frames = read_all(*chunks)
        *_, before, odd, after, ping = frames
        assert (before, after, ping) == (GOOD, GOOD, Ping())
        assert odd == Msg(poison.subject, 1, poison.reply, poison.data, poison.block)
        assert odd.subject.encode(errors="surrogateescape") == poison.subject
        assert odd.reply.encode(errors="surrogateescape") == poison.reply
        assert (odd.status, odd.description) == (poison.status, poison.description)


@pytest.mark.rule("HDR-7")
@pytest.mark.parametrize("poison", POISON, ids=lambda poison: poison.name)
def test_malformed_headers_fail_only_on_access(poison):
    (odd,) = read_all(on_the_wire(poison))
    if poison.block is None:
        assert odd.headers is None
    elif poison.headers is None:
        with pytest.raises(HeaderError):
            odd.headers  # noqa: B018 - reading it is the test
        assert odd.data == poison.data
    else:
        assert odd.headers.items() == poison.headers


def items_or_none(message: Msg) -> list[tuple[str, str]] | None:
    try:
        return message.headers.items()
    except HeaderError:
        return None


@pytest.mark.rule("WIRE-15", "HDR-7")
def test_the_odd_messages_of_the_transcripts():
    """The messages of transcripts 05, 06 and 07 arrive as they were sent, and none is lost."""
    found = {
        stream.name: [frame for frame in read_all(stream.data) if isinstance(frame, Msg)]
        for stream in streams()
        if stream.peer == "server" and stream.name[:2] in ("05", "06", "07")
    }
    assert {name: len(messages) for name, messages in found.items()} == {
        "05-status-line-from-publisher A<": 11,
        "06-bytes-in-subjects A<": 13,
        "07-odd-headers A<": 9,
    }
    readable = [items_or_none(message) for message in found["07-odd-headers A<"]]
    case = [("key", "1"), ("KEY", "2"), ("Key", "3")]
    odd = [("A", "\udcff\udcfe")]
    assert readable == [None, None, None, None, odd, None, None, case, None]
    statuses = [message.status for message in found["05-status-line-from-publisher A<"]]
    assert statuses == [100, 404, 409, 503, 0, 0, 0, 0, 0, 0, 404]
