from __future__ import annotations

import json

import pytest

from natsproto import (
    Connect,
    Headers,
    LocalError,
    Ping,
    Pong,
    Pub,
    Sub,
    Unsub,
    encode,
)
from tests.wire.support import read_all

BLOCK = b"NATS/1.0\r\nA: b\r\n\r\n"  # 18 bytes
MAX = 999_999_999_999_999_999

TABLE = [
    (encode.ping(), b"PING\r\n", Ping()),
    (encode.pong(), b"PONG\r\n", Pong()),
    (encode.sub("a.>", 1), b"SUB a.> 1\r\n", Sub("a.>", 1)),
    (encode.sub("a.*", 0), b"SUB a.* 0\r\n", Sub("a.*", 0)),
    (encode.sub("é", 1), b"SUB \xc3\xa9 1\r\n", Sub("é", 1)),
    (encode.sub("a", 22, queue="q"), b"SUB a q 22\r\n", Sub("a", 22, "q")),
    (encode.sub("a", MAX), b"SUB a 999999999999999999\r\n", Sub("a", MAX)),
    (encode.pub("a"), b"PUB a 0\r\n\r\n", Pub(b"a")),
    (encode.pub("a", b"hello"), b"PUB a 5\r\nhello\r\n", Pub(b"a", b"", b"hello")),
    (encode.pub("a", b"hi", reply="r"), b"PUB a r 2\r\nhi\r\n", Pub(b"a", b"r", b"hi")),
    (encode.pub("a.\udcff"), b"PUB a.\xff 0\r\n\r\n", Pub(b"a.\xff")),
    (
        encode.pub("a", b"\r\nPING\r\n"),
        b"PUB a 8\r\n\r\nPING\r\n\r\n",
        Pub(b"a", b"", b"\r\nPING\r\n"),
    ),
    (encode.pub("a", bytearray(b"x")), b"PUB a 1\r\nx\r\n", Pub(b"a", b"", b"x")),
    (encode.pub("a", memoryview(b"xyz")[::2]), b"PUB a 2\r\nxz\r\n", Pub(b"a", b"", b"xz")),
    (
        encode.pub("a", b"pay", headers={"A": "b"}),
        b"HPUB a 18 21\r\n" + BLOCK + b"pay\r\n",
        Pub(b"a", b"", b"pay", BLOCK),
    ),
    (
        encode.pub("a", reply="r", headers=Headers({"A": "b"})),
        b"HPUB a r 18 18\r\n" + BLOCK + b"\r\n",
        Pub(b"a", b"r", b"", BLOCK),
    ),
    (
        encode.pub("a", b"p", headers=[]),
        b"HPUB a 12 13\r\nNATS/1.0\r\n\r\np\r\n",
        Pub(b"a", b"", b"p", b"NATS/1.0\r\n\r\n"),
    ),
    (encode.unsub(1), b"UNSUB 1\r\n", Unsub(1)),
    (encode.unsub(0), b"UNSUB 0\r\n", Unsub(0)),
    (encode.unsub(1, after=0), b"UNSUB 1\r\n", Unsub(1)),
    (encode.unsub(1, after=1), b"UNSUB 1 1\r\n", Unsub(1, 1)),
    (encode.unsub(MAX, after=MAX), b"UNSUB %d %d\r\n" % (MAX, MAX), Unsub(MAX, MAX)),
    (
        encode.connect({"verbose": False, "name": "é\r\n", "protocol": 1}),
        b'CONNECT {"verbose":false,"name":"\\u00e9\\r\\n","protocol":1}\r\n',
        Connect({"verbose": False, "name": "é\r\n", "protocol": 1}),
    ),
]


@pytest.mark.rule("ENC-1", "ENC-2", "ENC-3", "ENC-4", "WIRE-18")
@pytest.mark.parametrize(("encoded", "wire", "frame"), TABLE)
def test_encoded_values_are_parsed_back(encoded, wire, frame):
    assert encoded == wire
    assert read_all(encoded, peer="client") == [frame]


@pytest.mark.rule("ENC-2")
def test_connect_is_json_without_a_space():
    fields = {"a": [1, 2], "b": {"c": "d"}, "e": None}
    line = encode.connect(fields)
    assert line == b'CONNECT {"a":[1,2],"b":{"c":"d"},"e":null}\r\n'
    assert json.loads(line[8:]) == fields


@pytest.mark.rule("ENC-3")
def test_cached_fields_produce_the_same_bytes():
    slow = encode.pub("a", b"p", reply="r", headers={"A": "b"})
    assert encode.pub_checked(b"a", b"p", b"r", encode.header_block({"A": "b"})) == slow
    assert encode.pub_checked(b"a", b"p", b"", None) == encode.pub("a", b"p")


@pytest.mark.rule("ENC-5", "D-ENC-6", "D-ENC-7")
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: encode.pub(""), "subject is empty (SUBJ-4)"),
        (lambda: encode.pub("a b"), "subject 'a b' contains a space (SUBJ-4)"),
        (lambda: encode.pub("a", reply="b\r\n"), r"reply 'b\r\n' contains a CR (SUBJ-4)"),
        (lambda: encode.pub("a", reply="b.*"), "reply 'b.*' has a wildcard (SUBJ-2)"),
        (lambda: encode.pub("a", "text"), "payload 'text' is str, not bytes (D-ENC-6)"),
        (lambda: encode.pub("a", None), "payload None is NoneType, not bytes (D-ENC-6)"),
        (lambda: encode.pub("a", 3), "payload 3 is int, not bytes (D-ENC-6)"),
        (lambda: encode.pub("a", [1]), "payload [1] is list, not bytes (D-ENC-6)"),
        (lambda: encode.pub("a", (1, 2)), "payload (1, 2) is tuple, not bytes (D-ENC-6)"),
        (
            lambda: encode.pub("a", headers={"A": "b\n"}),
            r"value 'b\n' of header 'A' contains '\n' (HDR-10)",
        ),
        (lambda: encode.sub("a b", 1), "subject 'a b' contains a space (SUBJ-4)"),
        (lambda: encode.sub("a", 1, queue="q q"), "queue 'q q' contains a space (SUBJ-5)"),
        (lambda: encode.sub("a", -1), f"sid -1 is not a whole number from 0 to {MAX} (D-ENC-7)"),
        (
            lambda: encode.sub("a", True),
            f"sid True is not a whole number from 0 to {MAX} (D-ENC-7)",
        ),
        (lambda: encode.sub("a", "1"), f"sid '1' is not a whole number from 0 to {MAX} (D-ENC-7)"),
        (lambda: encode.unsub(1.0), f"sid 1.0 is not a whole number from 0 to {MAX} (D-ENC-7)"),
        (lambda: encode.unsub(-1), f"sid -1 is not a whole number from 0 to {MAX} (D-ENC-7)"),
        (
            lambda: encode.unsub(MAX + 1),
            f"sid {MAX + 1} is not a whole number from 0 to {MAX} (D-ENC-7)",
        ),
        (
            lambda: encode.unsub(1, after=-1),
            f"after -1 is not a whole number from 1 to {MAX} (D-ENC-7)",
        ),
        (
            lambda: encode.unsub(1, after="1"),
            f"after '1' is not a whole number from 1 to {MAX} (D-ENC-7)",
        ),
    ],
)
def test_values_that_cannot_be_sent_are_rejected(call, problem):
    with pytest.raises(LocalError) as error:
        call()
    assert str(error.value) == problem


@pytest.mark.rule("D-ENC-6")
def test_the_payload_is_a_copy_unless_it_cannot_change():
    data = bytearray(b"abc")
    checked = encode.check_data(data)
    data[0] = 0
    assert checked == b"abc"
    assert encode.check_data(checked) is checked
