"""The applications of docs/web.md, run by uvicorn and gunicorn: a POST becomes a stored message.

gunicorn imports the application and then forks its workers (`--preload`): the case that the page
warns of.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.core import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORDERS = 20
PATIENCE = 60.0
UVICORN = ["uvicorn", "--fd", "{fd}"]
GUNICORN = [
    "gunicorn",
    "--preload",
    "--workers",
    "2",
    "--threads",
    "4",
    "--bind",
    "fd://{fd}",
]
APPLICATIONS = {
    "fastapi": [*UVICORN, "examples.web.fastapi_app:app"],
    "flask": [*GUNICORN, "examples.web.flask_app:app"],
    "django": [*GUNICORN, "examples.web.django_wsgi:application"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(jetstream=True) as server:
        yield server


class Web:
    """A web server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self._port = port

    def post(self, number: int) -> int:
        """Place an order; return its sequence in the stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request("POST", f"/orders/{number}", b"order %d" % number)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            return int(json.loads(body)["sequence"])
        finally:
            connection.close()


@contextmanager
def serving(command: list[str], server: Server, log: Path) -> Iterator[Web]:
    """Run a web server, and end it as a supervisor would.

    It inherits the listening socket, so that requests wait until it is ready.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.fileno()
    argv = [sys.executable, "-m", *(each.format(fd=number) for each in command)]
    env = {**os.environ, "NATS_URL": server.url, "PYTHONPATH": str(ROOT)}
    with listening, log.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=ROOT, env=env, stdout=output, stderr=output, pass_fds=[number]
        )
        try:
            yield Web(process, listening.getsockname()[1])
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.parametrize("framework", APPLICATIONS)
def test_a_request_becomes_a_message(framework, server, tmp_path):
    command = APPLICATIONS[framework]
    for package in (framework, command[0]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    log = tmp_path / "log"
    with connect(server.url) as client:
        js = JetStream(client)
        stream = js.create_stream(name=framework, subjects=["orders.new"])
        with serving(command, server, log) as web, ThreadPoolExecutor(8) as pool:
            sequences = list(pool.map(web.post, range(ORDERS)))
            assert web.post(3) == sequences[3]  # the message id makes a repeated request harmless
        said = log.read_text()
        stored = {stream.get_msg(seq).data for seq in sequences}
        assert stream.info().state.messages == ORDERS
        stream.delete()
    assert stored == {b"order %d" % number for number in range(ORDERS)}
    assert "Traceback" not in said, said
    assert web.process.returncode in (0, -signal.SIGTERM), said  # uvicorn repeats the signal
