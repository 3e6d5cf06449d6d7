"""service, events, dlq, backup, restore, bench, server and consume, each on a real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from jetstream import add_service
from jetstream.blocking import JetStream
from natsproto.adapters.asyncio import connect as connect_asyncio
from natsproto.adapters.blocking import connect
from natsproto.cli import exits
from natsproto.testing import Server, free_port
from tests.cli.programs import WAIT, Program, environment


@pytest.fixture
def command(js_server, tmp_path):
    return Program(tmp_path, "-m", "jetstream.tools.cli", NATS_URL=js_server.url)


@pytest.fixture
def work(run, js_server):
    """Create a stream with 20 messages and a consumer of it, and delete it at the end."""
    created = run("stream", "create", "WORK", "--subjects", "work.>", "--json")
    assert (created.code, created.json["state"]["messages"]) == (0, 0)
    with connect(js_server.url) as client:
        for number in range(20):
            JetStream(client).publish(f"work.{number}", b"%d" % number)
    assert run("consumer", "create", "WORK", "c", "--max-deliver", "1").code == 0
    yield "WORK"
    assert run("stream", "rm", "WORK", "--force").code == 0


@contextlib.contextmanager
def service(url):
    """Run a service in a thread."""
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with (
            connect_asyncio(url) as client,
            add_service(client, name="echo", version="1.0.0") as found,
        ):

            @found.endpoint(subject="echo.it")
            async def it(request) -> None:
                await request.respond(request.data)

            running = asyncio.create_task(found.run())
            await client.flush()
            ready.set()
            await asyncio.to_thread(stop.wait)
            await found.stop()
            await running

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(WAIT)
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT)


def test_services(run, js_server):
    with service(js_server.url):
        assert run("req", "echo.it", "hello", "--raw").out == "hello\n"
        assert run("service", "ls", "--json").json == [
            {"name": "echo", "version": "1.0.0", "instances": 1}
        ]
        assert "echo  1.0.0" in run("service", "ls").out
        [found] = run("service", "ping", "echo", "--json").json
        assert 0 < found["rtt"] < WAIT
        assert found["id"] in run("service", "ping").out
        assert "subject: echo.it" in run("service", "info", "echo", found["id"]).out
        [stats] = run("service", "stats", "--json").json
        assert stats["endpoints"][0]["num_requests"] == 1
        assert "REQUESTS" in run("service", "stats").out


def test_events(run, command):
    with command.start("events", "stream_action", "--stream", "EV", "--count", "2") as events:
        events.line("err", "waiting for events")
        assert run("stream", "create", "EV", "--subjects", "ev").code == 0
        assert run("stream", "rm", "EV", "--force").code == 0
        assert "stream_action: " in events.line()
        assert "action=delete" in events.line()
        assert events.wait() == exits.OK
    with command.start("events", "--json", "--stream", "EV") as events:
        events.line("err", "waiting for events")
        assert run("stream", "create", "EV", "--subjects", "ev").code == 0
        assert json.loads(events.line("out", "stream_action"))["stream"] == "EV"
        assert events.interrupt() == exits.OK
    assert run("stream", "rm", "EV", "--force").code == 0
    assert run("events", "no_such_kind").code == exits.USAGE


def test_dead_letters(run, work, js_server):
    assert run("dlq", "capture", work, "c", "DEAD").code == 0
    done = run("consumer", "next", work, "c", "--count", "3", "--settle", "term", "--json")
    assert [each["seq"] for each in done.lines] == [1, 2, 3]
    deadline = time.monotonic() + WAIT
    while len(run("dlq", "ls", "DEAD", "--json").json) < 3:  # servers publish advisories later
        assert time.monotonic() < deadline
    letters = run("dlq", "ls", "DEAD", "--json").json
    assert sorted(each["stream_seq"] for each in letters) == [1, 2, 3]
    assert "terminated" in run("dlq", "ls", "DEAD").out
    first = next(each for each in letters if each["stream_seq"] == 1)
    number = str(first["letter"])
    assert run("dlq", "show", "DEAD", number, "--json").json["message"]["data"] == "0"
    assert "[1] work.0: 1 bytes\n" in run("dlq", "show", "DEAD", number).out
    assert run("dlq", "show", "DEAD", "99").code == exits.NOT_FOUND
    assert run("dlq", "retry", "DEAD").code == exits.USAGE
    assert run("dlq", "retry", "DEAD", "99").code == exits.NOT_FOUND
    assert run("dlq", "discard", "DEAD", "--all").out == "3 messages discarded\n"
    assert run("dlq", "ls", "DEAD", "--json").json == []
    done = run("consumer", "next", work, "c", "--settle", "term", "--json")
    with connect(js_server.url) as client:
        stream = JetStream(client).stream("DEAD")
        while not stream.info().state.messages:
            assert time.monotonic() < deadline + WAIT
    assert run("dlq", "retry", "DEAD", "--all", "--json").json["how"] == "retry"
    last = run("stream", "get", work, "--last-for", "work.>", "--json").json
    assert last["data"] == done.json["data"]
    assert last["seq"] == 21
    assert run("stream", "rm", "DEAD", "--force").code == 0


def test_backup_and_restore(run, work, tmp_path):
    path = tmp_path / "work.backup"
    done = run("backup", work, str(path), "--json")
    assert (done.code, done.json["messages"]) == (0, 20), done.err
    assert run("backup", work, str(path)).code == exits.USAGE  # it exists
    other = tmp_path / "other"
    assert run("backup", "NOTHING", str(other)).code == exits.NOT_FOUND
    assert not other.exists()
    assert run("restore", str(path)).code == exits.REFUSED  # the stream exists
    assert run("stream", "rm", work, "--force").code == 0
    done = run("restore", str(path))
    assert done.out == f"restored stream {work}: 20 messages\n"
    assert run("consumer", "ls", work, "--names").out == "c\n"


def test_bench(run, command, work):
    done = run("bench", "pub", "work.bench", "--count", "500", "--size", "1K", "--json")
    assert (done.json["messages"], done.json["bytes"]) == (500, 500 * 1024)
    assert done.json["messages_per_second"] > 0
    done = run("bench", "pub", "work.bench", "--count", "500", "--jetstream")
    assert done.out.startswith("publish to JetStream: ")
    assert "us of CPU per message" in done.out
    assert run("stream", "info", work, "--json").json["state"]["messages"] == 20 + 500 + 500
    done = run("bench", "fetch", work, "c", "--count", "300", "--batch", "100", "--json")
    assert done.json["messages"] == 300
    done = run("bench", "consume", work, "c", "--count", "100000", "--timeout", "30s", "--json")
    assert "there are only" in done.err
    assert done.json["messages"] == 720
    with command.start("bench", "sub", "bench.it", "--count", "100", "--json") as sub:
        sub.line("err", "waiting for 100 messages")
        assert run("bench", "pub", "bench.it", "--count", "100").code == 0
        assert sub.wait() == exits.OK
        assert json.loads(sub.rest()[0])["messages"] == 100


def test_a_server_for_development(tmp_path):
    port = free_port()
    command = Program(tmp_path, "-m", "jetstream.tools.cli")
    store = tmp_path / "store"
    for found in ([], ["KEPT"]):
        with command.start("server", "--port", str(port), "--store", str(store)) as server:
            assert server.line().startswith(f"s1: nats://127.0.0.1:{port}  monitoring http://")
            server.line("err", "press Ctrl-C")
            with connect(f"nats://127.0.0.1:{port}") as client:
                js = JetStream(client)
                assert list(js.stream_names()) == found
                js.create_stream(name="KEPT", subjects=["kept"])
            assert server.interrupt() == exits.OK
        with pytest.raises(OSError, match="111"):
            connect_plain(port)


def connect_plain(port):
    import socket

    socket.create_connection(("127.0.0.1", port), 1).close()


def test_a_cluster_for_development(tmp_path):
    command = Program(tmp_path, "-m", "jetstream.tools.cli")
    with command.start("server", "--cluster", "3", "--json") as server:
        urls = [json.loads(server.line())["url"] for _ in range(3)]
        server.line("err", "press Ctrl-C")
        with connect(urls) as client:
            JetStream(client).create_stream(name="R3", subjects=["r3"], num_replicas=3)
        assert server.interrupt(signal.SIGTERM) == exits.OK


def test_a_server_that_cannot_start(tmp_path):
    command = Program(tmp_path, "-m", "jetstream.tools.cli")
    done = command.run("server", "--port", "0", NATS_SERVER="/no/such/binary")
    assert done.code == exits.USAGE
    assert "natsproto[server]" in done.err
    config = tmp_path / "bad.conf"
    config.write_text("no_such_setting: true")
    assert command.run("server", "--port", "0", "--config", str(config)).code == exits.REFUSED
    with Server() as taken:
        done = command.run("server", "--port", str(taken.port))
        assert done.code == exits.REFUSED


@pytest.mark.rule("D-CLI-7")
def test_consume_prints_lines_without_a_terminal(run, command, work):
    done = run("consume", work, "c", "--count", "5", "--json")
    assert (done.code, done.lines[-1]["messages"]) == (0, 5), done.err
    with command.start("consume", work, "c", "--interval", "0.2s") as consume:
        line = consume.line("out", "messages 15")
        assert "lag 0 pending" in line
        assert "open pulls 1" in line
        assert "now " in line
        assert consume.interrupt() == exits.OK
    assert run("consume", work, "nothing").code == exits.NOT_FOUND
    assert run("consumer", "info", work, "c", "--json").json["num_ack_pending"] == 0


def test_consume_draws_a_view_on_a_terminal(work, js_server, tmp_path):
    args = ["consume", work, "c", "--interval", "0.2s"]
    screen = on_terminal(js_server, tmp_path, args, interrupt_at="20")
    assert "WORK > c" in screen
    for word in ("rate", "lag", "open pulls", "unacknowledged", "heard", "now", "Ctrl-C ends"):
        assert word in screen, word
    [bottom] = set(re.findall("╰.*╯", re.sub("\x1b.*?m", "", screen)))
    assert len(bottom) == 96  # of 100: the ^C of a terminal fits in the same line
    assert screen.rindex("╰") > screen.rindex("╭")  # the last state stays


@pytest.mark.rule("D-CLI-7")
def test_a_bar_on_a_terminal(js_server, tmp_path):
    args = ["bench", "pub", "bar", "--count", "200000"]
    screen = on_terminal(js_server, tmp_path, args)
    assert "messages/s" in screen
    assert "200000" in screen
    assert "━" in screen


@pytest.mark.rule("D-CLI-3")
def test_an_interrupt_ends_a_question(work, js_server, tmp_path, run):
    args = ["stream", "rm", work]
    screen = on_terminal(js_server, tmp_path, args, interrupt_at="[y/N]", code=exits.INTERRUPTED)
    assert "Traceback" not in screen
    assert run("stream", "info", work).code == 0


def on_terminal(server, home, args, interrupt_at="", code=exits.OK):
    """Run a command on a pseudo-terminal to its end, and return its output.

    Once `interrupt_at` is in the output, press Ctrl-C. `code` is the expected exit code.
    """
    main, child = pty.openpty()
    env = environment(home, NATS_URL=server.url, TERM="xterm", COLUMNS="100", LINES="30")
    env["PYTHONIOENCODING"] = "utf-8"
    command = [sys.executable, "-m", "jetstream.tools.cli", *args]
    process = subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, env=env, start_new_session=True
    )
    os.close(child)
    output = b""
    deadline = time.monotonic() + WAIT
    interrupted = False
    try:
        while time.monotonic() < deadline:
            if select.select([main], [], [], 0.1)[0]:
                try:
                    data = os.read(main, 65536)
                except OSError:  # the end, on Linux
                    break
                if not data:
                    break
                output += data
            if interrupt_at and interrupt_at.encode() in output and not interrupted:
                interrupted = True
                process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == code, output.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert interrupted or not interrupt_at, output.decode(errors="replace")
    return output.decode(errors="replace")
