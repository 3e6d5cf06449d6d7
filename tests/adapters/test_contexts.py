"""Contexts of the NATS command line: where they are, what they contain, and what is rejected."""

from __future__ import annotations

import base64
import json

import pytest

from natsproto.adapters import blocking
from natsproto.adapters.contexts import context_names, read_context, selected_context
from natsproto.adapters.driver import make_connection
from natsproto.errors import InvalidValue
from natsproto.testing.certificates import Certificates
from natsproto.testing.server import Server

SEED = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"
CREDS = f"""-----BEGIN NATS USER JWT-----
a.b.c
------END NATS USER JWT------
-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""
# Every field, as the command line writes it when nothing is set.
TEXTS = """name description url color_scheme socks_proxy token user password creds nkey cert key ca
    nsc jetstream_domain jetstream_api_prefix jetstream_event_prefix inbox_prefix user_jwt
    user_seed windows_cert_store windows_cert_match_by windows_cert_match"""
EMPTY = dict.fromkeys(TEXTS.split(), "") | {"tls_first": False, "windows_ca_certs_match": None}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the directory of the contexts, empty; the home directory is two above it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CREDS_DIR", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    directory = tmp_path / ".config" / "nats"
    (directory / "context").mkdir(parents=True)
    return directory


def write(home, name="dev", **fields):
    (home / "context" / f"{name}.json").write_text(json.dumps(EMPTY | fields), encoding="utf-8")


@pytest.mark.rule("CTX-1")
def test_contexts_are_found_in_the_configuration_directory(home, tmp_path, monkeypatch):
    write(home, "b", url="nats://b")
    write(home, "a", url="nats://a")
    (home / "context" / "notes.txt").write_text("", encoding="utf-8")
    assert context_names() == ["a", "b"]
    assert read_context("a").servers == "nats://a"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    assert context_names() == []
    with pytest.raises(InvalidValue, match=r"context 'a' does not exist: .*other.*CTX-2"):
        read_context("a")


@pytest.mark.rule("CTX-2")
def test_the_selected_context_is_the_default(home):
    assert selected_context() == ""
    with pytest.raises(InvalidValue, match="no context is selected"):
        read_context()
    write(home, "prod", url="nats://p:1")
    (home / "context.txt").write_text("prod\n", encoding="utf-8")
    assert selected_context() == "prod"
    assert read_context().name == "prod"
    connection = make_connection("nats://127.0.0.1:4222", {"context": True})
    assert [str(url) for url in connection.options.servers] == ["nats://p:1"]


@pytest.mark.rule("CTX-2")
@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a\0b", 7, False])
def test_a_name_that_is_not_one(home, name):
    with pytest.raises(InvalidValue, match="CTX-2"):
        read_context(name)


def credentials(context):
    connection = make_connection("nats://127.0.0.1:4222", {"context": context})
    return connection.options.auth.connect_fields("", connection.options.servers[0])


@pytest.mark.rule("CTX-3")
def test_an_empty_context_changes_nothing(home):
    write(home)
    context = read_context("dev")
    assert (context.servers, context.options, context.jetstream) == ("", {}, {})
    assert credentials("dev") == {}


PLAIN = [  # fields, what CONNECT contains
    ({"user": "u", "password": "s3cr3t"}, {"user": "u", "pass": "s3cr3t"}),
    ({"token": "s3cr3t"}, {"auth_token": "s3cr3t"}),
    ({"url": "nats://u:s3cr3t@a"}, {"user": "u", "pass": "s3cr3t"}),
    ({"creds": "~/my.creds"}, {"jwt": "a.b.c"}),
    ({"creds": "$CREDS_DIR/my.creds"}, {"jwt": "a.b.c"}),
    ({"creds": "file://~/my.creds"}, {"jwt": "a.b.c"}),
    ({"creds": "env://MY_CREDS"}, {"jwt": "a.b.c"}),
    ({"creds": "data:;base64," + base64.b64encode(CREDS.encode()).decode()}, {"jwt": "a.b.c"}),
    ({"user_jwt": "a.b.c", "nkey": "~/my.nk"}, {"jwt": "a.b.c"}),
    ({"user_jwt": "a.b.c", "user_seed": SEED}, {"jwt": "a.b.c"}),
    ({"user_jwt": "a.b.c"}, {"jwt": "a.b.c"}),
]


@pytest.mark.rule("CTX-3")
@pytest.mark.parametrize(("fields", "expected"), PLAIN)
def test_credentials(home, tmp_path, monkeypatch, fields, expected):
    (tmp_path / "my.creds").write_text(CREDS, encoding="utf-8")
    (tmp_path / "my.nk").write_text(f"----\n{SEED}\n----\n", encoding="utf-8")
    monkeypatch.setenv("MY_CREDS", CREDS)
    write(home, **fields)
    assert credentials("dev") == expected
    assert "s3cr3t" not in repr(read_context("dev"))


@pytest.mark.rule("CTX-3")
def test_an_nkey_signs(home, tmp_path):
    pytest.importorskip("cryptography")
    (tmp_path / "my.nk").write_text(SEED, encoding="utf-8")
    write(home, nkey="~/my.nk")
    connection = make_connection("nats://127.0.0.1:4222", {"context": "dev"})
    fields = connection.options.auth.connect_fields("nonce", connection.options.servers[0])
    assert sorted(fields) == ["nkey", "sig"]


@pytest.mark.rule("CTX-3")
def test_the_other_settings(home):
    write(
        home,
        url="nats://a:1, nats://b:2",
        inbox_prefix="_MINE",
        tls_first=True,
        jetstream_domain="hub",
        jetstream_event_prefix="e",
        description="ours",
    )
    context = read_context("dev")
    assert context.jetstream == {"domain": "hub"}
    options = make_connection("nats://127.0.0.1:4222", {"context": "dev"}).options
    assert sorted(str(url) for url in options.servers) == ["nats://a:1", "nats://b:2"]
    assert (options.inbox_prefix, options.tls_first, options.tls) == ("_MINE", True, True)
    write(home, jetstream_api_prefix="J.API")
    assert read_context("dev").jetstream == {"prefix": "J.API"}


REJECTED = [  # fields, the error
    ({"nsc": "nsc://o/a/s3cr3t"}, "nsc' is not supported.*D-CTX-4"),
    ({"socks_proxy": "s3cr3t"}, "socks_proxy' is not supported.*D-CTX-4"),
    ({"windows_cert_store": "s3cr3t"}, "windows_cert_store' is not supported.*D-CTX-4"),
    ({"windows_cert_match_by": "s3cr3t"}, "windows_cert_match_by' is not supported.*D-CTX-4"),
    ({"windows_cert_match": "s3cr3t"}, "windows_cert_match' is not supported.*D-CTX-4"),
    ({"windows_ca_certs_match": ["s3cr3t"]}, "windows_ca_certs_match' is not.*D-CTX-4"),
    ({"new_field": "s3cr3t"}, "new_field' is not known.*D-CTX-4"),
    ({"creds": "op://vault/s3cr3t"}, "creds' has a scheme that is not supported: 'op'.*D-CTX-4"),
    ({"creds": "data:s3cr3t"}, "creds' is not base64 after data:"),
    ({"creds": "~/none"}, "creds' file does not exist"),
    ({"nkey": "~/none"}, "nkey' file does not exist"),
    ({"ca": "~/none"}, "ca' file does not exist"),
    ({"ca": "~/text"}, "ca' or cert cannot be loaded: SSLError"),
    ({"cert": "~/text"}, "cert' and key belong together"),
    ({"token": ["s3cr3t"]}, "token' is not a string"),
    ({"tls_first": "s3cr3t"}, "tls_first' is neither true nor false"),
    ({"url": "nats://u:s3cr3t@"}, "has no host"),
]


@pytest.mark.rule("D-CTX-4")
@pytest.mark.parametrize(("fields", "text"), REJECTED)
def test_settings_that_cannot_be_honored_are_rejected(home, tmp_path, fields, text):
    (tmp_path / "text").write_text("nothing", encoding="utf-8")
    write(home, **fields)
    with pytest.raises(InvalidValue, match=text) as caught:
        read_context("dev")
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.rule("CTX-3")
@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_file_that_is_not_an_object(home, text):
    (home / "context" / "dev.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidValue, match="'dev' is not a JSON object"):
        read_context("dev")


@pytest.mark.rule("D-CTX-5")
def test_arguments_replace_the_settings_of_a_context(home):
    write(home, url="nats://a:1", user="u", password="p", inbox_prefix="_MINE")
    given = {"context": "dev", "token": "t", "inbox_prefix": "_HIS"}
    options = make_connection("nats://b:2", given).options
    assert [str(url) for url in options.servers] == ["nats://b:2"]
    assert options.auth.connect_fields("", options.servers[0]) == {"auth_token": "t"}
    assert options.inbox_prefix == "_HIS"
    assert given == {"context": "dev", "token": "t", "inbox_prefix": "_HIS"}
    for none in (None, False):
        [url] = make_connection("nats://b:2", {"context": none}).options.servers
        assert str(url) == "nats://b:2"


@pytest.mark.rule("CTX-3")
def test_a_connection_with_certificates(home, tmp_path):
    made = Certificates(tmp_path)
    made.client(certificate=True)  # writes the files
    with Server(config={"tls": made.server("127.0.0.1", verify=True)}) as server:
        write(home, url=server.url, ca="~/ca.pem", cert="~/client.pem", key="~/client.key")
        with blocking.connect(context="dev") as client:
            assert client.info.tls_verify


@pytest.mark.rule("CTX-3")
def test_a_connection_to_a_server(home):
    with Server(config={"authorization": {"token": "t"}}) as server:
        write(home, url=server.url, token="t")
        with blocking.connect(context="dev") as client:
            assert client.connected_url == server.url
