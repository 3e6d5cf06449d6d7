"""Ties the rules of spec_notes to the code that implements them and the tests that verify them.

`python -m tests.rules` collects all tests and fails if a rule is named by no test or by no line of
the packages, or if a line of the packages names a rule that does not exist. An unknown rule in a
test is reported by every run of pytest, through conftest.py. docs/rules.md is the index of all
three.
"""

from __future__ import annotations

import ast
import re
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
NOTES = ROOT / "spec_notes"
PACKAGES = ("natsproto", "jetstream", "pyspark_jetstream")
ID = r"(?:D-)?[A-Z][A-Z0-9]*-\d+"
RULE = re.compile(rf"^- \*\*(?P<id>{ID})\*\* (?P<text>\S.*)$")
# Lines that look like rules but are written differently would otherwise be ignored silently.
LOOKALIKE = re.compile(r"^\s*[-*+]?\s*\*\*(?:[A-Za-z]-)?[A-Za-z0-9]+-\d+")
MENTION = re.compile(rf"(?<![\w-]){ID}(?![\w-])")
SOURCE = re.compile(r" \((?P<source>(?:[^()]|\([^()]*\))+)\)$")


class BadNotes(pytest.UsageError):
    """A page of spec_notes breaks the form that spec_notes/README.md describes."""


class Rule(NamedTuple):
    """One numbered line of spec_notes."""

    id: str
    page: str
    line: int
    section: str  # the heading above it
    text: str
    source: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def ours(self) -> bool:
        """Whether it is a decision of this project, not a demand of a specification or server."""
        return self.source.startswith("our own")

    @property
    def recordings(self) -> list[int]:
        """Return the numbers of the recorded dialogues that the source cites, as in [50]."""
        return [int(each) for each in re.findall(r"\d+", "".join(_cited(self.source)))]


def _cited(source: str) -> list[str]:
    # "[60] to [92]" is a range of recordings; only its ends are named.
    return [f"{numbers} " for numbers in re.findall(r"\[([\d, ]+)\]", source)]


class Place(NamedTuple):
    """A line that names a rule: its file, and the innermost function, class or constant."""

    path: str
    line: int
    symbol: str


def read_rules(notes: Path = NOTES) -> dict[str, Rule]:
    """Return every rule by its id, in the order of the pages."""
    rules: dict[str, Rule] = {}
    for page in sorted(notes.glob("*.md")):
        section = ""
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("#"):
                section = line.lstrip("# ")
            match = RULE.match(line)
            place = f"{page.name}:{number}"
            if match is None:
                if LOOKALIKE.match(line):
                    raise BadNotes(f"{place}: a rule is written `- **WIRE-12** text. (source)`")
                continue
            source = SOURCE.search(match["text"])
            if source is None:
                raise BadNotes(f"{place}: {match['id']} has no source in parentheses at its end")
            rule = Rule(
                match["id"],
                page.name,
                number,
                section,
                match["text"][: source.start()],
                source["source"],
            )
            if rule.ours != rule.id.startswith("D-"):
                raise BadNotes(f"{place}: the id of our own decisions, and only of these, has a D-")
            if rule.id in rules:
                raise BadNotes(f"{place}: {rule.id} is already at {rules[rule.id].place}")
            rules[rule.id] = rule
    return rules


def rules_of(item: pytest.Item) -> Iterable[str]:
    """Return the rules that a test names, on itself, its parameters, its class and its module."""
    return (rule for mark in item.iter_markers("rule") for rule in mark.args)


class Collector:
    """A pytest plugin that records which rules the collected tests name."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for rule in rules_of(item):
                names = self.tests.setdefault(rule, [])
                test = item.nodeid.partition("[")[0]  # without the parameters
                if test not in names:
                    names.append(test)


def collect_tests() -> dict[str, list[str]] | int:
    """Return the tests that name each rule, or the exit code of a collection that failed."""
    collector = Collector()
    with redirect_stdout(StringIO()) as output:  # the list of all tests matters only on failure
        code = pytest.main(["--collect-only", "-q"], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(output.getvalue())
        return int(code)
    return collector.tests


def read_code(root: Path = ROOT) -> dict[str, list[Place]]:
    """Return the lines of the packages that name something that looks like a rule."""
    found: dict[str, list[Place]] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            # natsproto.testing checks rules, and the table of a trace names them for people.
            parts = path.relative_to(root).parts
            if "testing" not in parts and parts[-2:] != ("trace", "rules.py"):
                for rule, place in _mentions(path, root):
                    found.setdefault(rule, []).append(place)
    return found


def _mentions(path: Path, root: Path) -> Iterable[tuple[str, Place]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for rule in MENTION.findall(line):
            symbol = symbol_at(text, number)
            yield rule, Place(path.relative_to(root).as_posix(), number, symbol)


@cache
def _spans(text: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and qualified name of what a file defines, outermost first."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = ""
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                name = child.name
            elif not prefix and isinstance(child, (ast.Assign, ast.AnnAssign)):
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                name = target.id if isinstance(target, ast.Name) else ""
            if not name:
                visit(child, prefix)
                continue
            decorators = getattr(child, "decorator_list", [])
            first = min([child.lineno, *(each.lineno for each in decorators)])
            spans.append((first, child.end_lineno or first, prefix + name))
            visit(child, f"{prefix}{name}.")

    visit(ast.parse(text), "")
    return spans


def symbol_at(text: str, line: int) -> str:
    """Return the innermost definition at a line; a comment above a definition belongs to it."""
    lines = text.splitlines()
    below = line
    while below <= len(lines) and lines[below - 1].strip().startswith("#"):
        below += 1
    for target in (line, below):
        inside = [name for first, last, name in _spans(text) if first <= target <= last]
        if inside:
            return inside[-1]
    return ""


def unknown_in_code(rules: Iterable[str], code: dict[str, list[Place]]) -> list[str]:
    """Return the lines that name a rule which does not exist, though its prefix does."""
    known = set(rules)
    prefixes = {rule.rpartition("-")[0] for rule in known}
    return [
        f"{place.path}:{place.line}: no such rule: {rule}"
        for rule, places in code.items()
        if rule not in known and rule.rpartition("-")[0] in prefixes
        for place in places
    ]


def check(rules: dict[str, Rule], code: dict[str, list[Place]], tests: dict[str, list[str]]) -> int:
    """Print the rules that nothing names, and return the exit code."""
    problems = [f"{rules[each].place}: no test names {each}" for each in rules if each not in tests]
    problems += [
        f"{rules[each].place}: no line of code names {each}" for each in rules if each not in code
    ]
    problems += unknown_in_code(rules, code)
    for problem in problems:
        print(problem)
    with_test = sum(rule in tests for rule in rules)
    with_line = sum(rule in code for rule in rules)
    print(f"{len(rules)} rules, {with_test} named by a test, {with_line} by a line of code")
    return 1 if problems else 0


def main() -> int:
    tests = collect_tests()
    return tests if isinstance(tests, int) else check(read_rules(), read_code(), tests)


if __name__ == "__main__":
    sys.exit(main())
