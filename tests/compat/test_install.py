"""install(): programs that import `nats` run on the layer, unchanged."""

from __future__ import annotations

import subprocess
import sys

import pytest

from natsproto.testing import Server

INSTALL = "import natsproto.compat.nats\nnatsproto.compat.nats.install()\n"
PROGRAM = """
import asyncio
import nats
import nats.aio.client, nats.aio.errors, nats.aio.msg, nats.aio.subscription
import nats.errors, nats.js, nats.js.api, nats.js.client, nats.js.errors, nats.js.kv
import nats.js.manager, nats.js.object_store, nats.micro, nats.micro.request, nats.micro.service
import nats.nuid
from nats.aio.client import Client, Credentials, ErrorCallback, RawCredentials
from nats.js.api import ConsumerConfig, StreamConfig

async def main(url):
    nc = await nats.connect(url)
    assert isinstance(nc, Client) and Client is nats.NATS
    assert type(nc).__module__ == "natsproto.compat.nats.aio.client"
    try:
        await nc.request("nobody", timeout=5)
    except nats.errors.NoRespondersError:
        print("no responders")
    await nc.close()

asyncio.run(main(URL))
"""


def run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)


def test_a_program_that_imports_nats_runs_on_the_layer():
    with Server() as server:
        done = run(INSTALL + f"URL = {server.url!r}\n" + PROGRAM)
    assert (done.stdout, done.stderr) == ("no responders\n", "")


def test_a_second_call_does_nothing():
    done = run(INSTALL + INSTALL + "import nats; print(nats.__name__)")
    assert done.stdout == "natsproto.compat.nats\n"


def test_install_is_refused_when_nats_py_is_already_in_use():
    pytest.importorskip("nats")
    done = run("import nats\n" + INSTALL)
    assert done.returncode == 1
    assert "RuntimeError: nats was already imported from" in done.stderr
    assert "before anything imports nats" in done.stderr


def test_the_layer_is_not_imported_by_the_packages():
    text = "import sys, natsproto, jetstream, natsproto.adapters.asyncio\nprint([*sys.modules])"
    assert "compat" not in run(text).stdout
