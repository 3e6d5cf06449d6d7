"""Tables of calls and their results, as literals, so that nothing is compared with itself."""

from harness import check, outcome, table

from natsproto import Headers, Msg, Parser, Ping, Sub, encode
from natsproto.wire import encode_server, subjects
from natsproto.wire.headers import read_status
from natsproto.wire.text import decode
from natsproto.wire.text import encode as encode_text

BLOCK = b"NATS/1.0\r\nA: 1\r\na: 2\r\nA: 3\r\nE:\r\n\r\n"


def frame(peer, stream):
    """Return the only frame of the stream."""
    [only] = Parser(peer=peer).feed(stream)
    return only


def encoding():
    table("encode", ENCODE)
    # The parser reads back what was encoded (ENC-1), and only once it is complete.
    for _, sent in ENCODE:
        if isinstance(sent, bytes):
            parser = Parser(peer="client")
            frames = [parser.feed(sent[i : i + 1]) for i in range(len(sent))]
            check("%r, early" % sent, sum([len(early) for early in frames[:-1]]), 0)
            check("%r, read back" % sent, frames[-1], Parser(peer="client").feed(sent))
    check("connect", frame("client", encode.connect({"a": [1, "é"], "b": True})).fields, FIELDS)
    table("encode_server", SERVER)
    for _, sent in SERVER:
        if isinstance(sent, bytes):
            check("%r, read back" % sent, len(Parser().feed(sent)), 1)


FIELDS = {"a": [1, "é"], "b": True}

SERVER = [
    (lambda: encode_server.ok(), b"+OK\r\n"),
    (lambda: encode_server.err("Stale Connection"), b"-ERR 'Stale Connection'\r\n"),
    (lambda: encode_server.info({"server_id": "X"}), b'INFO {"server_id":"X"} \r\n'),
    (lambda: encode_server.msg("a", 1, b"x"), b"MSG a 1 1\r\nx\r\n"),
    (lambda: encode_server.msg("a", 1, reply="r"), b"MSG a 1 r 0\r\n\r\n"),
    (
        lambda: encode_server.msg("a", 1, b"hi", headers={"K": "v"}),
        b"HMSG a 1 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n",
    ),
    (
        lambda: encode_server.msg("a", 1, status=404, description="No Messages"),
        b"HMSG a 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n",
    ),
    (lambda: encode_server.msg("a", 1, status=1), ("InvalidHeader", "HDR-5")),
    (lambda: encode_server.err("a\r\n"), ("InvalidValue", "D-ENC-10")),
]

ENCODE = [
    (lambda: encode.ping(), b"PING\r\n"),
    (lambda: encode.pong(), b"PONG\r\n"),
    (lambda: encode.connect({"verbose": False}), b'CONNECT {"verbose":false}\r\n'),
    (lambda: encode.pub("a"), b"PUB a 0\r\n\r\n"),
    (lambda: encode.pub("a.b", b"x\r\n\0y"), b"PUB a.b 5\r\nx\r\n\0y\r\n"),
    (lambda: encode.pub("a", b"x", reply="r"), b"PUB a r 1\r\nx\r\n"),
    (lambda: encode.pub("a", bytearray(b"x")), b"PUB a 1\r\nx\r\n"),
    (lambda: encode.pub("a", memoryview(b"xyz")[1:]), b"PUB a 2\r\nyz\r\n"),
    (lambda: encode.pub("é", b"x"), b"PUB \xc3\xa9 1\r\nx\r\n"),
    (lambda: encode.pub("\udcff", b"x"), b"PUB \xff 1\r\nx\r\n"),
    (lambda: encode.pub("a", headers={}), b"HPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n"),
    (
        lambda: encode.pub("a", b"hi", reply="r", headers={"K": "v"}),
        b"HPUB a r 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n",
    ),
    (
        lambda: encode.pub("a", headers=[("K", ["v", "w"]), ("k", "")]),
        b"HPUB a 29 29\r\nNATS/1.0\r\nK: v\r\nK: w\r\nk: \r\n\r\n\r\n",
    ),
    (lambda: encode.sub("a.*.>", 7), b"SUB a.*.> 7\r\n"),
    (lambda: encode.sub("a", 0, queue="q"), b"SUB a q 0\r\n"),
    (lambda: encode.sub("a", 2**53), b"SUB a 9007199254740992\r\n"),
    (lambda: encode.unsub(7), b"UNSUB 7\r\n"),
    (lambda: encode.unsub(7, after=3), b"UNSUB 7 3\r\n"),
    (lambda: encode.pub("a b"), ("InvalidSubject", "SUBJ-4")),
    (lambda: encode.pub("a\r\nPUB b 0\r\n"), ("InvalidSubject", "SUBJ-4")),
    (lambda: encode.pub("a", reply="*"), ("InvalidSubject", "SUBJ-2")),
    (lambda: encode.pub("a", "text"), ("InvalidValue", "D-ENC-6")),
    (lambda: encode.pub("a", 5), ("InvalidValue", "D-ENC-6")),
    (lambda: encode.pub("a", headers={"K": "a\r\nB: c"}), ("InvalidHeader", "HDR-10")),
    (lambda: encode.sub("a", -1), ("InvalidValue", "D-ENC-7")),
    (lambda: encode.sub("a", True), ("InvalidValue", "D-ENC-7")),
    (lambda: encode.sub("a", "1"), ("InvalidValue", "D-ENC-7")),
    (lambda: encode.sub("a", 1, queue="q r"), ("InvalidSubject", "SUBJ-5")),
    (lambda: encode.unsub(1, after=-1), ("InvalidValue", "D-ENC-7")),
]


def headers():
    table("decode", DECODE)
    for block, want in STATUS:
        check("status of %r" % block, read_status(block), want)
    for name, value, rule in REFUSED_HEADERS:
        got = outcome(lambda name=name, value=value: Headers([(name, value)]))
        check("header %r: %r" % (name, value), got, ("InvalidHeader", rule))
    block = Headers.decode(BLOCK)
    check("first value", (block["A"], block.get("A"), block.get("B"), block.get("B", "d")), FIRST)
    check("all values", (block.get_all("A"), block.get_all("b")), (["1", "3"], []))
    check("keys", (block.keys(), list(block), len(block)), (["A", "a", "E"], ["A", "a", "E"], 4))
    check("membership", ("a" in block, "e" in block), (True, False))
    check("written back", block.encode(), b"NATS/1.0\r\nA: 1\r\na: 2\r\nA: 3\r\nE: \r\n\r\n")
    block.set("A", "9")
    block.append("a", "8")
    block.delete("E")
    check("changed", block.items(), [("a", "2"), ("A", "9"), ("a", "8")])
    check("equal", block == Headers([("a", "2"), ("A", "9"), ("a", "8")]), True)
    check("not equal", block == Headers({"A": "9"}), False)
    check("repr", repr(Headers({"A": "9"})), "Headers([('A', '9')])")
    try:
        block["none"]
        check("a missing name", "no error", "KeyError")
    except KeyError as error:
        check("a missing name", error.args, ("none",))
    msg = frame("server", b"HMSG a 1 %d %d\r\n%s\r\n" % (len(BLOCK), len(BLOCK), BLOCK))
    check("decoded once", msg.headers is msg.headers, True)


FIRST = ("1", "1", "", "d")

DECODE = [
    (lambda: Headers.decode(b"NATS/1.0\r\n\r\n").items(), []),
    (lambda: Headers.decode(BLOCK).items(), [("A", "1"), ("a", "2"), ("A", "3"), ("E", "")]),
    (lambda: Headers.decode(b"NATS/1.0 503\r\n\r\n").items(), []),
    (lambda: Headers.decode(b"NATS/1.0 100 Idle\r\nA:b:c \t\r\n\r\n").items(), [("A", "b:c")]),
    (lambda: Headers.decode(b"NATS/1.0\r\nA: \xc3\xa9\r\n\r\n").items(), [("A", "é")]),
    (lambda: Headers.decode(b"NATS/1.0\r\nA: \xff\r\n\r\n").items(), [("A", "\udcff")]),
    (lambda: Headers.decode(b"NATS/1.0\r\nA: \xff\r\n\r\n").encode()[-7:], b": \xff\r\n\r\n"),
    (lambda: Headers.decode(b""), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"HTTP/1.0\r\n\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\nno colon\r\n\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\n: nameless\r\n\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\nA : b\r\n\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\n folded: b\r\n\r\n"), ("HeaderError", "")),
    (lambda: Headers.decode(b"NATS/1.0\r\nA: b\nC: d\r\n\r\n"), ("HeaderError", "")),
]

STATUS = [
    (b"NATS/1.0\r\n\r\n", (0, "")),
    (b"NATS/1.0 503\r\n\r\n", (503, "")),
    (b"NATS/1.0 404 No Messages\r\n\r\n", (404, "No Messages")),
    (b"NATS/1.0   409   Consumer Deleted  \r\n\r\n", (409, "Consumer Deleted")),
    (b"NATS/1.0 50\r\n\r\n", (0, "")),
    (b"NATS/1.0 5x3\r\n\r\n", (0, "")),
    (b"NATS/1.0 4040\r\n\r\n", (0, "")),
    (b"NATS/1.0503\r\n\r\n", (0, "")),
    (b"NATS/1.0 100 \xff\r\n\r\n", (100, "\udcff")),
    (b"", (0, "")),
    (b"garbage", (0, "")),
]

REFUSED_HEADERS = [
    ("", "v", "HDR-9"),
    ("a b", "v", "HDR-9"),
    ("a:", "v", "HDR-9"),
    ("é", "v", "HDR-9"),
    ("a\n", "v", "HDR-9"),
    ("a", "v\r", "HDR-10"),
    ("a", "v\nw", "HDR-10"),
    ("a", "\0", "HDR-10"),
    ("a", " v", "HDR-10"),
    ("a", "v\t", "HDR-10"),
    ("a", "\ud800", "HDR-10"),
]


def names():
    for subject in PUBLISH:
        check("publish to %r" % subject, subjects.check_publish(subject), subject.encode())
    for subject, rule in REFUSED_PUBLISH:
        got = outcome(lambda subject=subject: subjects.check_publish(subject))
        check("publish to %r" % (subject,), got, ("InvalidSubject", rule))
    for subject in PUBLISH + ["*", ">", "a.*", "a.>", "*.b.>"]:
        check("subscribe to %r" % subject, subjects.check_subscribe(subject), subject.encode())
    for subject, rule in REFUSED_SUBSCRIBE:
        got = outcome(lambda subject=subject: subjects.check_subscribe(subject))
        check("subscribe to %r" % (subject,), got, ("InvalidSubject", rule))
    for pattern, subject, want in MATCHES:
        check("%s matches %s" % (pattern, subject), subjects.matches(pattern, subject), want)
    table("names", NAMES)


PUBLISH = ["a", "a.b", "a.b.c", "$JS.API.INFO", "a*.b>", "é.ü", "한", "a\x7f"]
_BAD_TEXT = [("", "SUBJ-4"), ("a b", "SUBJ-4"), ("a\t", "SUBJ-4"), ("\r", "SUBJ-4")]
_BAD_TEXT += [("a\n", "SUBJ-4"), ("a\f", "SUBJ-4"), ("\0", "SUBJ-4"), (b"a", "SUBJ-4")]
_BAD_TEXT += [(None, "SUBJ-4"), ("\ud800", "SUBJ-4"), (".", "SUBJ-1"), ("a..b", "SUBJ-1")]
REFUSED_PUBLISH = _BAD_TEXT + [("*", "SUBJ-2"), ("a.>", "SUBJ-2"), ("a.*.b", "SUBJ-2")]
REFUSED_SUBSCRIBE = _BAD_TEXT + [(">.a", "SUBJ-3"), ("a.>.b", "SUBJ-3"), ("a.", "SUBJ-1")]

MATCHES = [
    ("a", "a", True),
    ("a", "A", False),
    ("a", "a.b", False),
    ("a.b", "a", False),
    ("*", "a", True),
    ("*", "a.b", False),
    ("a.*.c", "a.b.c", True),
    (">", "a.b.c", True),
    ("a.>", "a", False),
    ("a.>", "a.b.c", True),
]

NAMES = [
    (lambda: subjects.check_queue("q"), b"q"),
    (lambda: subjects.check_queue(""), ("InvalidSubject", "SUBJ-5")),
    (lambda: subjects.check_new_name("stream", "S-1_a"), "S-1_a"),
    (lambda: subjects.check_new_name("stream", "é"), ("InvalidName", "SUBJ-7")),
    (lambda: subjects.check_known_name("stream", "é"), "é"),
    (lambda: subjects.check_known_name("stream", "a.b"), ("InvalidName", "SUBJ-8")),
    (lambda: subjects.check_known_name("stream", "a" * 256), ("InvalidName", "SUBJ-8")),
    (lambda: subjects.token(lambda below: below - 1, 3), "zzz"),
    (lambda: subjects.inbox(lambda below: 0), "_INBOX." + "0" * 22),
    (lambda: subjects.inbox(lambda below: 0, "a.*"), ("InvalidSubject", "SUBJ-2")),
]


def text():
    for raw in TEXT:
        check("%r there and back" % raw, encode_text(decode(raw)), raw)
        check(
            "%r in a subject" % raw, frame("server", b"MSG %s 1 0\r\n\r\n" % raw).raw_subject, raw
        )
    for bad in ("\ud800", "a\udbff", "\udc7f", "\udd00", "\ud83d\ude00"):
        check("%r" % bad, outcome(lambda bad=bad: encode_text(bad)), ("UnicodeError", ""))
    check("one bad byte", decode(b"a\xc3\xa9\xff"), "a\udcc3\udca9\udcff")


TEXT = [b"a", b"\xc3\xa9", b"\xed\x95\x9c", b"\xf0\x9f\x98\x80", b"\xff", b"\x80", b"a\xc3"]
TEXT += [b"\xed\xb2\x80", b"\xed\x95\x9c\xff", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xed", b"\x7f"]


def garbage():
    for peer, stream, reason, offset, excerpt, frames in GARBAGE:
        parser = Parser(peer=peer, max_payload=1000)
        want = ("ProtocolError", reason, offset, excerpt)
        got = outcome(lambda parser=parser, stream=stream: parser.feed(stream))
        check("%r" % stream, got, want + (frames,))
        got = outcome(lambda parser=parser: parser.feed(b"PING\r\n"))
        check("%r, again" % stream, got, want + (0,))
        check("%r, by bytes" % stream, by_bytes(peer, stream), want + (0,))
    for stream, want in TOLERATED:
        check("%r" % stream, Parser(max_payload=1000).feed(stream), want)
    check("a peer", outcome(lambda: Parser(peer="cat")), ("InvalidValue", ""))
    check("a line that never ends", endless(), ("ProtocolError", 65537))


def by_bytes(peer, stream):
    parser = Parser(peer=peer, max_payload=1000)
    for i in range(len(stream)):
        got = outcome(lambda i=i: parser.feed(stream[i : i + 1]))
        if isinstance(got, tuple):
            return got
    return None


def endless():
    """Check that the parser fails one byte after the limit, not at the next line end."""
    parser = Parser()
    fed = 0
    while fed < 100000:
        size = 1 if fed == 65536 else 4096
        fed += size
        got = outcome(lambda size=size: parser.feed(b"M" * size))
        if isinstance(got, tuple):
            return got[0], fed
    return None


GARBAGE = [  # peer, stream, reason, offset, excerpt, frames before it in the same read
    ("server", b"FOO\r\n", "unknown operation", 0, b"FOO\r", 0),
    ("server", b"PING\r\nFOO bar\r\n", "unknown operation", 6, b"FOO bar\r", 1),
    ("server", b"PUB a 0\r\n\r\n", "unknown operation", 0, b"PUB a 0\r", 0),
    ("client", b"MSG a 1 0\r\n\r\n", "unknown operation", 0, b"MSG a 1 0\r", 0),
    ("server", b"\r\n", "unknown operation", 0, b"\r", 0),
    ("server", b"MSG a 1\r\n", "2 fields, not 3 or 4", 0, b"MSG a 1\r", 0),
    ("server", b"MSG a x 0\r\n", "b'x' is not a number", 0, b"MSG a x 0\r", 0),
    ("server", b"MSG a 1 +1\r\n", "b'+1' is not a number", 0, b"MSG a 1 +1\r", 0),
    ("server", b"MSG a 1 1_0\r\n", "b'1_0' is not a number", 0, b"MSG a 1 1_0\r", 0),
    (
        "server",
        b"MSG a 1 1234567890123456789\r\n",
        "b'1234567890123456789' is not a number",
        0,
        b"MSG a 1 1234567890123456789\r",
        0,
    ),
    (
        "server",
        b"MSG a 1 1001\r\n",
        "size 1001 is above max_payload 1000",
        0,
        b"MSG a 1 1001\r",
        0,
    ),
    (
        "server",
        b"HMSG a 1 5 4\r\n",
        "header size 5 is above the total size 4",
        0,
        b"HMSG a 1 5 4\r",
        0,
    ),
    ("server", b"MSG a 1 1\r\nxyz", "no CRLF after a payload of 1 bytes", 12, b"yz", 0),
    ("server", b"INFO {\r\n", "bad JSON", 0, b"INFO {\r", 0),
    ("server", b"INFO [1]\r\n", "JSON is not an object", 0, b"INFO [1]\r", 0),
    ("server", b'INFO {"a":"\xff"}\r\n', "bad JSON", 0, b'INFO {"a":"\xff"}\r', 0),
    ("client", b"UNSUB\r\n", "UNSUB with 0 fields", 0, b"UNSUB\r", 0),
    ("client", b"SUB a\r\n", "1 fields, not 2 or 3", 0, b"SUB a\r", 0),
]

TOLERATED = [
    (b"ping\r\nPING\nPiNg \t\r\n", [Ping(), Ping(), Ping()]),
    (b"msg\ta  1 \t1\r\nx\r\n", [Msg(b"a", 1, b"", b"x")]),
    (b"MSG a 1 b 1 \r\nx\r\n", [Msg(b"a", 1, b"b", b"x")]),
    (b"MSG \xff\0 1 2\r\n\r\n\r\n", [Msg(b"\xff\0", 1, b"", b"\r\n")]),
    (b"HMSG a 1 2 2\r\nhi\r\n", [Msg(b"a", 1, b"", b"", b"hi")]),
    (b"MSG a 1 1\r\nx\r\nMSG a 1 1\r\ny", [Msg(b"a", 1, b"", b"x")]),
]


def records():
    """Check the language features that Record and the lazy attributes need."""
    check("equal", Ping() == Ping(), True)
    check("of another class", Ping() == Sub("a", 1), False)
    check("of other fields", Sub("a", 1) == Sub("a", 2), False)
    check("not a record", Ping() == 1, False)
    check("repr", repr(Sub("a", 1, "q")), "Sub(queue='q', sid=1, subject='a')")
    check("repr of a message", repr(frame("server", b"MSG a 1 1\r\nx\r\n")), MSG_REPR)
    check("repr of CONNECT", repr(frame("client", b'CONNECT {"pass":"x"}\r\n')), "Connect(pass)")
    try:
        hash(Ping())
        check("hash", "no error", "TypeError")
    except TypeError:
        check("hash", "TypeError", "TypeError")


MSG_REPR = "Msg(subject=b'a', sid=1, reply=b'', data=b'x', headers=None)"
