"""`python -m natsproto`: pub, sub, req, rtt and info, as a program on a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from natsproto.adapters.blocking import connect
from natsproto.cli import exits
from natsproto.testing import Server, free_port
from tests.cli.programs import WAIT, Program, environment
from tests.core import ROOT

DENY = {
    "authorization": {
        "users": [{"user": "u", "password": "secret", "permissions": {"publish": {"deny": "no"}}}]
    }
}


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def guarded():
    with Server(config=DENY) as server:
        yield server


@pytest.fixture
def command(server, tmp_path):
    return Program(tmp_path, "-m", "natsproto", NATS_URL=server.url)


def test_pub_reaches_sub_with_headers(command):
    with command.start("sub", "greet.*", "--count", "2") as sub:
        sub.line("err", "subscribed to greet.*")
        done = command.run("pub", "greet.joe", "hello", "-H", "Language: en", "-H", "Tone:warm")
        assert (done.code, done.out) == (0, "published 5 bytes to greet.joe\n")
        assert command.run("pub", "greet.sue", stdin=b"from stdin").code == 0
        assert sub.wait() == exits.OK
        assert sub.rest() == [
            "[1] greet.joe: 5 bytes",
            "Language: en",
            "Tone: warm",
            "hello",
            "",
            "[2] greet.sue: 10 bytes",
            "from stdin",
            "",
        ]


@pytest.mark.rule("D-CLI-2")
def test_messages_as_json_and_raw(command):
    with command.start("sub", "j", "--json", "--count", "2") as sub:
        sub.line("err", "subscribed")
        with command.start("sub", "j", "--raw", "--count", "2") as raw:
            raw.line("err", "subscribed")
            assert command.run("pub", "j", "é", "--reply", "r", "-H", "A:1", "-H", "A:2").code == 0
            done = command.run("pub", "j", "--json", stdin=b"\xff")
            assert done.json == {"subject": "j", "size": 1, "count": 1}
            assert raw.line() == "é"
        assert [json.loads(line) for line in sub.rest()] == [
            {"subject": "j", "reply": "r", "headers": {"A": ["1", "2"]}, "data": "é"},
            {"subject": "j", "data_base64": "/w=="},
        ]


def test_pub_many(command):
    with command.start("sub", "many", "--raw", "--count", "3") as sub:
        sub.line("err", "subscribed")
        assert command.run("pub", "many", "x", "--count", "3").out.endswith(", 3 times\n")
        assert sub.wait() == 0
        assert sub.rest() == ["x", "x", "x"]


def test_req_prints_the_response(command, server):
    with connect(server.url) as client:
        sub = client.subscribe("double")
        client.flush()
        with command.start("req", "double", "21", "--raw") as req:
            msg = sub.next(30)
            client.respond(msg, b"42")
            client.flush()
            assert req.wait() == exits.OK
            assert req.rest() == ["42"]
        with command.start("req", "double", "1", "--replies", "2", "--json") as req:
            msg = sub.next(30)
            client.respond(msg, b"2")
            client.respond(msg, b"two")
            client.flush()
            assert req.wait() == exits.OK
            assert [json.loads(line)["data"] for line in req.rest()] == ["2", "two"]


@pytest.mark.rule("D-CLI-1")
def test_a_request_without_responders(command):
    done = command.run("req", "nothing.here", "x")
    assert (done.code, done.out) == (exits.NOT_FOUND, "")
    assert done.err == "natsproto: no responders on subject 'nothing.here'\n"


def test_a_request_without_a_response_in_time(command, server):
    with connect(server.url) as client:
        client.subscribe("silent")
        client.flush()
        done = command.run("--timeout", "100ms", "req", "silent", "x", "--json")
        assert done.code == exits.TIMEOUT
        error = json.loads(done.err)
        assert (error["kind"], error["exit_code"]) == ("TimeoutExpired", exits.TIMEOUT)
        done = command.run("req", "silent", "x", "--replies", "0", "--timeout", "0.1")
        assert done.code == exits.TIMEOUT


def test_rtt_and_info(command, server):
    done = command.run("rtt", "--count", "2")
    assert done.code == 0
    assert done.out.startswith(f"{server.url}: min ")
    fields = command.run("rtt", "--json").json
    assert fields["count"] == 5
    assert 0 < fields["min"] <= fields["mean"] <= fields["max"]
    fields = command.run("info", "--json").json
    assert fields["server_name"] == "s1"
    assert fields["connected_url"] == server.url
    assert "server_name" in command.run("info").out


@pytest.mark.rule("D-CLI-3")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sub_ends_well_when_it_is_interrupted(command, number):
    with command.start("sub", ">") as sub:
        sub.line("err", "subscribed")
        assert sub.interrupt(number) == exits.OK
        assert sub.rest("err") == []


def test_a_command_that_is_interrupted_before_it_is_done(command, server):
    with connect(server.url) as client:
        sub = client.subscribe("slow")
        client.flush()
        with command.start("req", "slow", "x", "--timeout", "1m") as req:
            sub.next(30)
            assert req.interrupt() == exits.INTERRUPTED


@pytest.mark.rule("D-CLI-4")
def test_a_reader_that_goes_away_ends_sub_quietly(server, tmp_path):
    command = [sys.executable, "-m", "natsproto", "sub", "pipe", "--raw"]
    env = environment(tmp_path, NATS_URL=server.url)
    reading, writing = os.pipe()
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, env=env) as sub:
        os.close(writing)
        assert sub.stderr.readline() == b"subscribed to pipe\n"
        with connect(server.url) as client:
            client.publish("pipe", b"one")
            client.flush()
            assert os.read(reading, 100) == b"one\n"
            os.close(reading)
            client.publish("pipe", b"two")
            client.flush()
            assert (sub.wait(WAIT), sub.stderr.read()) == (exits.OK, b"")


def test_sub_reports_a_reconnect(tmp_path):
    with Server() as own:
        command = Program(tmp_path, "-m", "natsproto", NATS_URL=own.url)
        with command.start("sub", "x", "--raw") as sub:
            sub.line("err", "subscribed")
            own.restart()
            sub.line("err", "disconnected from")
            assert "connected again to" in sub.line("err", "connected")  # and nothing twice
            with connect(own.url) as client:
                client.publish("x", b"after")
            assert sub.line() == "after"


def test_no_server(tmp_path):
    command = Program(tmp_path, "-m", "natsproto")
    done = command.run("--server", f"nats://127.0.0.1:{free_port()}", "rtt")
    assert done.code == exits.NO_CONNECTION
    assert "no server could be reached" in done.err


def test_credentials_and_permissions(guarded, tmp_path):
    command = Program(tmp_path, "-m", "natsproto", NATS_URL=guarded.url)
    done = command.run("rtt", "--user", "u", "--password", "wrong")
    assert done.code == exits.REFUSED
    assert "wrong" not in done.err
    assert command.run("rtt", NATS_USER="u", NATS_PASSWORD="secret").code == 0
    done = command.run("--user", "u", "--password", "secret", "pub", "no", "x")
    assert done.code == exits.REFUSED
    assert "Permissions Violation for Publish" in done.err


@pytest.mark.rule("D-CLI-5")
def test_contexts(guarded, tmp_path):
    folder = tmp_path / "nats" / "context"
    folder.mkdir(parents=True)
    fields = {"url": guarded.url, "user": "u", "password": "secret"}
    (folder / "dev.json").write_text(json.dumps(fields))
    command = Program(tmp_path, "-m", "natsproto")
    assert command.run("rtt", "--context", "dev").code == 0
    assert command.run("rtt", "--context", "other").code == exits.USAGE
    (tmp_path / "nats" / "context.txt").write_text("dev")
    assert command.run("rtt", "--json").json["server"] == guarded.url


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "COMMAND"),
        (["pub"], "subject"),
        (["pub", "a", "b", "-H", "nothing"], "header is not NAME:VALUE"),
        (["pub", "a b", "x"], "'a b'"),
        (["rtt", "--timeout", "soon"], "not a duration"),
        (["rtt", "--timeout", "-1s"], "expected one argument"),
        (["rtt", "--tlscert", "a.pem"], "--tlskey"),
        (["rtt", "--creds", "/no/such/file"], "/no/such/file"),
        (["rtt", "--nkey", "/no/such/file"], "/no/such/file"),
        (["rtt", "--tlsca", "/no/such/file"], "/no/such/file"),
    ],
)
def test_mistakes_in_the_command_line(command, args, text):
    done = command.run(*args)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert text in done.err
    assert "Traceback" not in done.err


def test_it_imports_neither_jetstream_nor_other_packages():
    code = "import sys, natsproto.cli.main as m; m.build(); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"jetstream", "rich", "click", "trio", "pytest"}.isdisjoint(run.stdout.split())
