"""The adapter, the client and JetStream on MicroPython, against a real server.

MicroPython's WebAssembly port has no sockets: the transport is the WebSocket of Node. All the rest
is what runs on a device, in the form in which it is installed there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import npm
from tests.micropython.runner import converse, count

HERE = Path(__file__).parent

DIALOGUES = [  # function of a module of live/, at least so many checks
    ("core.pubsub", 13),
    ("core.large", 1),
    ("core.requests", 5),
    ("core.run", 1),
    ("core.failing", 2),
    ("core.refused", 4),
    ("core.canceled", 2),
    ("core.reconnect", 10),
    ("streams.publish", 13),
    ("streams.pull", 7),
    ("streams.ordered", 1),
    ("streams.key_value", 8),
    ("streams.example", 2),
    ("streams.device", 3),
]


@pytest.mark.parametrize(("dialogue", "least"), DIALOGUES)
def test_dialogue(micropython, live_root, live_server, dialogue, least):
    module = dialogue.partition(".")[0]
    # For MicroPython this is a plain connection: the host does the framing.
    url = live_server.urls["websocket"].replace("ws://", "nats://")
    code = f"import harness, {module}\nawait {dialogue}({url!r})\nharness.report()"
    command = [*npm.node(), HERE / "live.mjs", micropython, live_root, code]
    assert count(converse(command, live_server)) >= least
