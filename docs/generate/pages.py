"""What the generated pages share: links to rules, code and tests."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tests.rules import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rules import Place, Rule

MOST_PLACES = 3
MOST_TESTS = 2
# Unit tests say the most about a rule; those on real servers come last.
TEST_ORDER = ("tests/wire/", "tests/connection/", "tests/jetstream/")


def link(label: str, path: str, page: Path) -> str:
    """Return a link from a page to a file of the repository."""
    return f"[{label}]({os.path.relpath(ROOT / path, page.parent)})"


def slug(heading: str) -> str:
    """Return the fragment that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def rule_link(rule: Rule, page: Path, text: str = "") -> str:
    """Return a link to the section that a rule is in; its text is the rule's id by default."""
    target = os.path.relpath(ROOT / "spec_notes" / rule.page, page.parent)
    return f"[{text or rule.id}]({target}#{slug(rule.section)})"


def code_links(places: list[Place], page: Path) -> str:
    """Return links to the first places that name a rule, one for each definition."""
    seen: list[str] = []
    for place in places:
        text = link(f"`{place.path}`", place.path, page)
        if place.symbol:
            text += f" `{place.symbol}`"
        if text not in seen:
            seen.append(text)
    return ", ".join(seen[:MOST_PLACES])


def links_to_tests(tests: list[str], page: Path) -> str:
    """Return links to the first tests that name a rule, unit tests before others."""
    order = {prefix: number for number, prefix in enumerate(TEST_ORDER)}

    def rank(test: str) -> tuple[int, str]:
        return next((order[each] for each in TEST_ORDER if test.startswith(each)), 9), test

    texts = []
    for test in sorted(tests, key=rank)[:MOST_TESTS]:
        path, _, name = test.partition("::")
        texts.append(f"{link(f'`{path}`', path, page)} `{name.replace('::', '.')}`")
    return ", ".join(texts)
