"""Writing DataFrames to streams, while tasks fail, workers are killed and servers restart."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.spark.sinks import numbers, payloads, sabotage, wait_for_rows, write

# PySpark warns about pandas where rows pass through Python; that does not matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("small_batches"),
]


def test_a_full_stream_fails_the_write(spark, js, name, server):
    js.create_stream(name=name, subjects=[f"{name}.>"], max_msgs=100, discard="new")
    options = {"servers": server.url, "subject": f"{name}.a"}
    with pytest.raises(PySparkException) as caught:
        write(numbers(spark, 500, 1), options)
    assert "row 100 to" in str(caught.value)
    assert "maximum messages exceeded (503, 10077)" in str(caught.value)


def test_secrets_stay_secret(spark, plain, stream):
    secrets = {"user": "joe-the-user", "password": "s3cret-word"}
    config = {"authorization": {"user": "a", "password": "b"}}
    with Server(jetstream=True, config=config) as server, pytest.raises(PySparkException) as caught:
        write(numbers(spark, 5), {**plain, **secrets, "servers": server.url})
    assert "uthorization" in str(caught.value)
    assert "s3cret-word" not in str(caught.value)


def fail():
    raise RuntimeError("something else went wrong")


def test_tasks_that_fail_once(spark, stream, exact):
    write(sabotage(numbers(spark, 6000), fail), exact)
    assert payloads(stream) == list(range(6000))


def test_tasks_that_fail_once_without_ids(spark, stream, plain, server):
    url, name = server.url, stream.name

    def fail_when_something_is_stored():
        wait_for_rows(url, name, 1)
        fail()

    frame = sabotage(numbers(spark, 3000, 1), fail_when_something_is_stored)
    write(frame, plain, delivery="atLeastOnce")
    assert sorted(set(payloads(stream))) == list(range(3000))
    assert len(payloads(stream)) > 3000


def test_a_worker_that_is_killed(spark, stream, exact, server):
    url, name = server.url, stream.name

    def kill_the_others():
        wait_for_rows(url, name, 1)
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            if pid != os.getpid() and parent_of(path) == os.getppid():
                os.kill(pid, signal.SIGKILL)

    def parent_of(path):
        try:
            return int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0  # it has ended

    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are found in /proc, which only Linux has")
    write(sabotage(numbers(spark, 6000, 1), kill_the_others, 4), exact)
    assert payloads(stream) == list(range(6000))


def test_a_server_that_restarts(spark, name, tmp_path, exact):
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True)
        url, reached, go_on = server.url, str(tmp_path / "reached"), str(tmp_path / "go_on")
        os.mkfifo(reached)
        os.mkfifo(go_on)

        def wait():
            wait_for_rows(url, name, 1)
            Path(reached).write_text("now")
            Path(go_on).read_text()

        def restart():
            Path(reached).read_text()
            server.kill()
            server.restart()
            Path(go_on).write_text("now")

        thread = threading.Thread(target=restart)
        thread.start()
        write(sabotage(numbers(spark, 6000, 1), wait, 4), {**exact, "servers": url})
        thread.join()
        with connect(url) as client:
            assert payloads(JetStream(client).stream(name)) == list(range(6000))
