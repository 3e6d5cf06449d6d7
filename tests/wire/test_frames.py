from __future__ import annotations

import pytest

from natsproto import Connect, Err, HeaderError, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub

BLOCK = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\n\r\n"


@pytest.mark.parametrize("kind", ["msg", "pub"])
def test_a_message_is_decoded_on_access(kind):
    fields = (b"r.x", b"data", BLOCK)
    message = Msg(b"t.\xc3\xa9", 7, *fields) if kind == "msg" else Pub(b"t.\xc3\xa9", *fields)
    assert (message.subject, message.raw_subject) == ("t.é", b"t.\xc3\xa9")
    assert (message.reply, message.raw_reply) == ("r.x", b"r.x")
    assert message.data == b"data"
    assert message.headers is not None
    assert message.headers["Nats-Pending-Messages"] == "3"
    assert (message.status, message.description) == (408, "Request Timeout")


@pytest.mark.parametrize("message", [Msg(b"a", 1), Pub(b"a")])
def test_a_message_without_reply_headers_and_payload(message):
    assert message.reply == ""
    assert message.data == b""
    assert message.headers is None
    assert (message.status, message.description) == (0, "")


def test_headers_are_decoded_once():
    message = Msg(b"a", 1, b"", b"", BLOCK)
    assert message.headers is message.headers


@pytest.mark.rule("WIRE-15", "HDR-7")
def test_an_odd_message_stays_readable():
    message = Msg(b"t.\xff", 1, b"r.\xfe", b"p", b"HELLO\r\nA: b\r\n\r\n")
    assert message.subject == "t.\udcff"
    assert message.reply == "r.\udcfe"
    assert (message.data, message.status) == (b"p", 0)
    for _ in range(2):  # not only the first time
        with pytest.raises(HeaderError, match=r"does not start with NATS/1\.0"):
            message.headers  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (
            Msg(b"a", 1, b"r", b"d", b"h"),
            "Msg(subject=b'a', sid=1, reply=b'r', data=b'd', headers=b'h')",
        ),
        (Pub(b"a", b"r", b"d"), "Pub(subject=b'a', reply=b'r', data=b'd', headers=None)"),
        (Info({"port": 1}), "Info(fields={'port': 1})"),
        (Err("Stale Connection"), "Err(text='Stale Connection')"),
        (Sub("a.>", 3, "q"), "Sub(queue='q', sid=3, subject='a.>')"),
        (Unsub(3, 5), "Unsub(after=5, sid=3)"),
        (Ping(), "Ping()"),
        (Pong(), "Pong()"),
        (Ok(), "Ok()"),
    ],
)
def test_repr_shows_every_field(frame, text):
    assert repr(frame) == text


def test_the_repr_of_connect_keeps_secrets():
    connect = Connect({"user": "me", "pass": "s3cr3t", "auth_token": "t0k3n"})
    assert repr(connect) == "Connect(auth_token, pass, user)"
    assert connect.fields["pass"] == "s3cr3t"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Msg(b"a", 1), Msg(b"a", 2)),
        (Msg(b"a", 1), Msg(b"a", 1, b"r")),
        (Msg(b"a", 1, b"", b"x"), Msg(b"a", 1, b"", b"", b"x")),
        (Pub(b"a"), Pub(b"b")),
        (Pub(b"a"), Msg(b"a", 0)),
        (Info({}), Info({"port": 1})),
        (Err("a"), Err("b")),
        (Sub("a", 1), Sub("a", 1, "q")),
        (Unsub(1), Unsub(1, 1)),
        (Connect({}), Connect({"a": 1})),
        (Ping(), Pong()),
    ],
)
def test_frames_that_differ_are_not_equal(one, two):
    assert one != two
    assert one == one
    assert two == two


def test_the_size_on_the_wire_is_not_part_of_a_message():
    assert Msg(b"a", 1).size == 0
    assert Msg(b"a", 1, size=20).size == 20
    assert Msg(b"a", 1, size=20) == Msg(b"a", 1)


def test_headers_that_were_read_do_not_change_equality():
    read, unread = (Msg(b"a", 1, b"", b"", BLOCK) for _ in range(2))
    assert read.headers
    assert read == unread


FULL = {
    "server_id": "N1", "server_name": "n1", "version": "2.15.1", "host": "h", "cluster": "c",
    "domain": "d", "nonce": "n", "client_ip": "::1", "port": 4222, "proto": 1, "client_id": 9,
    "max_payload": 1024, "api_lvl": 5, "headers": True, "jetstream": True, "auth_required": True,
    "tls_required": True, "tls_available": True, "tls_verify": True, "connect_info": True,
    "ldm": True, "connect_urls": ["a:1", "b:2"], "ws_connect_urls": ["c:3"],
}  # fmt: skip
DEFAULT = {str: "", int: 0, bool: False, list: []}


@pytest.mark.rule("WIRE-10")
@pytest.mark.parametrize(("name", "value"), FULL.items())
def test_info_returns_each_field_or_its_default(name, value):
    default = DEFAULT[type(value)]
    assert getattr(Info(FULL), name) == value
    assert getattr(Info({}), name) == default
    for stranger in (None, 1.5, {}, [1], "x", 7, True, [], ["x"]):
        if type(stranger) is not type(value):
            assert getattr(Info({name: stranger}), name) == default, stranger


@pytest.mark.rule("WIRE-10")
@pytest.mark.parametrize("name", ["connect_urls", "ws_connect_urls"])
def test_urls_that_are_not_text_are_ignored(name):
    assert getattr(Info({name: ["a:1", 5, None, ["b:2"], "c:3"]}), name) == ["a:1", "c:3"]


@pytest.mark.rule("WIRE-10")
def test_info_keeps_unknown_fields():
    assert Info({"xkey": "X1", "port": "no number"}).fields == {"xkey": "X1", "port": "no number"}


def test_every_field_of_info_is_in_the_table():
    assert set(Info.__slots__) == {*FULL, "fields"}


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize("name", ["respond", "header", "ack", "metadata"])
def test_names_of_other_clients(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; "):
        getattr(Msg(b"a", 1), name)
