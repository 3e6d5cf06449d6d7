"""The adapter for Pyodide, under Node, against real servers.

Pyodide comes from npm and runs the files of the repository. Checks of the conformance suite run
there unchanged; this process starts and stops their servers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jetstream.testing import CHECKS as JETSTREAM
from natsproto.auth import nkeys
from natsproto.testing import CHECKS, Cluster, Server, free_port, jwts
from natsproto.testing.certificates import Certificates
from tests import npm
from tests.core import ROOT
from tests.pyodide.control import Pipes

HERE = Path(__file__).parent
PARTS = 2  # which may run at the same time

pytestmark = pytest.mark.skipif(not npm.node(), reason="Pyodide needs Node, and there is none")

# The groups of checks that run with `make test`; PYODIDE_CHECKS=all adds the others.
GROUPS = ["drain", "errors", "events", "headers", "lifecycle", "limits", "outage", "pubsub"]
GROUPS += ["reconnect", "requests", "acks", "consume", "fetch", "kv_watch", "ordered", "publish"]
# Checks and groups that cannot run here, by what they need.
IMPOSSIBLE = {
    "a cluster, whose members start in threads": """
        advisories_cluster api_level backup_of_a_replicated_stream cluster elections
        dead_letters_over_a_crash_of_the_leader fast_batch_over_a_crash_of_the_leader
        fast_batch_over_step_downs fetch_no_wait_in_a_cluster kv_in_a_cluster ordered_elections
        push_elections replicas traced_message_in_a_cluster""",
    "a thread": """
        close_while_down connect_to_another_protocol drain_while_down
        held_publish_that_is_too_large held_request_that_is_too_large""",
    "a plain socket": """
        consume_messages_that_look_like_statuses consume_poison faults forgery get_msg_that_is_odd
        kv_of_others poison stream_info_of_many_subjects websocket""",
    "a server with a nats or tls URL": """
        connect_by_name connect_without_a_listener failing_servers_are_passed_over
        log_without_credentials servers_in_one_text tls trace_without_secrets""",
    "cryptography": """
        kv_codec_that_cannot_decode kv_codecs_in_watches kv_codecs_of_keys_and_values""",
    "the open files of a process": "nothing_is_left_open",
}


def runnable(groups: list[str]) -> list[str]:
    """Return the names of the checks of these groups that can run; [] stands for all groups."""
    omitted = " ".join(IMPOSSIBLE.values()).split()
    checks = {**CHECKS, **JETSTREAM}.values()
    assert set(omitted) <= {each.name for each in checks} | {each.group for each in checks}
    checks = [each for each in checks if each.group in groups or not groups]
    return [each.name for each in checks if each.name not in omitted and each.group not in omitted]


def run_on_pyodide(module: str, *arguments: object, **environment: str) -> Any:
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
            timeout=1200,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("part", range(PARTS))
def test_checks(part):
    all_of_them = os.environ.get("PYODIDE_CHECKS") == "all"
    names = runnable([] if all_of_them else GROUPS)[part::PARTS]
    passed, failed, skipped = run_on_pyodide("tests.pyodide.suite", names)
    assert failed == {}
    assert set(skipped.values()) <= {"cryptography is not installed"}
    assert len(passed) > 50


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


def test_the_server_of_the_example():
    command = [sys.executable, ROOT / "examples/browser/serve.py", npm.install(HERE) / "pyodide"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("Open http://127.0.0.1:"), done.stderr
    assert "?server=ws://127.0.0.1:" in done.stdout
    assert done.returncode == 0


@pytest.mark.rule("D-POOL-18", "D-OPT-19", "D-WS-12", "D-AUTH-14")
def test_what_only_this_adapter_does(given):
    assert run_on_pyodide("tests.pyodide.host", given, [], NODE_EXTRA_CA_CERTS=given["ca"]) == {}
