"""Run the suites of nats-py, FastStream and taskiq-nats on natsproto.compat.nats.

    make compat
    make compat PEERS=~/peers
    python -m tests.compat.run --only JetStream

The packages come from the registry, into build/compat. Their suites are not part of them, so PEERS
names a directory with checkouts called nats.py, faststream and taskiq-nats; what is missing there
is cloned from GitHub at the versions in SUITES. A test that fails and is not in kept.py fails the
run, and so does an entry of kept.py whose test passes.

`--baseline`, which `make compat` uses, runs each suite on nats-py as well, in the same environment
and against the same server, and writes the table of both into docs/compat.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from natsproto.testing import Server
from natsproto.testing.server import find_server
from tests.compat.kept import KEPT

ROOT = Path(__file__).parent.parent.parent
BUILD = ROOT / "build" / "compat"
PAGE = ROOT / "docs" / "compat.md"
BEGIN, END = "<!-- begin of the table -->", "<!-- end of the table -->"
PACKAGES = [
    "nats-py==2.16.0",
    "faststream[nats,otel,prometheus,cli,rabbit]==0.7.4",
    "taskiq-nats==0.7.0",
    "aiofiles",
    "aiohttp",
    "anyio",
    "dirty-equals",
    "fastapi",
    "freezegun",
    "httpx",
    "nkeys",
    "opentelemetry-sdk",
    "pydantic-settings",
    "PyNaCl",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "python-multipart",
    "pyyaml",
    "wsproto",
]


@dataclass
class Suite:
    """A part of a project's tests.

    needs_server: whether the tests expect a server with JetStream on port 4222
    apart: copy the tests, because the package of the checkout would hide the installed one
    """

    project: str
    part: str
    paths: list[str]
    source: str
    needs_server: bool = False
    apart: bool = False
    flags: list[str] = field(default_factory=list)


_NATS_PY = ("nats.py", "https://github.com/nats-io/nats.py@06b6778")
_FASTSTREAM = "https://github.com/ag2ai/faststream@0.7.4"
_TASKIQ = "https://github.com/taskiq-python/taskiq-nats@1d1703a"
_AUTO = ["-o", "asyncio_mode=auto"]


def _nats_py(part: str, *files: str) -> Suite:
    paths = [f"nats/tests/{name}.py" for name in files]
    return Suite(_NATS_PY[0], part, paths, _NATS_PY[1], flags=["--rootdir", "nats", *_AUTO])


SUITES = [
    _nats_py("client", "test_client", "test_client_async_await", "test_client_v2", "test_nuid"),
    _nats_py("nkeys", "test_client_nkeys"),
    _nats_py("websocket", "test_client_websocket", "test_custom_headers_websocket"),
    _nats_py("JetStream", "test_js"),
    _nats_py("micro", "test_micro_service"),
    Suite(
        "faststream",
        "nats",
        [
            "tests/brokers/nats",
            "tests/docs/nats",
            "tests/examples/nats",
            "tests/opentelemetry/nats",
            "tests/prometheus/nats",
            "tests/asgi/nats",
            "tests/asyncapi/nats",
        ],
        _FASTSTREAM,
        needs_server=True,
        flags=_AUTO,
    ),
    Suite(
        "taskiq-nats",
        "all",
        ["tests"],
        _TASKIQ,
        needs_server=True,
        apart=True,
        flags=["-p", "no:asyncio"],  # they use the plugin of anyio
    ),
]


@dataclass
class Outcome:
    """The results of a suite: the names of tests by their outcome."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass
class Row:
    """The results of a suite on the layer and, with `--baseline`, on nats-py."""

    suite: Suite
    ours: Outcome
    theirs: Outcome | None = None


def main() -> int:
    """Run the suites; return 1 if a result is not the expected one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=BUILD / "peers")
    parser.add_argument("--only", default="", help="a project, or a part such as JetStream")
    parser.add_argument(
        "--baseline", action="store_true", help="run on nats-py as well, and write the table"
    )
    options = parser.parse_args()
    python = make_environment()
    rows: list[Row] = []
    for suite in SUITES:
        if options.only in ("", suite.project, suite.part):
            checkout = find_checkout(options.peers.expanduser(), suite)
            row = Row(suite, run_twice(python, checkout, suite, False))
            print(f"{suite.project} {suite.part}: {show(row.ours)}", flush=True)
            if options.baseline:
                row.theirs = run_twice(python, checkout, suite, True)
                print(f"{suite.project} {suite.part} on nats-py: {show(row.theirs)}", flush=True)
            rows.append(row)
    if options.baseline and not options.only:
        write_table(rows)
    return report(rows)


def make_environment() -> Path:
    """Create the environment of the peers; return its Python."""
    python = BUILD / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(BUILD / "venv", with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--editable", f"{ROOT}[server]", *PACKAGES], check=True)
    return python


def find_checkout(peers: Path, suite: Suite) -> Path:
    """Return the checkout of a project; clone it if there is none."""
    checkout = peers / suite.project
    if not checkout.exists():
        url, _, version = suite.source.rpartition("@")
        subprocess.run(["git", "clone", "--quiet", url, str(checkout)], check=True)
        subprocess.run(["git", "-C", str(checkout), "checkout", "--quiet", version], check=True)
    return checkout


def run_twice(python: Path, checkout: Path, suite: Suite, on_nats_py: bool) -> Outcome:
    """Run a suite, and once more only the tests that failed unexpectedly.

    Many have limits of a few seconds, which they exceed on a busy machine. No failure of nats-py
    is expected.
    """
    outcome = run(python, checkout, suite, on_nats_py)
    new = [name for name in outcome.failed if on_nats_py or name not in KEPT]
    if new:
        functions = sorted({name.partition("[")[0].rpartition(".")[2] for name in new})
        again = run(python, checkout, suite, on_nats_py, functions)
        passed = [name for name in new if name in again.passed]
        outcome.failed = [name for name in outcome.failed if name not in passed]
        outcome.passed += passed
    return outcome


def run(
    python: Path, checkout: Path, suite: Suite, on_nats_py: bool, only: list[str] | None = None
) -> Outcome:
    """Run a suite in its checkout, or only the functions of these names."""
    server = Path(find_server())
    environment = {
        **os.environ,
        "PATH": f"{server.parent}:{os.environ['PATH']}",
        # Not ROOT: `tests` is the package of the other project there.
        "PYTHONPATH": f"{Path(__file__).parent / 'plugin'}:{checkout / 'nats'}",
        "NATS_SERVER_VERSION": "v2.15.1",
    }
    plugin = [] if on_nats_py else ["-p", "on_natsproto"]
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "junit.xml"
        if suite.apart:
            shutil.copytree(checkout / "tests", Path(folder) / "tests")
            checkout = Path(folder)
        command = [str(python), "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-q"]
        command += ["--tb=native", "--timeout=60", "-o", "addopts="]
        command += ["-k", " or ".join(only)] if only else []
        command += [*suite.flags, "--junitxml", str(found), *suite.paths]
        kind = ("-nats-py" if on_nats_py else "") + ("-again" if only else "")
        with (BUILD / f"{suite.project}-{suite.part}{kind}.log").open("wb") as output:
            if suite.needs_server:
                with Server(jetstream=True, port=4222):
                    subprocess.run(command, cwd=checkout, env=environment, stdout=output)
            else:
                subprocess.run(command, cwd=checkout, env=environment, stdout=output)
        return read(found)


def read(path: Path) -> Outcome:
    """Return the outcomes in a report."""
    outcome = Outcome()
    kinds: dict[tuple[str, str], str] = {}
    for case in ET.parse(path).iter("testcase"):
        test = case.get("classname", ""), case.get("name", "")
        tags = {child.tag for child in case}
        bad = "failed" if tags & {"failure", "error"} else ""
        if kinds.get(test) != "failed":  # a test with several failed parts occurs several times
            kinds[test] = bad or ("skipped" if "skipped" in tags else "passed")
    for (place, name), kind in kinds.items():
        getattr(outcome, kind).append(f"{place.rpartition('.')[2]}.{name}")
    return outcome


def show(outcome: Outcome) -> str:
    """Return the counts of a suite."""
    return (
        f"{len(outcome.passed)} passed, {len(outcome.failed)} failed, "
        f"{len(outcome.skipped)} skipped"
    )


def write_table(rows: list[Row]) -> None:
    """Write the table and the reasons into the page."""
    lines = [
        "| suite | tests | nats-py passes | the layer passes | share |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [f"| {row.suite.project}: {row.suite.part} {count([row])}" for row in rows]
    lines.append(f"| all {count(rows)}")
    lines += ["", "These tests fail on the layer, for these reasons:", ""]
    lines += ["| test | on nats-py | reason |", "|---|---|---|"]
    fail_there = {name for row in rows if row.theirs for name in row.theirs.failed}
    for name in sorted({name for row in rows for name in row.ours.failed}):
        there = "fails" if name in fail_there else "passes"
        lines.append(f"| `{name}` | {there} | {KEPT.get(name, '?')} |")
    text = PAGE.read_text()
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{tail}")


def count(rows: list[Row]) -> str:
    """Return the cells with the sums of these rows: tests, passes of both, and the share."""
    ours = sum(len(row.ours.passed) for row in rows)
    total = ours + sum(len(row.ours.failed) for row in rows)
    theirs = sum(len(row.theirs.passed) for row in rows if row.theirs)
    return f"| {total} | {theirs} | {ours} | {100 * ours / total:.0f} % |"


def report(rows: list[Row]) -> int:
    """Print the results that are not the expected ones; return 1 if there are any."""
    failed = {name for row in rows for name in row.ours.failed}
    passed = {name for row in rows for name in row.ours.passed}
    new = sorted(failed - set(KEPT))
    gone = sorted(passed & set(KEPT))
    for name in new:
        print(f"fails, and has no reason in tests/compat/kept.py: {name}")
    for name in gone:
        print(f"passes, although it is in tests/compat/kept.py: {name}")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
