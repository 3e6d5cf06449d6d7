"""The explorer in headless Chromium, and its Python on MicroPython under Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jetstream.tools.explore import runtime, site
from jetstream.tools.explore.labs import consumers
from natsproto.errors import MissingExtra
from natsproto.testing import Server, free_port
from tests import npm
from tests.core import ROOT

HERE = Path(__file__).parent
MICROPYTHON = ROOT / "tests/micropython"
PYODIDE = ROOT / "tests/pyodide"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
WAIT = 240.0
# Screenshots are kept there, for people.
PICTURES = ROOT / ".venv/pictures"
CHOICE = {
    "reader": "consume",
    "limit": 6,
    "pause": 0.2,
    "seconds": 20.0,
    "messages": 40,
    "faults": [{"name": "cut", "at": 5.0, "seconds": 1.0}],
}


@pytest.fixture(scope="module")
def micropython() -> Path:
    if not npm.node():
        pytest.skip("MicroPython is installed by npm, and there is no Node")
    return npm.install(MICROPYTHON) / runtime.PACKAGE


@pytest.fixture(scope="module")
def folder(micropython, tmp_path_factory) -> Path:
    """The folder of static files."""
    made = tmp_path_factory.mktemp("site")
    site.build(made, micropython)
    return made


def test_the_versions_are_the_tested_ones():
    locked = json.loads((MICROPYTHON / "package.json").read_text(encoding="utf-8"))
    assert locked["dependencies"][runtime.PACKAGE] == runtime.VERSION
    locked = json.loads((PYODIDE / "package.json").read_text(encoding="utf-8"))
    assert locked["dependencies"][runtime.PYODIDE] == runtime.PYODIDE_VERSION


def test_the_site_is_complete(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    scripts = [path.name for path in folder.glob("*.js")]
    assert {"app.js", "style.css"} <= {path.name for path in folder.iterdir()}
    texts = [page, *[(folder / name).read_text(encoding="utf-8") for name in scripts]]
    addresses = {address for text in texts for address in re.findall(r"https?://[\w./]+", text)}
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, which is not fetched
    rules = json.loads((folder / "rules.json").read_text(encoding="utf-8"))
    sources = json.loads((folder / "core.json").read_text(encoding="utf-8"))
    for rule in ("PULL-2", "META-1", "WIRE-8"):
        file, line = rules[rule]["file"], rules[rule]["line"]
        assert rule in sources[file].split("\n")[line - 1]
    dialogues = json.loads((folder / "dialogues.json").read_text(encoding="utf-8"))
    assert len(dialogues) >= 94
    assert all(dialogue["server"] or dialogue["client"] for dialogue in dialogues)


def test_python_behaves_the_same_on_micropython(folder, tmp_path):
    """The same experiment has the same result, step by step."""
    for name, source in json.loads((folder / "core.json").read_text(encoding="utf-8")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    (tmp_path / "choice.json").write_text(json.dumps(CHOICE))
    labs = "jetstream.tools.explore.labs"
    program = f"from {labs} import consumers\nprint(consumers.run(open('/choice.json').read()))"
    command = [*npm.node(), MICROPYTHON / "run.mjs", folder / "micropython.mjs", tmp_path]
    statements = [f"from {labs} import lifecycle, wire", program]
    done = subprocess.run(
        [*command, *statements], capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    there = json.loads(done.stdout.splitlines()[-1])
    here = json.loads(consumers.run(json.dumps(CHOICE)))
    for steps in (there["steps"], here["steps"]):
        for step in steps:
            step["t"] = round(step["t"], 3)
            if step["kind"] in ("call", "response"):  # JSON whose fields have no order there
                del step["text"], step["wire"]
    assert there["steps"] == here["steps"]
    assert [row[1:] for row in there["taken"]] == [row[1:] for row in here["taken"]]


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")
def test_a_visit(micropython):
    seen = visit(PICTURES, ["--runtime", micropython])
    assert seen["ready"].startswith("MicroPython and the library were loaded in")
    assert seen["errors"] == []
    check(seen)


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")
def test_a_visit_without_micropython(micropython, tmp_path):
    """The page runs on Pyodide if MicroPython cannot be loaded."""
    pyodide = npm.install(PYODIDE) / runtime.PYODIDE
    seen = visit(tmp_path, ["--runtime", micropython, "--fallback", pyodide], "micropython")
    assert seen["ready"].startswith("Pyodide and the library were loaded in")
    assert [error.rpartition("/")[2] for error in seen["errors"]] == ["micropython.mjs"]
    check(seen)


def visit(pictures: Path, options: list[str | Path], *blocked: str):
    """Serve the page, use all of it in Chromium, and return what it shows."""
    pictures.mkdir(exist_ok=True)
    websocket = {"listen": f"127.0.0.1:{free_port()}", "no_tls": True}
    command = [sys.executable, "-m", "jetstream.tools.cli", "explore", "--port", "0", "--json"]
    with (
        Server(jetstream=True, config={"websocket": websocket}) as server,
        subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as explorer,
    ):
        try:
            url = json.loads(explorer.stdout.readline())["url"]
            where = [url, server.urls["websocket"], pictures, *blocked]
            done = subprocess.run(
                [*npm.node(), HERE / "visit.mjs", npm.install(HERE), CHROMIUM, *where],
                capture_output=True,
                text=True,
                timeout=WAIT,
                check=False,
            )
        finally:
            explorer.terminate()
        assert explorer.wait(WAIT) == 0
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check(seen):
    """Assert what the visitor saw."""
    assert seen["example"].startswith("252 bytes, 5 frames; the parser is between two frames")
    assert "idle_heartbeat" in seen["dialogue"]
    assert seen["frames"] == 8
    assert seen["pieces"] == seen["whole"]
    assert seen["error"] == "ProtocolError: unknown operation at byte 6: b'NOPE\\r'"
    assert seen["connected"].startswith("CONNECTED at 0.0 s; next deadline in")
    assert "messages in the queue: 1" in seen["connected"]
    assert seen["edge"] == 1
    assert "not legal in state CONNECTED" in seen["refused"]
    assert seen["dashed"] == "illegal"
    for summary in (seen["quiet"], seen["cut"], *seen["readers"].values()):
        stored, received = summary.split(" messages stored, ")
        assert received.startswith(f"{stored} received"), summary
    assert seen["faults"] == 1
    assert seen["moved"]
    assert "The client pulls from consumer" in seen["step"]
    assert "PULL-2" in seen["source"]
    assert "begins with ws://" in seen["scheme"]
    assert sum("stored as message" in line for line in seen["log"]) == 2
    assert any("reconnected" in line for line in seen["log"])
    assert seen["overflow"] <= 0


def test_no_runtime(tmp_path, monkeypatch):
    with pytest.raises(MissingExtra, match=r"has no micropython\.mjs"):
        runtime.find_runtime(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match="npm, which was not found"):
        runtime.find_runtime()


def test_npm_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake = tmp_path / "npm"
    fake.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(MissingExtra, match=r"npm could not install .*: no network"):
        runtime.find_runtime()
    assert not list((tmp_path / "cache/natsproto").iterdir())
