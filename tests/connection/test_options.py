from __future__ import annotations

import ast
import inspect
import pickle
import re

import pytest

from natsproto import options as module
from natsproto.errors import InvalidSubject, InvalidValue
from natsproto.options import DEFAULT_SERVER, Options, ServerUrl, read_servers
from natsproto.wire.text import shorten

SECRET = "s3cr3t"
MIB = 1024 * 1024


class Context:
    """A stand-in for a TLS context, which only the adapter inspects."""

    def __repr__(self):
        return SECRET

    def __eq__(self, other):
        raise AssertionError("the core looks into a context")

    __hash__ = None


DEFAULTS = {
    "servers": [ServerUrl("nats", "127.0.0.1", 4222)],
    "name": "",
    "tls": None,
    "tls_first": False,
    "tls_hostname": "",
    "inbox_prefix": "_INBOX",
    "no_echo": False,
    "verbose": False,
    "pedantic": False,
    "ping_interval": 120.0,
    "max_pings_out": 2,
    "connect_timeout": 5.0,
    "max_reconnects": 60,
    "reconnect_wait": 0.25,
    "reconnect_wait_max": 10.0,
    "reconnect_jitter": 0.5,
    "shuffle": True,
    "ignore_discovered": False,
    "retry_on_first_connect": False,
    "max_pending_out": 8 * MIB,
    "max_msgs": 65536,
    "max_bytes": 64 * MIB,
    "reconnect_delays": [],
    "ws_compression": False,
    "choose_server": None,
    "ws_headers": [],
    "host_websocket": False,
    "host_signing": False,
}


@pytest.mark.rule("OPT-11")
def test_defaults():
    options = Options()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS
    assert set(DEFAULTS) | {"_auth"} == set(Options.__slots__)
    assert not options.secure
    assert not options.has_auth
    assert options.auth.connect_fields("", options.servers[0]) == {}
    assert options.auth is options.auth


GOOD = [  # option, value, result
    ("name", "worker é", "worker é"),
    ("tls_hostname", "nats.example", "nats.example"),
    ("inbox_prefix", "_INBOX.me", "_INBOX.me"),
    ("no_echo", True, True),
    ("verbose", True, True),
    ("pedantic", True, True),
    ("shuffle", False, False),
    ("ignore_discovered", True, True),
    ("retry_on_first_connect", True, True),
    ("ping_interval", 1, 1.0),
    ("ping_interval", 0.001, 0.001),
    ("connect_timeout", 1e9, 1e9),
    ("max_pings_out", 1, 1),
    ("max_reconnects", -1, -1),
    ("max_reconnects", 0, 0),
    ("reconnect_wait", 0, 0.0),
    ("reconnect_wait", 10, 10.0),
    ("reconnect_jitter", 0, 0.0),
    ("reconnect_jitter", 1, 1.0),
    ("max_pending_out", 0, 0),
    ("max_msgs", 1, 1),
    ("max_bytes", 1, 1),
]


@pytest.mark.parametrize(("name", "value", "expected"), GOOD)
def test_values_in_range(name, value, expected):
    got = getattr(Options(**{name: value}), name)
    assert got == expected
    assert type(got) is type(expected)


NO_NUMBER = [True, "1", None, float("nan"), float("inf"), -float("inf"), 10**400, -0.5]
NO_WHOLE = [True, "1", None, 1.0, float("nan")]
BAD = [
    *[
        (name, value, f"is not a number from {least} to {most}", "D-OPT-9")
        for name, least, most in [
            ("ping_interval", 0.001, 1e9),
            ("connect_timeout", 0.001, 1e9),
            ("reconnect_wait_max", 0.0, 1e9),
            ("reconnect_jitter", 0.0, 1.0),
        ]
        for value in NO_NUMBER
    ],
    ("ping_interval", 0, "is not a number from 0.001", "D-OPT-9"),
    ("connect_timeout", 0.0, "is not a number from 0.001", "D-OPT-9"),
    ("reconnect_jitter", 1.1, "is not a number from 0.0 to 1.0", "D-OPT-9"),
    ("reconnect_wait", -1, "is not a number from 0.0 to 10.0 (reconnect_wait_max)", "D-OPT-12"),
    ("reconnect_wait", 11, "is not a number from 0.0 to 10.0 (reconnect_wait_max)", "D-OPT-12"),
    ("reconnect_wait", "1", "is not a number from 0.0 to 10.0 (reconnect_wait_max)", "D-OPT-12"),
    *[
        (name, value, f"is not a whole number from {least}", "D-OPT-9")
        for name, least in [
            ("max_pings_out", 1),
            ("max_reconnects", -1),
            ("max_pending_out", 0),
            ("max_msgs", 1),
            ("max_bytes", 1),
        ]
        for value in [*NO_WHOLE, least - 1]
    ],
    *[
        (name, value, "is neither True nor False", "OPT-10")
        for name in [
            "tls_first",
            "no_echo",
            "verbose",
            "pedantic",
            "shuffle",
            "ignore_discovered",
            "retry_on_first_connect",
        ]
        for value in [1, None, "yes"]
    ],
    *[
        (name, value, "is not a str", "OPT-10")
        for name in ["name", "tls_hostname"]
        for value in [None, b"x", 1]
    ],
]


@pytest.mark.rule("D-OPT-9", "OPT-10", "D-OPT-12")
@pytest.mark.parametrize(("name", "value", "why", "rule"), BAD)
def test_values_out_of_range_are_rejected_by_name(name, value, why, rule):
    with pytest.raises(InvalidValue) as caught:
        Options(**{name: value})
    assert str(caught.value).startswith(f"{name} {shorten(value)} {why}")
    assert caught.value.rule == rule


@pytest.mark.rule("D-OPT-12")
def test_the_longest_wait_may_be_the_first():
    options = Options(reconnect_wait=30, reconnect_wait_max=30)
    assert (options.reconnect_wait, options.reconnect_wait_max) == (30.0, 30.0)


@pytest.mark.rule("OPT-14")
@pytest.mark.parametrize("prefix", ["", "a b", "a.*", "a.", None])
def test_inbox_prefix(prefix):
    with pytest.raises(InvalidSubject, match=r"^inbox prefix "):
        Options(inbox_prefix=prefix)


@pytest.mark.rule("OPT-10")
def test_tls():
    context = Context()
    table = [  # tls, tls_first, the resulting tls
        (None, False, None),
        (False, False, None),
        (True, False, True),
        (context, False, context),
        (None, True, True),
        (True, True, True),
        (context, True, context),
    ]
    for tls, tls_first, expected in table:
        options = Options(tls=tls, tls_first=tls_first)
        assert options.tls is expected
        assert options.secure is (expected is not None)
        assert options.tls_first is tls_first


@pytest.mark.rule("OPT-10")
@pytest.mark.parametrize("tls", ["cert.pem", b"x", 1, 0, 1.0])
def test_tls_is_not_a_number_or_a_file_name(tls):
    name = type(tls).__name__
    with pytest.raises(InvalidValue, match=rf"^tls is not a bool or a context: {name} \(OPT"):
        Options(tls=tls)


OPT_18 = pytest.mark.rule("OPT-18")


@pytest.mark.rule("OPT-6")
@pytest.mark.parametrize(
    ("servers", "shown"),
    [
        ("host", ["nats://host:4222"]),
        (["host"], ["nats://host:4222"]),
        (("b", "tls://a:1", "c"), ["nats://b:4222", "tls://a:1", "nats://c:4222"]),
        (["ws://a", "wss://b/x"], ["ws://a:80", "wss://b:443/x"]),
        pytest.param("a,b:1", ["nats://a:4222", "nats://b:1"], marks=OPT_18),
        pytest.param("tls://a, tls://b", ["tls://a:4222", "tls://b:4222"], marks=OPT_18),
        pytest.param("nats://u:p@a,nats://u:p@b", ["nats://a:4222", "nats://b:4222"], marks=OPT_18),
        pytest.param("nats://u:p,w@a,b", ["nats://a:4222", "nats://b:4222"], marks=OPT_18),
        pytest.param("nats://a,u:p,w@b", ["nats://b:4222"], marks=OPT_18),
    ],
)
def test_servers(servers, shown):
    assert [str(url) for url in Options(servers=servers).servers] == shown


BAD_SERVERS = [  # servers, tls, message
    ([], None, "servers is empty: at least one is required (OPT-6)"),
    ((), None, "servers is empty: at least one is required (OPT-6)"),
    ("", None, "server '' has no host (OPT-3)"),
    pytest.param("a,,b", None, "server '' has no host (OPT-3)", marks=OPT_18),
    pytest.param("a,", None, "server '' has no host (OPT-3)", marks=OPT_18),
    (None, None, "servers is not a str or a list of str: NoneType (OPT-6)"),
    (b"u:s3cr3t@host", None, "servers is not a str or a list of str: bytes (OPT-6)"),
    ({"a": 1}, None, "servers is not a str or a list of str: dict (OPT-6)"),
    (["a", 1], None, "server is int, not a str (OPT-1)"),
    (
        ["ws://a", "s3cr3t@b"],
        None,
        "WebSocket and plain servers do not mix: ws://a:80 and nats://b:4222; ",
    ),
    (
        ["tls://a", "wss://b"],
        None,
        "WebSocket and plain servers do not mix: tls://a:4222 and wss://b:443; ",
    ),
    ("ws://s3cr3t@a", True, "server would have no TLS: ws://a:80; use wss (D-OPT-8)"),
    (["wss://a", "ws://b"], True, "server would have no TLS: ws://b:80; use wss (D-OPT-8)"),
]


@pytest.mark.rule("OPT-6", "OPT-7", "D-OPT-8")
@pytest.mark.parametrize(("servers", "tls", "message"), BAD_SERVERS)
def test_servers_that_are_rejected(servers, tls, message):
    with pytest.raises(InvalidValue, match="^" + re.escape(message)) as caught:
        Options(servers=servers, tls=tls)
    assert SECRET not in str(caught.value)


@pytest.mark.rule("OPT-18")
def test_a_comma_in_a_password_does_not_separate_servers():
    first, second = Options(servers="nats://u:p,w@a,nats://v:q@b").servers
    assert (first.password, second.password) == ("p,w", "q")


@pytest.mark.rule("D-OPT-8")
def test_tls_first_is_tls():
    with pytest.raises(InvalidValue, match="server would have no TLS"):
        Options(servers="ws://a", tls_first=True)
    assert read_servers("wss://a", True) == [ServerUrl("wss", "a", 443)]


CREDENTIALS = [
    ({"user": "u", "password": SECRET}, {"user": "u", "pass": SECRET}),
    ({"token": SECRET}, {"auth_token": SECRET}),
    ({"token": lambda: SECRET}, {"auth_token": SECRET}),
]


@pytest.mark.rule("D-OPT-13")
@pytest.mark.parametrize(("given", "fields"), CREDENTIALS)
def test_credentials_go_into_auth_and_do_not_show(given, fields):
    options = Options(servers=f"u:{SECRET}@host", tls=Context(), **given)
    assert options.auth.connect_fields("", ServerUrl("nats", "host", 4222)) == fields
    assert SECRET not in repr(options) + str(options)
    assert "servers=[ServerUrl('nats://host:4222')]" in repr(options)
    assert "tls=Context, tls_first=False" in repr(options)
    with pytest.raises(TypeError):
        vars(options)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(options, protocol)


@pytest.mark.rule("WS-10", "D-OPT-13")
@pytest.mark.parametrize("given", [{"Cookie": SECRET}, [("Cookie", SECRET)], (["Cookie", SECRET],)])
def test_headers_of_a_websocket_do_not_show(given):
    options = Options(servers="ws://a", ws_headers=given)
    [(name, value)] = options.ws_headers
    assert (name, value.reveal()) == ("Cookie", SECRET)
    assert SECRET not in repr(options)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(options)


BAD_WS_HEADERS = [  # headers, the error
    ("Cookie: x", "ws_headers is not a dict or a list of pairs: str (WS-10)"),
    (["Cookie"], "ws_headers has an entry that is not a pair (WS-10)"),
    ({"A b": "x"}, "ws_headers has an invalid name: 'A b' (WS-10)"),
    ({"": "x"}, "ws_headers has an invalid name: '' (WS-10)"),
    ({1: "x"}, "ws_headers has an invalid name: 1 (WS-10)"),
    ({"Host": "x"}, "ws_headers must not set Host (WS-10)"),
    ({"Sec-WebSocket-Key": "x"}, "ws_headers must not set Sec-WebSocket-Key (WS-10)"),
    ({"A": SECRET + "\r\nB: x"}, "ws_headers has an invalid value for A (WS-10)"),
    ({"A": 1}, "ws_headers has an invalid value for A (WS-10)"),
]


@pytest.mark.rule("WS-10")
@pytest.mark.parametrize(("headers", "message"), BAD_WS_HEADERS)
def test_headers_of_a_websocket_that_are_rejected(headers, message):
    with pytest.raises(InvalidValue) as caught:
        Options(ws_headers=headers)
    assert str(caught.value) == message


@pytest.mark.rule("POOL-15")
def test_the_chooser_is_checked_and_not_shown():
    assert "choose_server=function" in repr(Options(choose_server=lambda known, info: None))
    with pytest.raises(InvalidValue, match=r"choose_server is not a function: 'a' \(POOL-16\)"):
        Options(choose_server="a")


def test_reconnect_delays_are_checked():
    assert Options(reconnect_delays=(0, 1.5)).reconnect_delays == [0.0, 1.5]
    with pytest.raises(InvalidValue, match=r"reconnect_delays is not a list: 1\.5"):
        Options(reconnect_delays=1.5)
    with pytest.raises(InvalidValue, match="reconnect_delays -1 is not a number from 0"):
        Options(reconnect_delays=[0, -1])


def test_repr_shows_plain_values():
    assert "tls=None" in repr(Options())
    assert "tls=True" in repr(Options(tls=True))
    assert "max_msgs=65536" in repr(Options())


@pytest.mark.parametrize("given", [{"user": "u", "token": "t"}, {"password": "p"}])
def test_credentials_that_contradict_each_other(given):
    with pytest.raises(InvalidValue):
        Options(**given)


@pytest.mark.rule("D-OPT-19")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servers": "a"}, "server is not a WebSocket: nats://a:4222; use ws or wss"),
        ({"servers": "tls://a"}, "server is not a WebSocket: tls://a:4222; use ws or wss"),
        ({"tls_hostname": "b"}, "tls_hostname is up to the host of the adapter"),
        ({"ws_headers": {"A": "b"}}, "ws_headers is up to the host of the adapter"),
        ({"ws_compression": True}, "ws_compression is up to the host of the adapter"),
        ({"tls": object()}, "tls is not a bool, and the host of the adapter has its own context: "),
    ],
)
def test_the_websocket_of_a_host_cannot_do_everything(options, message):
    with pytest.raises(InvalidValue) as caught:
        Options(host_websocket=True, **{"servers": "wss://a", **options})
    assert message in str(caught.value)
    assert "(D-OPT-19)" in str(caught.value)


@pytest.mark.rule("D-OPT-19")
@pytest.mark.parametrize("tls", [None, True])
def test_the_websocket_of_a_host(tls):
    assert Options(host_websocket=True, servers="wss://a", tls=tls).host_websocket


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="max_reconnect'"):
        Options(max_reconnect=1)
    with pytest.raises(TypeError, match="positional"):
        Options(DEFAULT_SERVER)


def test_the_typed_keywords_match_options():
    tree = ast.parse(inspect.getsource(module))
    [typed] = [node for node in ast.walk(tree) if getattr(node, "name", "") == "OptionsDict"]
    names = [node.target.id for node in typed.body if isinstance(node, ast.AnnAssign)]
    assert [names.pop(), names.pop()] == ["trace", "context"], "which adapters replace"
    types = {node.target.id: node.annotation for node in typed.body[1:]}
    init = inspect.signature(Options.__init__).parameters
    own = ["host_websocket", "host_signing"]  # for adapters, not for users
    assert names + own == list(init)[2:], "without self and servers"
    assert {name: ast.unparse(types[name]) for name in names} == {
        name: init[name].annotation for name in names
    }
