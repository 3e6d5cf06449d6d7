"""The stubs of the blocking facades, and the names that editors and type checkers know."""

from __future__ import annotations

import json
import pkgutil
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import jetstream
import jetstream.blocking
import natsproto
from jetstream.api import attributes
from tests import facades
from tests.core import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

PACKAGES = [natsproto, jetstream, jetstream.blocking]
# In every module, for MicroPython and for type checkers.
EVERYWHERE = {"TYPE_CHECKING", "annotations"}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", facades.FACADES)
def test_stubs_are_up_to_date(name):
    stub = facades.path_of(name).read_text(encoding="utf-8")
    assert stub == facades.Stub(name).text(), "run python -m tests.facades"


def test_stubs_equal_the_runtime(tmp_path):
    pytest.importorskip("mypy")
    allowed = tmp_path / "allowed"
    # Every module has the flag, and a protocol exists for type checkers alone.
    names = [".*\\.TYPE_CHECKING", "jetstream\\.blocking\\.kv\\.Watching"]
    # Type checkers must reject the names that only raise an error with a hint.
    names += [f"jetstream\\.blocking\\.pull\\.JsMsg\\.{name}" for name in attributes.MESSAGE]
    push = "jetstream\\.blocking\\.push\\.PushMessages"
    names += [f"{push}\\.{name}" for name in attributes.PUSH_SUBSCRIPTION]
    allowed.write_text("".join(f"{name}\n" for name in names))
    modules = ["natsproto.blocking", "jetstream.blocking"]  # and the modules in it
    found = run("mypy.stubtest", *modules, "--concise", "--allowlist", str(allowed))
    assert found.returncode == 0, found.stdout + found.stderr


# Editors and type checkers are asked for every name that a package defines or imports, and for some
# that do not exist: they know those that dir() lists, and no other.


def candidates(package: ModuleType) -> list[str]:
    names = {*dir(package), *vars(package), *facades.Source(package.__name__).origins, "Nothing"}
    return sorted(names - EVERYWHERE - hidden_modules(package))


def hidden_modules(package: ModuleType) -> set[str]:
    """Return the modules that are not part of the public API; tools complete all that exist."""
    found = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return found - set(dir(package))


def public(names: set[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("_") or name == "__version__")


def questions(tmp_path: Path) -> tuple[Path, list[tuple[ModuleType, str]]]:
    """Return a file with an expression for each candidate, and the candidate of each line."""
    asked = [(package, name) for package in PACKAGES for name in candidates(package)]
    lines = [f"import {package.__name__}" for package in PACKAGES]
    lines += [f"print({package.__name__}.{name})" for package, name in asked]
    file = tmp_path / "questions.py"
    file.write_text("\n".join(lines) + "\n")
    return file, asked


def check_known(asked: list[tuple[ModuleType, str]], unknown: set[int]) -> None:
    """Compare the names without an error in their line with those that dir() lists."""
    assert unknown
    for package in PACKAGES:
        known = {
            name
            for line, (home, name) in enumerate(asked, len(PACKAGES) + 1)
            if home is package and line not in unknown
        }
        assert public(known) == public(set(dir(package)))


@pytest.fixture(scope="session")
def jedi(tmp_path_factory):
    """Provide Jedi with a separate cache, because another run may be writing the user's."""
    module = pytest.importorskip("jedi")
    module.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))
    return module


def test_jedi_completes_the_public_names(jedi):
    project = jedi.Project(str(ROOT))
    for package in PACKAGES:
        name = package.__name__
        script = jedi.Script(f"import {name}\n{name}.", project=project)
        found = {each.name for each in script.complete()}
        names = public(found - EVERYWHERE - hidden_modules(package))
        if package is jetstream.blocking:
            # Where there is a stub, Jedi adds the imports of the module itself.
            names = [name for name in names if name in dir(package)]
        assert names == public(set(dir(package)))


def test_mypy_knows_the_public_names(tmp_path):
    pytest.importorskip("mypy")
    file, asked = questions(tmp_path)
    found = run("mypy", "--strict", "--no-error-summary", "--show-absolute-path", str(file))
    # Compared by name only, because mypy's cache may contain the folder of an earlier run.
    lines = [line for line in found.stdout.splitlines() if file.name in line and "error" in line]
    check_known(asked, {int(line.split(":")[1]) for line in lines})


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs on Node")
def test_pyright_knows_the_public_names(tmp_path):
    pytest.importorskip("pyright")
    file, asked = questions(tmp_path)
    settings = {"include": [str(file)], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    project = ["--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(run("pyright", *project).stdout)
    lines = [each["range"]["start"]["line"] + 1 for each in report["generalDiagnostics"]]
    check_known(asked, set(lines))


IMPORTS = """\
from jetstream import JetStream
from jetstream.blocking import JetStream as Blocking
from natsproto.adapters import asyncio, blocking
async def f(js: JetStream, plain: Blocking):
    """
COMPLETIONS = [
    ("(await js.stream('S')).", "create_consumer"),
    ("(await js.publish('s')).", "seq"),
    ("(await js.key_value('B')).", "put"),
    ("(await js.stream('S')).cached_info.config.", "max_age"),
    ("(await (await js.consumer('S', 'C')).next()).", "ack"),
    ("plain.stream('S').", "create_consumer"),
    ("plain.publish('s').", "seq"),
    ("plain.key_value('B').", "put"),
    ("plain.consumer('S', 'C').consume().", "stop"),
    ("with blocking.connect() as client:\n        client.", "subscribe"),
    ("async with asyncio.connect() as client:\n        client.", "subscribe"),
]


@pytest.mark.parametrize(("text", "name"), COMPLETIONS)
def test_jedi_completes_results_of_calls(jedi, text, name):
    script = jedi.Script(IMPORTS + text, project=jedi.Project(str(ROOT)))
    assert name in [each.name for each in script.complete()]


@pytest.mark.parametrize("call", ["js.create_stream(", "plain.create_stream("])
def test_jedi_shows_parameters(jedi, call):
    script = jedi.Script(IMPORTS + call, project=jedi.Project(str(ROOT)))
    (signature,) = script.get_signatures()
    assert [each.name for each in signature.params] == ["config", "pedantic", "fields"]
