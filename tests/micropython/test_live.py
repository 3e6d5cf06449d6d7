"""The adapter, the client and JetStream on MicroPython, against a real server.

MicroPython's WebAssembly port has no sockets: the transport is the WebSocket of Node. All the rest
is what runs on a device, in the form in which it is installed there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.micropython.runner import count

if TYPE_CHECKING:
    from natsproto.testing import Server

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
    ("streams.example", 2),
]


@pytest.mark.parametrize(("dialogue", "least"), DIALOGUES)
def test_dialogue(micropython, live_root, live_server, dialogue, least):
    module = dialogue.partition(".")[0]
    # For MicroPython this is a plain connection: the host does the framing.
    url = live_server.urls["websocket"].replace("ws://", "nats://")
    code = f"import harness, {module}\nawait {dialogue}({url!r})\nharness.report()"
    options = ["--experimental-websocket", "--no-warnings"]
    command = ["node", *options, HERE / "live.mjs", micropython, live_root, code]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["timeout", str(LONGEST), *command],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        output = follow(process, live_server)
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
