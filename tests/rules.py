"""Ties the rules of spec_notes to the tests that prove them.

`python -m tests.rules` collects all tests and fails if a rule is named by none of them. That a test
names an unknown rule is found in every run of pytest, by conftest.py.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTES = Path(__file__).parent.parent / "spec_notes"
RULE = re.compile(r"^- \*\*(?P<id>[A-Z][A-Z0-9]*-\d+)\*\* \S", re.MULTILINE)
# Whatever looks like a rule but is not written as one would otherwise be lost without a word.
LOOKALIKE = re.compile(r"^\s*[-*+]?\s*\*\*[A-Za-z0-9]+-\d+", re.MULTILINE)


class BadNotes(pytest.UsageError):
    """A page of spec_notes breaks the form that spec_notes/README.md describes."""


def read_rules(notes: Path = NOTES) -> dict[str, str]:
    """Every rule and where it stands, as in {"WIRE-12": "wire.md:34"}."""
    rules: dict[str, str] = {}
    for page in sorted(notes.glob("*.md")):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{page.name}:{number}"
            match = RULE.match(line)
            if match is None:
                if LOOKALIKE.match(line):
                    raise BadNotes(f"{place}: a rule is written `- **WIRE-12** text. (source)`")
                continue
            rule = match["id"]
            if rule in rules:
                raise BadNotes(f"{place}: {rule} is already at {rules[rule]}")
            rules[rule] = place
    return rules


def rules_of(item: pytest.Item) -> Iterable[str]:
    """The rules that a test names, on itself, its parameters, its class and its module."""
    return (rule for mark in item.iter_markers("rule") for rule in mark.args)


class Collector:
    """A pytest plugin that notes which rules the collected tests name."""

    def __init__(self) -> None:
        self.named: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.named.update(rules_of(item))


def main() -> int:
    collector = Collector()
    with redirect_stdout(StringIO()) as output:  # a list of all tests; of use only if it failed
        code = pytest.main(["--collect-only", "-q"], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(output.getvalue())
        return int(code)
    rules = read_rules()
    missing = [rule for rule in rules if rule not in collector.named]
    for rule in missing:
        print(f"{rules[rule]}: {rule} is named by no test")
    print(f"{len(rules)} rules, {len(rules) - len(missing)} with a test")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
