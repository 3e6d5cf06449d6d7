"""Each fix of fixes.py is undone in a copy of the repository: its tests fail there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixes import FIXES, Fix
from tests.forked import ForkedPytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PARTS = ("natsproto", "jetstream", "tests", "spec_notes")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("copy")
    unused = shutil.ignore_patterns("node_modules", "vectors")
    for part in PARTS:
        shutil.copytree(ROOT / part, made / part, ignore=unused)
    shutil.copy2(ROOT / "pyproject.toml", made)
    return made


@pytest.fixture(scope="module")
def forked(copy) -> Iterator[ForkedPytest]:
    with ForkedPytest(copy) as forked:
        yield forked


def undo(fix: Fix, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in fix.edits:
        assert text.count(old) == 1, f"{fix.file} does not have exactly one {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    # Python compiles a module again if its time, in whole seconds, or its size has changed.
    time = FIXES.index(fix)
    os.utime(path, (time, time))


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.defect)
def test_its_tests_fail_without_the_fix(fix, copy, forked):
    path = copy / fix.file
    undo(fix, path)
    code, output = forked.run(fix.tests)
    shutil.copy2(ROOT / fix.file, path)
    lines = output.splitlines()
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert not [line for line in lines if line.startswith("ERROR")], output
    for test in fix.tests:
        assert [line for line in lines if line.startswith(f"FAILED {test}")], output
    assert [line for line in lines if line.startswith("E  ") and fix.shows in line], output
