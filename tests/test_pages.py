"""The examples of three pages: testing, graceful shutdown, web servers and forking."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.cli.programs import WAIT, Program, environment
from tests.core import ROOT

EXAMPLES = sorted(ROOT.glob("examples/*/*.py"))
CLUSTER = """
def test_a_cluster(nats_cluster):
    nats_cluster.members[0].kill()

def test_it_is_complete_again(nats_cluster, nats_server):
    assert len(nats_cluster.urls) == 3
    nats_cluster.members[0].pid
    nats_server.freeze()

def test_the_server_is_thawed(nats_server):
    from natsproto.adapters.blocking import connect
    with connect(nats_server.url) as client:
        client.flush()
"""


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


def pytest_run(tmp_path, *args):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=WAIT * 3,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_tests_of_an_application(tmp_path):
    code, output = pytest_run(tmp_path, "--rootdir", str(tmp_path), str(ROOT / "examples/testing"))
    assert code == 0, output
    assert "3 passed" in output


def test_the_fixtures_recover(tmp_path):
    (tmp_path / "test_it.py").write_text(CLUSTER)
    code, output = pytest_run(tmp_path, "-p", "jetstream.testing.plugin")
    assert code == 0, output
    assert "3 passed" in output


def test_the_plugin_is_not_active_by_itself(tmp_path):
    (tmp_path / "test_it.py").write_text(CLUSTER)
    code, output = pytest_run(tmp_path)
    assert code == 1
    assert "fixture 'nats_cluster' not found" in output


def test_a_worker_finishes_its_messages_on_sigterm(server, tmp_path):
    with connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name="JOBS", subjects=["jobs"])
        consumer = js.create_consumer("JOBS", name="worker", durable_name="worker")
        for number in range(200):
            js.publish("jobs", b"%d" % number)
        program = Program(tmp_path, str(ROOT / "examples/shutdown/worker.py"))
        with program.start(server.url) as worker:
            assert worker.line() == "done 0"
            assert worker.interrupt(signal.SIGTERM) == 0
            *done, last = worker.rest()
        assert last == "closed"
        assert done == [f"done {number}" for number in range(1, len(done) + 1)]
        info = consumer.info()
        assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, len(done) + 1)
        js.delete_stream("JOBS")


def test_a_worker_with_dead_letters(server, tmp_path):
    program = Program(tmp_path, str(ROOT / "examples/worker/worker.py"))
    with connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name="ORDERS", subjects=["orders.>"])
        for data in (b"{", b'{"item": "tea"}', b'{"item": "coffee"}'):
            js.publish("orders.new", data)
        with program.start(server.url) as worker:
            lines = sorted(worker.line() for _ in range(4))
            letters = js.consumer("ORDERS", "shipping").dead_letters(durable="ORDERS-DEAD")
            with letters:
                found = [letters.next(timeout=WAIT) for _ in range(2)]
                for letter in found:
                    letter.discard()
            assert worker.interrupt(signal.SIGTERM) == 0
            assert worker.rest()[-1] == "closed"
        js.delete_stream("ORDERS-DEAD")
        js.delete_stream("ORDERS")
    attempts = [f"order 2 failed, attempt {number}: out of tea" for number in (1, 2, 3)]
    assert lines == [*attempts, "shipped coffee"]
    kinds = sorted((each.seq, each.kind, each.reason) for each in found)
    assert kinds == [(1, "terminated", "not valid JSON"), (2, "max_deliver", "")]


def test_each_process_has_a_client_of_its_own(server, tmp_path):
    code = """
import os
from examples.web.wsgi_client import jetstream
js = jetstream()
js.create_stream(name="WEB", subjects=["orders.new"])
js.publish("orders.new", b"parent")
child = os.fork()
if not child:
    assert jetstream() is not js
    jetstream().publish("orders.new", b"child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert jetstream() is js
assert js.publish("orders.new", b"parent again").seq == 3
js.delete_stream("WEB")
"""
    env = environment(tmp_path, NATS_URL=server.url)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_example_is_valid_python(path):
    ast.parse(path.read_text(encoding="utf-8"))


def test_fastapi(server, monkeypatch):
    pytest.importorskip("httpx", reason="httpx is not installed: the test client needs it")
    testclient = pytest.importorskip("fastapi.testclient", reason="FastAPI is not installed")
    monkeypatch.setenv("NATS_URL", server.url)
    from examples.web.fastapi_app import app

    check(server, lambda: testclient.TestClient(app), lambda client: client.post("/orders/1"))


def test_flask(server, monkeypatch):
    pytest.importorskip("flask", reason="Flask is not installed")
    monkeypatch.setenv("NATS_URL", server.url)
    from examples.web.flask_app import app

    check(server, app.test_client, lambda client: client.post("/orders/1"))


def check(server, make, post):
    """Send an order through a web application, and look for it in the stream."""
    with connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name="ORDERS", subjects=["orders.>"])
        with make() as web:
            assert post(web).status_code == 200
        assert js.stream("ORDERS").info().state.messages == 1
        js.delete_stream("ORDERS")
