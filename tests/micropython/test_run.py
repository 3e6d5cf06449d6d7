"""The core behaves the same on MicroPython and CPython: the checks of checks/ run on both.

MicroPython comes from npm, as WebAssembly, and runs under Node.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.core import MODULES, ROOT, dotted, name

HERE = Path(__file__).parent
# The base of adapters does I/O, so it is not the core, but adapters for devices are built on it.
NAMES = ("__init__.py", "_options.py", "driver.py", "logs.py")
DRIVER = [ROOT / "natsproto/adapters" / name for name in NAMES]
CACHE = ROOT / ".venv" / "micropython"
PEERS = {"<": "server", ">": "client"}

PARTS = [  # function of checks/rows.py, at least so many checks
    ("encoding", 60),
    ("headers", 45),
    ("names", 65),
    ("text", 30),
    ("garbage", 60),
    ("records", 8),
]


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


def install(locked: list[Path], home: Path) -> None:
    """Whole or not at all, though others install it at the same time."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as directory:
        own = Path(directory, "own")
        own.mkdir()
        for file in locked:
            shutil.copy(file, own)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=own)
        try:
            own.rename(home)
        except OSError:
            if not home.exists():  # no other process was faster
                raise


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """Return the directory that is MicroPython's root: the core, the checks and the streams."""
    root = tmp_path_factory.mktemp("micropython")
    (root / "__future__.py").write_text("annotations = None\n")
    for path in MODULES + DRIVER:
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


def run(command: list[str | Path], **options: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_here(tree: Path, statements: list[str]) -> str:
    return run([sys.executable, "-B", "-c", "\n".join(statements)], cwd=tree)


@pytest.fixture(params=["cpython", "micropython"])
def python(request, tree):
    """Return a function that runs statements on either Python and returns their output."""
    if request.param == "cpython":
        return lambda *statements: run_here(tree, statements)
    command = ["node", HERE / "run.mjs", request.getfixturevalue("micropython"), tree]
    return lambda *statements: run([*command, *statements])


def count(output: str) -> int:
    """Return how many checks ran; none may have failed, and the number must be printed."""
    report = re.search(r"^(\d+) checks, (\d+) failed$", output, re.MULTILINE)
    assert report, f"no report:\n{output}"
    assert report[2] == "0", output
    return int(report[1])


@pytest.mark.parametrize(("part", "least"), PARTS)
def test_rows(python, part, least):
    assert count(python("import harness, rows", f"rows.{part}()", "harness.report()")) >= least


def test_lives(python):
    assert count(python("import harness, lives", "lives.run()", "harness.report()")) >= 35


def test_drivers(python):
    assert count(python("import harness, drivers", "drivers.run()", "harness.report()")) >= 118


def test_transcripts(python, tree):
    names = streams(tree)
    assert len({stream.partition(".")[0] for stream in names}) == 97
    runs = [f"transcripts.run({stream!r})" for stream in names]
    output = python("import harness, transcripts", *runs, "harness.report()")
    assert count(output) > 4 * len(names)  # whole, three random cuts, most byte by byte


def test_every_module_can_be_imported(python):
    modules = [dotted(path) for path in MODULES + DRIVER]
    printed = python(*[f"import {module}; print({module!r})" for module in modules])
    assert printed.split() == modules


LAZY = ["natsproto.connection.Connection", "jetstream.JetStream", "jetstream.kv.KeyValue"]


@pytest.mark.parametrize("name", LAZY)
def test_names_that_are_imported_on_first_use(python, name):
    package, _, leaf = name.rpartition(".")
    printed = python(f"from {package} import {leaf}", f"print({leaf}.__name__)")
    assert printed.strip() == leaf


def test_the_runtime_is_the_one_that_is_meant(python, request):
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
