"""The adapter on a MicroPython with sockets: the dialogues of test_live.py over TCP, and TLS.

MicroPython's unix port is in no registry of packages that the other tests use, so this runs only
where it is installed, or where MICROPYTHON names it. TLS needs a port that was built with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from ssl import PEM_cert_to_DER_cert

import pytest

from natsproto.testing import Server
from natsproto.testing.certificates import Certificates
from natsproto.testing.server import HOST
from tests.micropython.runner import converse, count
from tests.micropython.test_live import DIALOGUES


@pytest.fixture(scope="session")
def unix():
    found = os.environ.get("MICROPYTHON") or shutil.which("micropython")
    if found is None:
        pytest.skip("no MicroPython with sockets is installed, and MICROPYTHON names none")
    return found


def command(unix: str, call: str) -> list[str]:
    module = call.partition(".")[0]
    code = f"import asyncio, harness, {module}\nasyncio.run({call})\nharness.report()"
    return [unix, "-X", "heapsize=4m", "-c", code]


@pytest.mark.parametrize(("dialogue", "least"), DIALOGUES)
def test_dialogue(unix, live_root, live_server, dialogue, least):
    talk = command(unix, f"{dialogue}({live_server.url!r})")
    assert count(converse(talk, live_server, cwd=live_root)) >= least


@pytest.mark.parametrize("first", [False, True], ids=["after INFO", "before INFO"])
def test_tls(unix, live_root, tmp_path, first):
    if subprocess.run([unix, "-c", "import ssl"], capture_output=True).returncode:
        pytest.skip("this MicroPython was built without ssl")
    tls = Certificates(tmp_path).server(HOST, handshake_first=first)
    authorities = [as_der(tmp_path / name) for name in ("ca.pem", "stranger.pem")]
    with Server(config={"tls": tls}) as server:
        talk = command(unix, f"core.secured({server.url!r}, {first}, *{authorities!r})")
        assert count(converse(talk, server, cwd=live_root)) == 4


def as_der(path: Path) -> str:
    """Write a certificate in the one form that every port can read; return its path."""
    der = path.with_suffix(".der")
    der.write_bytes(PEM_cert_to_DER_cert(path.read_text()))
    return str(der)
