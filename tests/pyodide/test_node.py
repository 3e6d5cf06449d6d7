"""The adapter for Pyodide, under Node, against real servers.

Pyodide comes from npm and runs the files of the repository. Checks of the conformance suite run there
unchanged; this process starts and stops their servers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from jetstream.testing import CHECKS as JETSTREAM
from natsproto.auth import nkeys
from natsproto.testing import CHECKS, Cluster, Server, free_port, jwts
from natsproto.testing.certificates import Certificates
from tests import npm
from tests.core import ROOT
from tests.pyodide.control import Pipes

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not npm.node(), reason="Pyodide needs Node, and there is none")

# Checks that run with `make test`, by group; PYODIDE_CHECKS=all runs all of them.
GROUPS = ["auth", "drain", "errors", "events", "headers", "health", "lifecycle", "limits", "outage"]
GROUPS += ["pubsub", "reconnect", "requests", "run"]
GROUPS += ["acks", "consume", "fetch", "kv", "kv_watch", "ordered", "publish", "services"]
# Checks that cannot run here, and why.
IMPOSSIBLE = {
    "plain sockets": ["cluster", "tls", "websocket", "forgery", "faults", "poison"],
}


def runnable(groups: list[str]) -> list[str]:
    """Return the names of the checks of these groups that can run."""
    checks = {**CHECKS, **JETSTREAM}.values()
    return [each.name for each in checks if each.group in groups]


def run_on_pyodide(module: str, *arguments: object, **environment: str) -> dict[str, str]:
    """Return what `main` of this module returns."""
    with Pipes() as control:
        pipes = [control.request_fd, control.response_fd]
        home = npm.install(HERE) / "pyodide/pyodide.mjs"
        command = [*npm.node(), HERE / "run.mjs", home, ROOT, *map(str, pipes), module]
        done = subprocess.run(
            [*command, json.dumps(arguments)],
            env={**os.environ, **environment},
            pass_fds=pipes,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """URLs of servers, and credentials for them."""
    directory = tmp_path_factory.mktemp("pyodide")
    certificates = Certificates(directory)
    websocket = {"listen": "127.0.0.1:-1", "no_tls": True}
    users = [{"nkey": nkeys.public_key(jwts.USER)}]
    jwt = jwts.user_jwt(jwts.USER)
    with (
        Server(config={"websocket": websocket, "authorization": {"users": users}}) as keys,
        Server(config={"websocket": websocket, **jwts.server_config()}) as operator,
        Server(config={"websocket": secure(certificates, "127.0.0.1")}) as server,
        Server(config={"websocket": secure(certificates, "other.example")}) as other,
        Cluster(2, config={"websocket": websocket}) as cluster,
    ):
        yield {
            "ca": str(directory / "ca.pem"),
            "cluster": [member.urls["websocket"] for member in cluster.members],
            "creds": jwts.creds(jwt, jwts.USER),
            "jwt": jwt,
            "jwts": operator.urls["websocket"],
            "nkeys": keys.urls["websocket"],
            "nobody": f"ws://127.0.0.1:{free_port()}",
            "other_name": other.urls["websocket"],
            "public": nkeys.public_key(jwts.USER),
            "seed": jwts.USER,
            "stranger": jwts.STRANGER,
            "wss": server.urls["websocket"],
        }


def secure(certificates: Certificates, name: str) -> dict[str, object]:
    return {"listen": "127.0.0.1:-1", "tls": certificates.server(name)}


@pytest.mark.rule("D-POOL-18", "D-OPT-19", "D-WS-12", "D-AUTH-14")
def test_what_only_this_adapter_does(given):
    assert run_on_pyodide("tests.pyodide.host", given, [], NODE_EXTRA_CA_CERTS=given["ca"]) == {}
