"""A Spark cluster and its driver, in a separate process that reads and writes lines of JSON.

    input     {"call": "module:function", "with": {...}}
    output    {"value": ...} or {"error": ...}

The function gets the session and the arguments. When the input ends, the cluster stops.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from natsproto.testing.server import free_port
from tests.core import ROOT
from tests.spark.conftest import JAVA, lean_home, start_session

ANSWER = "answer: "  # Spark writes to this output, too
# Spark starts a copy of a task only on another host than the first, so workers have two names.
HOSTS = ["127.0.0.1", "127.0.0.2"]


class Daemons:
    """A master, and on each host a worker with one core, until the end of the block."""

    def __init__(self, directory: Path) -> None:
        self._home = lean_home(directory / "home")
        self._stack = ExitStack()
        port = free_port()
        self.url = f"spark://{HOSTS[0]}:{port}"
        try:
            self._start("master.Master", "--host", HOSTS[0], "--port", str(port))
            while not _is_open(
                HOSTS[0], port
            ):  # a worker that connects too early retries much later
                time.sleep(0.02)
            for host in HOSTS:
                limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / host)]
                self._start("worker.Worker", "--host", host, *limits, self.url)
        except BaseException:
            self._stack.close()
            raise

    def _start(self, name: str, *arguments: str) -> None:
        environment = {
            "SPARK_HOME": str(self._home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            "SPARK_LAUNCHER_OPTS": JAVA,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        process = subprocess.Popen(
            [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
            + ["--webui-port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env={**os.environ, **environment},
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, *exc: object) -> None:
        self._stack.close()


def _is_open(host: str, port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex((host, port)) == 0


def main() -> None:
    order = json.loads(sys.argv[1])
    directory = Path(order["directory"])
    with Daemons(directory / "daemons") as url:
        settings = {**order["settings"], "spark.master": url}
        spark = start_session(directory / "driver", **settings)
        for line in sys.stdin:
            order = json.loads(line)
            module, _, name = order["call"].partition(":")
            answer: dict[str, Any] = {}
            try:
                function = getattr(importlib.import_module(module), name)
                answer["value"] = function(spark, **order["with"])
            except Exception:
                answer["error"] = traceback.format_exc()
            print(ANSWER + json.dumps(answer), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
