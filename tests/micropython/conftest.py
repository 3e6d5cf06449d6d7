"""MicroPython itself, and the packages as a device gets them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from embedded.build import build
from natsproto.testing import Server
from natsproto.testing.server import HOST, free_port
from tests import npm

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def micropython():
    """Return the locked version; npm installs it, which must not fail, unless it is cached."""
    if shutil.which("node") is None:
        pytest.skip("MicroPython needs Node, and there is none")
    return npm.install(HERE) / "@micropython/micropython-webassembly-pyscript/micropython.mjs"


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
