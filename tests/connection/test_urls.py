from __future__ import annotations

import copy
import pickle

import pytest

from natsproto.errors import InvalidValue
from natsproto.urls import ServerUrl, hide_credentials

FORMS = [  # text, scheme, host, port, path, str
    ("host", "nats", "host", 4222, "", "nats://host:4222"),
    ("host:5222", "nats", "host", 5222, "", "nats://host:5222"),
    ("nats://host", "nats", "host", 4222, "", "nats://host:4222"),
    ("NATS://Host.Example", "nats", "host.example", 4222, "", "nats://host.example:4222"),
    ("nats://host:1", "nats", "host", 1, "", "nats://host:1"),
    ("nats://host:65535/", "nats", "host", 65535, "", "nats://host:65535"),
    ("tls://host", "tls", "host", 4222, "", "tls://host:4222"),
    ("ws://host", "ws", "host", 80, "", "ws://host:80"),
    ("ws://host/", "ws", "host", 80, "", "ws://host:80"),
    ("wss://host", "wss", "host", 443, "", "wss://host:443"),
    ("wss://host:8443/a/b", "wss", "host", 8443, "/a/b", "wss://host:8443/a/b"),
    ("127.0.0.1", "nats", "127.0.0.1", 4222, "", "nats://127.0.0.1:4222"),
    ("[::1]", "nats", "::1", 4222, "", "nats://[::1]:4222"),
    ("[::1]:5222", "nats", "::1", 5222, "", "nats://[::1]:5222"),
    ("tls://[2001:DB8::1]:5222", "tls", "2001:DB8::1", 5222, "", "tls://[2001:DB8::1]:5222"),
    ("[fe80::1%eth0]:1", "nats", "fe80::1%eth0", 1, "", "nats://[fe80::1%eth0]:1"),
    ("my_service-1", "nats", "my_service-1", 4222, "", "nats://my_service-1:4222"),
    ("bücher.example", "nats", "bücher.example", 4222, "", "nats://bücher.example:4222"),
]


@pytest.mark.rule("OPT-1", "OPT-3", "OPT-4")
@pytest.mark.parametrize(("text", "scheme", "host", "port", "path", "shown"), FORMS)
def test_forms(text, scheme, host, port, path, shown):
    url = ServerUrl.parse(text)
    assert (url.scheme, url.host, url.port, url.path) == (scheme, host, port, path)
    assert (url.user, url.password, url.token) == ("", "", "")
    assert str(url) == shown
    assert repr(url) == f"ServerUrl({shown!r})"
    assert shown == f"{scheme}://{url.address}{path}"


@pytest.mark.parametrize(
    ("scheme", "wants_tls", "is_websocket"),
    [("nats", False, False), ("tls", True, False), ("ws", False, True), ("wss", True, True)],
)
def test_kinds(scheme, wants_tls, is_websocket):
    url = ServerUrl.parse(scheme + "://host")
    assert (url.wants_tls, url.is_websocket) == (wants_tls, is_websocket)


CREDENTIALS = [  # text, user, password, token
    ("nats://user:pass@host", "user", "pass", ""),
    ("user:pass@host", "user", "pass", ""),
    ("wss://user:pass@host/path", "user", "pass", ""),
    ("nats://user:@host", "user", "", ""),
    ("nats://s3cret@host", "", "", "s3cret"),
    ("nats://a%40b:p%2Fs%3as@[::1]", "a@b", "p/s:s", ""),
    ("nats://a@b:p@ss@host", "a@b", "p@ss", ""),
    ("nats://user:p:a:s@host", "user", "p:a:s", ""),
    ("nats://%C3%BC:%e2%82%ac@host", "ü", "€", ""),
    ("nats://ü:€@host", "ü", "€", ""),
    ("nats://%25@host", "", "", "%"),
    ("nats://user:pa+ss@host", "user", "pa+ss", ""),
]


@pytest.mark.rule("OPT-2")
@pytest.mark.parametrize(("text", "user", "password", "token"), CREDENTIALS)
def test_credentials(text, user, password, token):
    url = ServerUrl.parse(text)
    assert (url.user, url.password, url.token) == (user, password, token)


BAD = [  # text, what the error shows of it, why, rule
    ("http://host", "http://host", "has a scheme that is not one of nats, tls, ws, wss", "OPT-1"),
    ("://host", "://host", "has a scheme that is not one of", "OPT-1"),
    ("http://u:XYZ@host", "***@host", "has a scheme that is not one of", "OPT-1"),
    ("u:XYZ://p@host", "***@host", "has a scheme that is not one of", "OPT-1"),
    ("nats://u:X/YZ@host", "nats://***@host", "has '/' before '@'", "OPT-2"),
    ("nats://u:X?YZ@host", "nats://***@host", "has '?' before '@'", "OPT-2"),
    ("TLS://u:X#YZ@host", "TLS://***@host", "has '#' before '@'", "OPT-2"),
    ("ws://host/a@b", "ws://***@b", "has '/' before '@'", "OPT-2"),
    ("nats://@host", "nats://***@host", "has no user or token before '@'", "OPT-2"),
    ("nats://:XYZ@host", "nats://***@host", "has no user or token before '@'", "OPT-2"),
    ("u:XYZ%@host", "***@host", "has a '%' without two hex digits", "OPT-2"),
    ("u:XYZ%2@host", "***@host", "has a '%' without two hex digits", "OPT-2"),
    ("u:XYZ%2g@host", "***@host", "has a '%' without two hex digits", "OPT-2"),
    ("u:XYZ%+1@host", "***@host", "has a '%' without two hex digits", "OPT-2"),
    ("XYZ%ff@host", "***@host", "has credentials that are not UTF-8", "OPT-2"),
    ("", "", "has no host", "OPT-3"),
    ("nats://", "nats://", "has no host", "OPT-3"),
    ("nats://:4222", "nats://:4222", "has no host", "OPT-3"),
    ("nats://XYZ@", "nats://***@", "has no host", "OPT-3"),
    ("ho st", "ho st", "contains ' '", "OPT-3"),
    ("host\r\n", r"host\r\n", r"contains '\r'", "OPT-3"),
    ("u:X\0YZ@host", "***@host", r"contains '\x00'", "OPT-3"),
    ("host\x7f", r"host\x7f", r"contains '\x7f'", "OPT-3"),
    ("ho\u2003st", r"ho\u2003st", r"contains '\u2003'", "OPT-3"),
    ("ho\udc80st", r"ho\udc80st", r"contains '\udc80'", "OPT-3"),
    ("a,b", "a,b", "has ',' in its host", "OPT-3"),
    ("nats://u:XYZ@a%20b", "nats://***@a%20b", "has '%' in its host", "OPT-3"),
    ("a]:1", "a]:1", "has ']' in its host", "OPT-3"),
    ("host:", "host:", "has a port that is not a number from 1 to 65535", "OPT-3"),
    ("host:0", "host:0", "has a port that is no", "OPT-3"),
    ("host:65536", "host:65536", "has a port that is no", "OPT-3"),
    ("host:000080", "host:000080", "has a port that is no", "OPT-3"),
    ("host:abc", "host:abc", "has a port that is no", "OPT-3"),
    ("host:-1", "host:-1", "has a port that is no", "OPT-3"),
    ("host:1_0", "host:1_0", "has a port that is no", "OPT-3"),
    ("host:٣", "host:٣", "has a port that is no", "OPT-3"),
    ("[::1]:", "[::1]:", "has a port that is no", "OPT-3"),
    ("::1", "::1", "has an IPv6 address without brackets", "OPT-3"),
    ("[::1", "[::1", "has no IPv6 address between brackets", "OPT-3"),
    ("[]", "[]", "has no IPv6 address between brackets", "OPT-3"),
    ("[host]", "[host]", "has no IPv6 address between brackets", "OPT-3"),
    ("[::g]", "[::g]", "has no IPv6 address between brackets", "OPT-3"),
    ("[fe80::1%]", "[fe80::1%]", "has no IPv6 address between brackets", "OPT-3"),
    ("[::1]4222", "[::1]4222", "has something other than a port after ']'", "OPT-3"),
    ("nats://host/path", "nats://host/path", "has a path, which only ws and wss may have", "OPT-4"),
    ("tls://host/path", "tls://host/path", "has a path, which only ws and wss may have", "OPT-4"),
    ("host?token=XYZ", "host?***", "has a query or a fragment", "OPT-4"),
    ("ws://u:XYZ@host/a?b=XYZ", "ws://***@host/a?***", "has a query or a fragment", "OPT-4"),
    ("host#XYZ", "host#***", "has a query or a fragment", "OPT-4"),
]


@pytest.mark.rule("OPT-1", "OPT-2", "OPT-3", "OPT-4", "D-OPT-5")
@pytest.mark.parametrize(("text", "shown", "why", "rule"), BAD)
def test_invalid_urls_are_rejected_without_revealing_secrets(text, shown, why, rule):
    with pytest.raises(InvalidValue) as caught:
        ServerUrl.parse(text)
    message = str(caught.value)
    assert message.startswith(f"server '{shown}' {why}")
    assert message.endswith(f"({rule})")
    assert "XYZ" not in message


@pytest.mark.rule("OPT-1", "D-OPT-5")
@pytest.mark.parametrize(("value", "name"), [(b"u:XYZ@host", "bytes"), (None, "NoneType")])
def test_a_url_is_text(value, name):
    with pytest.raises(InvalidValue, match=rf"^server is {name}, not a str \(OPT-1\)$"):
        ServerUrl.parse(value)


@pytest.mark.rule("D-OPT-5")
@pytest.mark.parametrize("text", ["nats://us3r:s3cret@host", "nats://s3cret@host"])
def test_credentials_do_not_show(text):
    url = ServerUrl.parse(text)
    assert str(url) == f"{url}" == "nats://host:4222"
    assert repr([url]) == "[ServerUrl('nats://host:4222')]"
    assert url == ServerUrl.parse("nats://other:words@host:4222")
    with pytest.raises(TypeError):
        vars(url)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="Secret cannot be pickled"):
            pickle.dumps(url, protocol)
    held = [repr(getattr(url, name)) for name in ServerUrl.__slots__]
    assert not [word for word in held if "us3r" in word or "s3cret" in word]


def test_equality_is_by_place():
    url = ServerUrl.parse("ws://host:80/path")
    assert url == ServerUrl.parse("WS://HOST/path")
    for other in ["wss://host:80/path", "ws://host2/path", "ws://host:81/path", "ws://host"]:
        assert url != ServerUrl.parse(other)


def test_without_credentials_it_can_be_copied_and_pickled():
    url = ServerUrl.parse("wss://host/path")
    assert copy.deepcopy(url) == pickle.loads(pickle.dumps(url)) == url


@pytest.mark.rule("D-LOG-2")
@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("nats://host:4222", "nats://host:4222"),
        ("a@b", "a@b"),
        ("nats://u:p@host", "nats://***@host"),
        ("nats://token@host", "nats://***@host"),
        ("could not reach nats://u:p@a: reset", "could not reach nats://***@a: reset"),
        ("nats://u:p@w@host and tls://x:y@b", "nats://***@host and tls://***@b"),
        ("nats://u:p@a,nats://v:q@b", "nats://***@b"),
        ("nats://@host", "nats://***@host"),
    ],
)
def test_credentials_in_a_text_are_hidden(text, hidden):
    assert hide_credentials(text) == hidden
