"""The adapter, the client and JetStream on MicroPython, against a real server.

MicroPython's WebAssembly port has no sockets: the transport is the WebSocket of Node. All the rest
is what runs on a device, in the form in which it is installed there.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from natsproto.testing import Server
from natsproto.testing.server import HOST, free_port
from tests.micropython.runner import count

HERE = Path(__file__).parent
LONGEST = 120  # seconds for one dialogue

DIALOGUES = [  # function of a module of live/, at least so many checks
    ("core.pubsub", 13),
    ("core.large", 1),
    ("core.requests", 5),
    ("core.run", 1),
    ("core.refused", 4),
    ("core.canceled", 2),
    ("core.reconnect", 10),
    ("streams.publish", 13),
    ("streams.pull", 7),
    ("streams.ordered", 1),
    ("streams.key_value", 8),
]


@pytest.fixture(scope="module")
def server():
    websocket = {"host": HOST, "port": free_port(), "no_tls": True}
    with Server(jetstream=True, config={"websocket": websocket}) as server:
        yield server


@pytest.fixture(scope="module")
def root(device, tmp_path_factory):
    """Return the root of the device with the dialogues in it."""
    root = tmp_path_factory.mktemp("live") / "root"
    shutil.copytree(device, root)
    for path in (HERE / "live").glob("*.py"):
        shutil.copy(path, root)
    return root


@pytest.mark.parametrize(("dialogue", "least"), DIALOGUES)
def test_dialogue(micropython, root, server, dialogue, least):
    module = dialogue.partition(".")[0]
    # For MicroPython this is a plain connection: the host does the framing.
    url = server.urls["websocket"].replace("ws://", "nats://")
    code = f"import harness, {module}\nawait {dialogue}({url!r})\nharness.report()"
    options = ["--experimental-websocket", "--no-warnings"]
    command = ["node", *options, HERE / "live.mjs", micropython, root, code]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["timeout", str(LONGEST), *command],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        output = follow(process, server)
    assert process.returncode == 0, output
    assert count(output) >= least


def follow(process: subprocess.Popen[str], server: Server) -> str:
    """Kill and restart the server when the dialogue asks for it; return its output."""
    assert process.stdin is not None
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "kill\n":
            server.kill()
        elif line == "restart\n":
            server.restart()
            process.stdin.write("restarted\n")
            process.stdin.flush()
    return "".join(lines)
