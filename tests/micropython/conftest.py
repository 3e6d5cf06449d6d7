"""MicroPython itself, and the packages as a device gets them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from embedded.build import build
from natsproto.testing import Server
from natsproto.testing.server import HOST as ADDRESS
from natsproto.testing.server import free_port
from tests import npm
from tests.core import ROOT

HERE = Path(__file__).parent
HOST = ROOT / "jetstream/tools/explore/host.py"
EXAMPLE = ROOT / "examples/device_sensor.py"
PROGRAMS = [HOST, EXAMPLE, HERE / "checks/harness.py", *(HERE / "live").glob("*.py")]


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
def live_root(tmp_path_factory):
    """Return the root of a device with the programs of live/, and only what these can reach."""
    root = tmp_path_factory.mktemp("live")
    build(root, [path.read_text(encoding="utf-8") for path in PROGRAMS])
    add_programs(root)
    return root


def add_programs(root: Path) -> None:
    (root / "__future__.py").write_text("annotations = None\n")
    for path in PROGRAMS:
        shutil.copy(path, root)


@pytest.fixture(scope="session")
def live_server():
    """Return a server with a WebSocket; dialogues may kill and restart it."""
    websocket = {"host": ADDRESS, "port": free_port(), "no_tls": True}
    with Server(jetstream=True, config={"websocket": websocket}) as server:
        yield server
