"""MicroPython itself, and the packages as a device gets them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from embedded.build import build
from natsproto.testing import Server
from natsproto.testing.server import HOST, free_port
from tests.core import ROOT
from tests.micropython.runner import install

HERE = Path(__file__).parent
CACHE = ROOT / ".venv" / "micropython"


@pytest.fixture(scope="session")
def micropython():
    """The locked version; from npm, which must not fail, if the cache does not have it."""
    if shutil.which("node") is None:
        pytest.skip("MicroPython needs Node, and there is none")
    locked = [HERE / "package.json", HERE / "package-lock.json"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in locked)).hexdigest()
    home = CACHE / digest[:16]
    if not home.exists():
        install(locked, home)
    return home / "node_modules/@micropython/micropython-webassembly-pyscript/micropython.mjs"


@pytest.fixture(scope="session")
def device(tmp_path_factory):
    """Return the directory that is the root of a device: compiled modules, and harness.py."""
    root = tmp_path_factory.mktemp("device")
    build(root)
    shutil.copy(HERE / "checks/harness.py", root)
    return root


@pytest.fixture(scope="session")
def live_root(device, tmp_path_factory):
    """Return the root of a device with the programs of live/ in it."""
    root = tmp_path_factory.mktemp("live") / "root"
    shutil.copytree(device, root)
    for path in (HERE / "live").glob("*.py"):
        shutil.copy(path, root)
    return root


@pytest.fixture(scope="session")
def live_server():
    """Return a server with a WebSocket; dialogues may kill and restart it."""
    websocket = {"host": HOST, "port": free_port(), "no_tls": True}
    with Server(jetstream=True, config={"websocket": websocket}) as server:
        yield server
