"""The core behaves the same on MicroPython and CPython: the checks of checks/ run on both.

MicroPython comes from npm, as WebAssembly, and runs under Node.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path

import pytest

from embedded.build import device_files
from tests.core import MODULES, ROOT, SIMULATION, dotted, name
from tests.micropython.runner import count, run

HERE = Path(__file__).parent
# They do I/O, so they are not the core, but devices need them.
DRIVER = [ROOT / path for path in device_files() if path.startswith("natsproto/adapters/")]
PEERS = {"<": "server", ">": "client"}

PARTS = [  # function of checks/rows.py, and the minimum number of checks
    ("encoding", 60),
    ("headers", 45),
    ("names", 65),
    ("text", 30),
    ("garbage", 60),
    ("records", 8),
]


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """Return the directory that is MicroPython's root: the core, the checks and the streams."""
    root = tmp_path_factory.mktemp("micropython")
    (root / "__future__.py").write_text("annotations = None\n")
    for path in MODULES + DRIVER + SIMULATION:
        (root / name(path)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / name(path))
    for path in (HERE / "checks").glob("*.py"):
        shutil.copy(path, root)
    (root / "streams").mkdir()
    for path in (ROOT / "tests/vectors").glob("*.json"):
        for stream, data in read_streams(path).items():
            (root / "streams" / stream).write_bytes(data)
    run_here(root, ["import transcripts", *[f"transcripts.write({s!r})" for s in streams(root)]])
    return root


def read_streams(transcript: Path) -> dict[str, bytes]:
    """Return the bytes of each peer and connection: {"02-msg-forms.A.server": b"INFO ..."}."""
    found: dict[str, bytes] = {}
    for entry in json.loads(transcript.read_text(encoding="utf-8"))["frames"]:
        if entry["dir"] in PEERS:
            stream = f"{transcript.stem}.{entry['conn']}.{PEERS[entry['dir']]}"
            found[stream] = found.get(stream, b"") + base64.b64decode(entry["b64"])
    return found


def streams(tree: Path) -> list[str]:
    return sorted(path.name for path in (tree / "streams").iterdir() if path.suffix != ".frames")


def run_here(tree: Path, statements: list[str]) -> str:
    return run([sys.executable, "-B", "-c", "\n".join(statements)], cwd=tree)


@pytest.fixture(params=["cpython", "micropython"])
def python(request, tree):
    """Return a function that runs statements on either Python and returns their output."""
    if request.param == "cpython":
        return lambda *statements: run_here(tree, statements)
    command = ["node", HERE / "run.mjs", request.getfixturevalue("micropython"), tree]
    return lambda *statements: run([*command, *statements])


@pytest.mark.parametrize(("part", "least"), PARTS)
def test_rows(python, part, least):
    assert count(python("import harness, rows", f"rows.{part}()", "harness.report()")) >= least


def test_lives(python):
    assert count(python("import harness, lives", "lives.run()", "harness.report()")) >= 35


def test_drivers(python):
    assert count(python("import harness, drivers", "drivers.run()", "harness.report()")) >= 118


SIMULATED = ["import harness, simulations", "simulations.run()", "harness.report()"]


def test_simulations(python, tree):
    """The trace of a simulation is the same on both, so seeds mean the same everywhere."""
    output = python(*SIMULATED)
    assert count(output) >= 12
    assert output == run_here(tree, SIMULATED)


def test_transcripts(python, tree):
    names = streams(tree)
    assert len({stream.partition(".")[0] for stream in names}) == 97
    runs = [f"transcripts.run({stream!r})" for stream in names]
    output = python("import harness, transcripts", *runs, "harness.report()")
    assert count(output) > 4 * len(names)  # whole, three random cuts, most byte by byte


def test_every_module_can_be_imported(python):
    modules = [dotted(path) for path in MODULES + DRIVER + SIMULATION]
    printed = python(*[f"import {module}; print({module!r})" for module in modules])
    assert printed.split() == modules


LAZY = ["natsproto.connection.Connection", "jetstream.JetStream", "jetstream.kv.KeyValue"]


@pytest.mark.parametrize("name", LAZY)
def test_names_that_are_imported_on_first_use(python, name):
    package, _, leaf = name.rpartition(".")
    printed = python(f"from {package} import {leaf}", f"print({leaf}.__name__)")
    assert printed.strip() == leaf


def test_the_selected_runtime_is_used(python, request):
    report = python("import sys", "print(sys.implementation.name)")
    assert f"[{report.strip()}]" in request.node.name


def test_a_failed_check_is_counted(python):
    output = python("import harness", "harness.check('sum', 1 + 1, 3)", "harness.report()")
    assert output.splitlines()[0] == "FAILED sum"
    with pytest.raises(AssertionError, match="1 checks, 1 failed"):
        count(output)


def test_an_exception_is_a_failure(python):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        python("1 // 0")
