"""The pages for readers of the code contain only names that exist.

On these pages a name in backticks that follows a path, in the same stop of the tour, list item,
table row or paragraph, is defined in that file.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.core import ROOT
from tests.test_rooms import ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
PAGES = ("design.md", "glossary.md", "tour.md")
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"\w[\w/]*/\w+\.py")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)?")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
STOP = re.compile(r"^## (\d+)\. .*?(?=^## )", re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"^(\d+)\. .*?(?=^\d+\. |^<|\Z)", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    """Return the list items, table rows and paragraphs of a page; the stops of the tour whole."""
    text = text_of(page)
    if page == "tour.md":
        return [stop[0] for stop in STOP.finditer(text)]
    return re.split(r"\n\n|\n(?=- |\d+\. |\|)", text)


def names_after_paths(block: str) -> Iterator[tuple[str, str]]:
    """Yield each name in backticks with the path that it follows."""
    path = ""
    for quoted in QUOTED.findall(block):
        if PATH.fullmatch(quoted):
            path = quoted
        elif path and NAME.fullmatch(quoted):
            yield path, quoted


def paths_in(text: str) -> list[str]:
    return [quoted for quoted in QUOTED.findall(text) if PATH.fullmatch(quoted)]


@cache
def defined_in(path: str) -> set[str]:
    """Return the names that a file defines: `name`, and `Class.name` for what a class has."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = _defined(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each}" for each in _defined(node)}
    return found


def _defined(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_names_exist_in_the_file_that_they_follow(page):
    named = [pair for block in blocks(page) for pair in names_after_paths(block)]
    assert len(named) >= 20
    assert [pair for pair in named if pair[1] not in defined_in(pair[0])] == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_are_links_to_the_files_they_name(page):
    text = text_of(page)
    links = re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", text)
    assert [link for link in links if link[1] != f"../{link[0]}"] == []
    assert [path for path in paths_in(text) if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("page", PAGES)
def test_fragments_lead_to_headings(page):
    for target, fragment in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text_of(page)):
        headings = HEADING.findall((DOCS / (target or page)).read_text(encoding="utf-8"))
        slugs = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        assert fragment in slugs


def test_the_design_lists_the_rooms_in_their_order():
    section = text_of("design.md").partition("## The rooms")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE) == ORDER


def test_the_glossary_is_in_alphabetical_order():
    terms = re.findall(r"^- \*\*(.+?)\*\*", text_of("glossary.md"), re.MULTILINE)
    assert len(terms) > 30
    assert terms == sorted(terms, key=str.lower)


def test_every_stop_has_a_question_and_every_question_an_answer():
    stops = list(STOP.finditer(text_of("tour.md")))
    answers = list(ANSWER.finditer(text_of("tour.md").partition("## Answers")[2]))
    numbers = [str(number) for number in range(1, 13)]
    assert [stop[1] for stop in stops] == [answer[1] for answer in answers] == numbers
    for stop, answer in zip(stops, answers, strict=True):
        assert stop[0].count("**Question:**") == 1
        known = set().union(*(defined_in(path) for path in paths_in(stop[0])))
        names = [each for each in QUOTED.findall(answer[0]) if NAME.fullmatch(each)]
        assert [each for each in names if each not in known] == []


def test_the_names_of_a_file():
    found = defined_in("natsproto/session.py")
    assert {"Session", "Session.settle", "settle", "check_count", "connection"} <= found
    assert "Session.check_count" not in found
