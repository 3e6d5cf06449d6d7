"""trace: a proxy between clients and real servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from typing import Any

import pytest

from jetstream.blocking import JetStream
from jetstream.tools.cli.trace.transcript import read_steps
from natsproto.adapters.blocking import connect
from natsproto.cli import exits
from natsproto.errors import ConnectFailed
from natsproto.testing import Server, free_port
from natsproto.testing.certificates import Certificates
from tests.cli.programs import WAIT, Program
from tests.cli.relays import relay
from tests.core import ROOT
from tests.peers.test_nats_js import packages

PACKAGES = packages  # a fixture
SECURE = {"authorization": {"user": "u", "password": "s3cret"}}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def command(tmp_path):
    return Program(tmp_path, "-m", "jetstream.tools.cli")


@contextlib.contextmanager
def tracing(command, to, *args):
    """Run trace, and yield the program and the port that it listens on."""
    with command.start("trace", "--listen", "127.0.0.1:0", "--to", to, *args) as trace:
        line = trace.line("err", "listening on")
        trace.line("err", "forwarding to")
        yield trace, int(line.rpartition(":")[2])


def work(port, **options):
    """Publish, request, pull and acknowledge."""
    with connect(f"nats://127.0.0.1:{port}", ignore_discovered=True, **options) as client:
        js = JetStream(client)
        js.create_or_update_stream(name="TRACED", subjects=["traced.>"])
        js.publish("traced.a", b"hello", headers={"A": "1"})
        consumer = js.create_consumer("TRACED", name="c")
        for msg in consumer.fetch(1):
            msg.ack_sync()
        assert list(consumer.fetch(1, no_wait=True)) == []
        js.delete_stream("TRACED")


def test_a_dialogue_is_explained(command, js_server):
    with tracing(command, js_server.url, "--once", "--json") as (trace, port):
        work(port)
        assert trace.wait() == exits.OK
        steps = [json.loads(line) for line in trace.rest()]
    numbers = {step["number"]: step for step in steps}
    kinds = [step["kind"] for step in steps]
    assert kinds[:5] == ["info", "connect", "ping", "pong", "info"]
    pull = next(step for step in steps if step["kind"] == "pull request")
    delivery = next(step for step in steps if step["kind"] == "delivery")
    ack = next(step for step in steps if step["kind"] == "ack")
    status = next(step for step in steps if step["kind"] == "status")
    assert delivery["of"] == pull["number"]
    assert ack["of"] == delivery["number"]
    assert numbers[status["of"]]["kind"] == "pull request"
    assert status["rule"] == "PULL-9"
    assert all(step["after"] >= 0 for step in steps if "of" in step)


def test_text_and_hidden_kinds(command, js_server):
    with tracing(command, js_server.url, "--hide", "ping", "pong") as (trace, port):
        with connect(f"nats://127.0.0.1:{port}") as client:
            client.publish("a", b"text")
            client.flush()
        trace.line("out", "PUB a 4")
        trace.line("err", "connection A: the client closed the connection")
        with connect(f"nats://127.0.0.1:{port}") as client:
            client.flush()
        trace.line("out", "B < #1    INFO")
        assert trace.interrupt() == exits.OK
        assert not [line for line in trace.rest() if "PING" in line.split()]


@pytest.mark.rule("D-PROXY-1")
def test_bytes_pass_unchanged(command, js_server):
    """A relay on each side of the proxy writes down the same bytes."""
    with (
        relay(js_server.port) as inner,
        tracing(command, f"nats://127.0.0.1:{inner.port}", "--once") as (trace, port),
        relay(port) as outer,
    ):
        with connect(f"nats://127.0.0.1:{outer.port}", ignore_discovered=True) as client:
            sub = client.subscribe("large")
            data = bytes(range(256)) * 3000
            for _ in range(10):
                client.publish("large", data, headers={"A": "ü"})
            for _ in range(10):
                assert sub.next(WAIT).data == data
        assert trace.wait() == exits.OK
        assert bytes(outer.sent) == bytes(inner.sent)
        assert bytes(outer.received) == bytes(inner.received)
        assert len(inner.sent) > 10 * len(data)


@pytest.mark.rule("D-PROXY-4")
def test_a_transcript_replays(command, js_server, tmp_path):
    path = tmp_path / "saved.json"
    with tracing(command, js_server.url, "--once", "--save", str(path)) as (trace, port):
        work(port)
        assert trace.wait() == exits.OK
        printed = trace.rest()
    saved = json.loads(path.read_text())
    assert saved["server"].startswith("nats-server 2.")
    assert {tuple(sorted(entry)) for entry in saved["frames"]} == {
        ("b64", "conn", "dir", "latin1", "t_ms")
    }
    assert saved["frames"][-1]["dir"] == "!"
    again = [line for step in read_steps(path) for line in step.lines()]
    # Only the times are rounded.
    assert [line[20:] for line in again if "later]" not in line] == [
        line[20:] for line in printed if "later]" not in line
    ]


@pytest.mark.rule("D-PROXY-2")
def test_secrets_are_neither_printed_nor_saved(command, tmp_path):
    path = tmp_path / "saved.json"
    with (
        Server(config=SECURE) as server,
        tracing(command, server.url, "--once", "--save", str(path)) as (trace, port),
    ):
        with connect(f"nats://127.0.0.1:{port}", user="u", password="s3cret") as client:
            client.flush()
        assert trace.wait() == exits.OK
        assert "s3cret" not in "\n".join(trace.rest() + trace.rest("err"))
        assert "s3cret" not in path.read_text()
        assert "***" in path.read_text()


@pytest.mark.parametrize("client_tls", [False, True])
@pytest.mark.parametrize("server_tls", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_tls_on_either_side(command, certificates, client_tls, server_tls, first):
    if first and client_tls != server_tls:
        pytest.skip("TLS before INFO is for both sides")
    block = certificates.server("localhost", **({"handshake_first": True} if first else {}))
    config: dict[str, Any] = {"jetstream": "enabled"}
    options: list[Any] = []
    if server_tls:
        config["tls"] = block
        options += ["--tlsca", block["ca_file"]]
        options += ["--tlsfirst"] if first else []
    if client_tls:
        options += ["--listen-cert", block["cert_file"], "--listen-key", block["key_file"]]
    context = certificates.client()
    with Server(config=config) as server:
        to = f"localhost:{server.port}"
        with tracing(command, to, "--once", "--json", *options) as (trace, port):
            with connect(
                f"nats://localhost:{port}",
                ignore_discovered=True,
                **({"tls": context, "tls_first": first} if client_tls else {}),
            ) as client:
                JetStream(client).account_info()
            assert trace.wait() == exits.OK
            steps = [json.loads(line) for line in trace.rest()]
        assert [step["kind"] for step in steps[:4]] == ["info", "connect", "ping", "pong"]
        assert steps[-1]["kind"] != "garbage"


def test_no_server(command):
    with tracing(command, f"nats://127.0.0.1:{free_port()}", "--once") as (trace, port):
        with pytest.raises(ConnectFailed):
            connect(f"nats://127.0.0.1:{port}", connect_timeout=WAIT)
        assert "connection A: 127.0.0.1" in trace.line("err", "connection A")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--listen", "nothing"], "--listen is not host:port"),
        (["--listen-cert", "x"], "--listen-key"),
        (["--save", "/no/such/folder/file"], "/no/such/folder"),
        (["--listen", "192.0.2.1:1"], ""),
    ],
)
def test_mistakes(run, args, text):
    done = run("trace", *args)
    assert done.code == exits.USAGE
    assert text in done.err


def test_nats_py_passes_unchanged(command, js_server):
    nats = pytest.importorskip("nats", reason="nats-py is not installed")

    async def talk(port: int) -> None:
        nc = await nats.connect(f"nats://127.0.0.1:{port}")
        js = nc.jetstream()
        await js.add_stream(name="PY", subjects=["py.>"])
        await js.publish("py.a", b"hello", headers={"A": "1"})
        sub = await js.pull_subscribe("py.>", durable="d")
        for msg in await sub.fetch(1):
            await msg.ack_sync()
        await js.delete_stream("PY")
        await nc.close()

    _identical(command, js_server, lambda port: asyncio.run(talk(port)))


def test_nats_js_passes_unchanged(command, js_server, packages):
    script = ROOT / "tests" / "peers" / "traffic.mjs"

    def talk(port: int) -> None:
        subprocess.run(["node", str(script), str(packages), str(port)], check=True, timeout=WAIT)

    _identical(command, js_server, talk)


def _identical(command, server, talk):
    with (
        relay(server.port) as inner,
        tracing(command, f"nats://127.0.0.1:{inner.port}", "--once", "--json") as (trace, port),
        relay(port) as outer,
    ):
        talk(outer.port)
        assert trace.wait() == exits.OK
        steps = [json.loads(line) for line in trace.rest()]
        assert "garbage" not in {step["kind"] for step in steps}
        assert bytes(outer.sent) == bytes(inner.sent)
        assert bytes(outer.received) == bytes(inner.received)
