from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from natsproto import (
    Connect,
    Err,
    Headers,
    Info,
    LocalError,
    Msg,
    Ok,
    Parser,
    Ping,
    Pong,
    Pub,
    Sub,
    Unsub,
    encode,
)
from natsproto.wire.subjects import check_publish, check_subscribe, matches
from tests.fuzz.oracle import PEERS, check_block, check_stream
from tests.wire.support import Result, pieces, read, read_all

NUMBERS = st.integers(0, 10**18 - 1)
# What the wire can carry in a field: any byte but those that end a field or a line.
FIELDS = st.binary(min_size=1, max_size=12).map(lambda raw: re.sub(rb"[ \t\r\n]", b".", raw))
TOKENS = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\r\n\f\0."), min_size=1, max_size=8
)
SUBJECTS = st.lists(TOKENS.filter(lambda t: t not in "*>"), min_size=1, max_size=4).map(".".join)
NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0")).map(
    lambda value: value.strip(" \t")
)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
JSON = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=4)


WORDS = [
    b"MSG ", b"HMSG ", b"PUB ", b"HPUB ", b"SUB ", b"UNSUB ", b"INFO ", b"CONNECT ", b"PING",
    b"PONG", b"+OK", b"-ERR ", b"a", b"a.b", b" ", b"\t", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r",
    b"1", b"2", b"5", b"12", b"{", b"}", b"{}", b"[]", b"'", b"NATS/1.0", b"x", b"hello\r\n", b":",
    b"MSG a 1 5\r\nhello\r\n", b"PUB a 5\r\nhello\r\n",
]  # fmt: skip


@st.composite
def from_server(draw: st.DrawFn) -> tuple[bytes, object]:
    """Return a frame and one of the forms in which a server could write it."""
    kind = draw(st.sampled_from(["msg", "msg", "hmsg", "hmsg", "info", "err", "line"]))
    end = draw(st.sampled_from([b"\r\n", b"\r\n", b"\n", b" \r\n"]))
    gap = draw(st.sampled_from([b" ", b" ", b" ", b"  ", b"\t"]))
    if kind == "line":
        name, frame = draw(st.sampled_from([(b"PING", Ping()), (b"pong", Pong()), (b"+OK", Ok())]))
        return name + end, frame
    if kind == "info":
        fields = draw(JSON.filter(lambda fields: "max_payload" not in fields))
        return b"INFO " + encode.connect(fields)[8:-2] + end, Info(fields)
    if kind == "err":
        text = draw(SUBJECTS)
        return b"-ERR '%s'%s" % (text.encode(), end), Err(text)
    subject, reply = draw(FIELDS), draw(st.just(b"") | FIELDS)
    sid, data = draw(NUMBERS), draw(st.binary(max_size=40))
    fields = [subject, b"%d" % sid, *([reply] if reply else [])]
    block = None
    if kind == "hmsg":
        block = draw(st.binary(min_size=1, max_size=30))
        fields.append(b"%d" % len(block))
    fields.append(b"%d" % len((block or b"") + data))
    line = gap.join([kind.upper().encode(), *fields]) + end
    return line + (block or b"") + data + b"\r\n", Msg(subject, sid, reply, data, block)


@st.composite
def from_client(draw: st.DrawFn) -> tuple[bytes, object]:
    """Return a frame and the bytes that our encoder writes for it."""
    kind = draw(st.sampled_from(["pub", "hpub", "sub", "unsub", "connect", "ping", "pong"]))
    if kind == "ping":
        return encode.ping(), Ping()
    if kind == "pong":
        return encode.pong(), Pong()
    if kind == "connect":
        fields = draw(JSON)
        return encode.connect(fields), Connect(fields)
    if kind == "unsub":
        sid, after = draw(NUMBERS), draw(NUMBERS)
        return encode.unsub(sid, after=after), Unsub(sid, after)
    subject = draw(SUBJECTS)
    if kind == "sub":
        sid, queue = draw(NUMBERS), draw(st.just("") | TOKENS)
        return encode.sub(subject, sid, queue=queue), Sub(subject, sid, queue)
    data, reply = draw(st.binary(max_size=40)), draw(st.just("") | SUBJECTS)
    headers = Headers(draw(PAIRS)) if kind == "hpub" else None
    block = None if headers is None else headers.encode()
    frame = Pub(subject.encode(), reply.encode(), data, block)
    return encode.pub(subject, data, reply=reply, headers=headers), frame


@pytest.mark.rule("D-WIRE-16", "ENC-1")
@pytest.mark.parametrize(("peer", "frame"), [("server", from_server()), ("client", from_client())])
def test_any_frames_cut_anywhere_are_the_same_frames(peer, frame):
    @settings(max_examples=300)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn = data.draw(st.lists(frame, max_size=8))
        stream = b"".join([wire for wire, _ in drawn])
        cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
        expected = Result([frame for _, frame in drawn], None)
        assert read(pieces(stream, cuts), Parser(peer=peer)) == expected

    run()


@pytest.mark.rule("D-WIRE-17")
@settings(max_examples=500)
@given(st.sampled_from(PEERS), st.binary(), st.data())
def test_any_bytes_are_frames_or_garbage(peer, stream, data):
    check_stream(peer, stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))


@pytest.mark.rule("D-WIRE-17")
@settings(max_examples=500)
@given(
    st.sampled_from(PEERS),
    st.lists(
        st.sampled_from(WORDS),
        max_size=40,
    ).map(b"".join),
    st.data(),
)
def test_any_words_of_the_protocol_are_frames_or_garbage(peer, stream, data):
    check_stream(peer, stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))


@pytest.mark.rule("HDR-1", "HDR-9", "HDR-10", "HDR-11")
@given(PAIRS)
def test_headers_arrive_as_they_were_sent(pairs):
    headers = Headers(pairs)
    assert Headers.decode(headers.encode()).items() == pairs
    (pub,) = read_all(encode.pub("a", b"x", headers=headers), peer="client")
    assert pub.headers == headers
    assert (pub.data, pub.status) == (b"x", 0)


@pytest.mark.rule("HDR-7")
@settings(max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            [b"NATS/1.0", b" ", b"503", b"\r\n", b"\r\n", b"\n", b"A", b":", b"\xff", b"\t"]
        )
    ).map(b"".join)
)
def test_any_block_is_headers_or_a_header_error(block):
    check_block(block)
    check_block(b"NATS/1.0\r\n" + block + b"\r\n\r\n")


@pytest.mark.rule("ENC-5", "SUBJ-4")
@settings(max_examples=500)
@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_text_is_refused_or_stays_in_its_field(subject, value):
    try:
        wire = encode.pub(subject, b"x", reply=value, headers={"K": value})
    except LocalError:
        return
    pub, ping = read_all(wire + encode.ping(), peer="client")
    assert (pub.subject.encode(errors="surrogateescape"), ping) == (pub.raw_subject, Ping())
    assert pub.raw_subject == subject.encode(errors="surrogateescape")
    assert pub.raw_reply == value.encode(errors="surrogateescape")
    assert pub.headers is not None
    assert len(pub.headers) == 1


def naive_match(pattern: str, subject: str) -> bool:
    """Match by SUBJ-3, as a regular expression."""
    wildcards = {"*": "[^.]+", ">": ".+"}
    tokens = [wildcards.get(token, re.escape(token)) for token in pattern.split(".")]
    return re.fullmatch(r"\.".join(tokens), subject) is not None


@pytest.mark.rule("SUBJ-3", "SUBJ-6")
@settings(max_examples=1000)
@given(
    st.lists(st.sampled_from(["a", "b", "A", "*", "a*", "é"]), min_size=1, max_size=4),
    st.sampled_from(["", ">"]),
    st.lists(st.sampled_from(["a", "b", "A", "a*", "é"]), min_size=1, max_size=5).map(".".join),
)
def test_matching_agrees_with_a_regular_expression(tokens, last, subject):
    pattern = ".".join([*tokens, last] if last else tokens)
    assert check_subscribe(pattern)
    assert check_publish(subject)
    assert matches(pattern, subject) is naive_match(pattern, subject)
