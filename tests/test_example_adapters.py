"""The adapters among the examples pass the conformance checks, and use only public names.

Each runs in a separate process: gevent and Twisted bring loops that this process should not have.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from jetstream.testing import CHECKS as JETSTREAM
from natsproto.testing import CHECKS
from tests.core import ROOT

LIBRARIES = ["gevent", "twisted"]
FILES = [f"{library}_{part}.py" for library in LIBRARIES for part in ("adapter", "runner")]
# JetStream is the same code on every adapter, and its checks take some minutes more; but running
# callbacks at the same time is the adapter's own work, and so are random numbers in reply subjects.
# `make adapters` runs all of them.
GROUPS = ["forgery", "run"]
CHOSEN = [*CHECKS, *(each.name for each in JETSTREAM.values() if each.group in GROUPS)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_checks_of_the_core_pass(library):
    pytest.importorskip(library)
    names = [f"--only={name}" for name in CHECKS] + [f"--group={group}" for group in GROUPS]
    run = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "jetstream.testing"),
            f"examples.{library}_adapter:connect",
            f"--runner=examples.{library}_runner:{library.title()}Runner",
            *names,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
    counts = re.search(r"^(\d+) passed(?:, (\d+) skipped)? in \d+ s$", run.stdout, re.MULTILINE)
    assert counts, run.stdout
    assert int(counts[1]) + int(counts[2] or 0) == len(CHOSEN)
    assert int(counts[1]) > 150


def private_names(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names with an underscore that a file uses as attributes, and those it defines."""
    used: set[str] = set()
    defined: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            defined.add(node.name)
    return {each for each in used if is_private(each)}, {
        each for each in defined if is_private(each)
    }


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def imports_of(tree: ast.AST) -> set[str]:
    """Return every part of every name that a file imports from natsproto and jetstream."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    ours = [name.split(".") for name in found if name.startswith(("natsproto.", "jetstream."))]
    return {part for parts in ours for part in parts}


@pytest.mark.parametrize("file", FILES)
def test_only_public_names_are_used(file):
    tree = ast.parse((ROOT / "examples" / file).read_text(encoding="utf-8"))
    assert not {part for part in imports_of(tree) if is_private(part)}
    used, defined = private_names(tree)
    assert used <= defined  # all of them are the file's own
    driver = ast.parse((ROOT / "natsproto/adapters/driver.py").read_text(encoding="utf-8"))
    assert defined.isdisjoint(private_names(driver)[1])  # nor does one replace a name of the driver


def test_private_names_are_found():
    tree = ast.parse("from natsproto.adapters import _sockets\nport._turn_began\nself._own = 1")
    assert "_sockets" in imports_of(tree)
    assert private_names(tree) == ({"_turn_began"}, {"_own"})


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adapter_is_short(library):
    adapter = ROOT / "examples" / f"{library}_adapter.py"
    assert len(adapter.read_text(encoding="utf-8").splitlines()) < 250
