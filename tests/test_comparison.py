"""Every entry of natsproto in docs/comparison.md names tests that exist; README repeats rows.

The names are in the last column: checks of the conformance suite (`check_...`), test files, or
tests in a file (`tests/x.py::test_y`).
"""

from __future__ import annotations

import ast
import re

import pytest

from jetstream.testing import CHECKS as JETSTREAM_CHECKS
from natsproto.testing import CHECKS
from tests.core import ROOT

NAME = re.compile(r"`((?:check_|tests/)[\w/.:]+)`")
WORDS = {"P": "partly", "Y": "Y", "-": "-", "": ""}


def rows_of(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of the comparison, by its label."""
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text[text.index("| | natsproto |") :].partition("\n\n")[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}


ROWS = rows_of("docs/comparison.md")
LISTED = rows_of("README.md")


def exists(name: str) -> bool:
    """Return whether this is a check of the suite, a test, or a file with tests."""
    if name.startswith("check_"):
        short = name.removeprefix("check_")
        return short in CHECKS or short in JETSTREAM_CHECKS
    path, _, test = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return test in tests if test else any(each.startswith("test_") for each in tests)


@pytest.mark.parametrize("label", ROWS)
def test_an_entry_of_ours_is_bound_to_tests(label):
    ours, *_, proof = ROWS[label]
    names = NAME.findall(proof)
    assert ours == "Y"
    assert names, "no test is named"
    assert [each for each in names if not exists(each)] == []


@pytest.mark.parametrize("label", LISTED)
def test_a_row_of_readme_is_one_of_the_page(label):
    words = [WORDS[cell.partition(" ")[0]] for cell in ROWS[label][:-1]]
    assert LISTED[label] == words


def test_readme_has_ten_rows():
    assert len(LISTED) == 10
    assert len(ROWS) >= 40


@pytest.mark.parametrize("name", ["check_no_such", "tests/no_such.py", "tests/core.py"])
def test_what_does_not_count_as_a_test(name):
    assert not exists(name)
