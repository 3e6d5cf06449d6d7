"""The adapter for Pyodide, and the example of examples/browser, in headless Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.browser.serve import Handler, Site, pack
from natsproto.adapters.blocking import connect
from natsproto.testing import Server, free_port
from tests import npm
from tests.pyodide.control import Control
from tests.pyodide.test_node import given, runnable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["given"]  # a fixture

HERE = Path(__file__).parent
GROUPS = ["headers", "requests", "reconnect", "consume", "kv_watch"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""

pytestmark = [
    pytest.mark.skipif(not npm.node(), reason="playwright needs Node, and there is none"),
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium"),
]


class Answers(Handler):
    """Serves a page that can ask for servers."""

    def do_POST(self) -> None:
        request = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.control.answer(request).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def site() -> Iterator[Site]:
    """The page of this directory, with the tests."""
    with Site(npm.install(HERE) / "pyodide", HERE) as site, Control() as control:
        site.RequestHandlerClass = Answers
        site.control = control
        site.packages = pack("natsproto", "jetstream", "tests/pyodide")
        yield site
        site.shutdown()


def browse(url: str, *arguments: str) -> list[str | Path]:
    return [*npm.node(), HERE / "browse.mjs", npm.install(HERE), CHROMIUM, url, *arguments]


def run(site: Site, module: str, *arguments: Any) -> Any:
    """Return what `main` of this module returns."""
    command = browse(site.url, "run", module, json.dumps(arguments))
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_checks(site):
    passed, failed, skipped = run(site, "tests.pyodide.suite", runnable(GROUPS))
    assert (failed, skipped) == ({}, {})
    assert len(passed) > 50


@pytest.mark.rule("D-POOL-18", "D-OPT-19", "D-WS-12", "D-AUTH-14")
def test_what_only_this_adapter_does(site, given):
    # Chromium would need the authority in a database of its own, so the page trusts everyone.
    assert run(site, "tests.pyodide.host", given, ["certificates"]) == {}


class Page:
    """The chat page of the example, which `browse.mjs` operates."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            browse(url, "chat"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(self, command: str) -> None:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer == "done\n", self._process.communicate()[1]

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()  # the end of its input
        assert self._process.returncode == 0


def test_the_example():
    websocket = {"listen": f"127.0.0.1:{free_port()}", "no_tls": True}
    with (
        Server(jetstream=True, config={"websocket": websocket}) as server,
        Site(npm.install(HERE) / "pyodide") as site,
        connect(server.url) as client,
        Page(f"{site.url}/?server={server.urls['websocket']}") as page,
    ):
        sub = client.subscribe("chat.room")
        client.flush()
        page.do("state CONNECTED")
        page.do("send hello from the page")
        assert sub.next(timeout=10.0).data == b"hello from the page"
        page.do("wait hello from the page")
        server.kill()
        server.restart()
        client.publish("chat.room", b"hello again")  # held until there is a connection
        page.do("wait hello again")
        page.do("send and again")
        page.do("wait and again")
        site.shutdown()
