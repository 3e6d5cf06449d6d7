"""docs/guarantees.md as data: each guarantee, the tests that prove it, and its rules."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import jetstream.testing
import natsproto.testing
from tests.conformance.runners import selected
from tests.core import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ITEM = re.compile(r"^- (.*(?:\n  .*)*)", re.MULTILINE)
LINK = re.compile(r"\[`([^`]+)`\]\(\.\./([^)]+)\)")
# The checks of each package, and the test that runs them.
SUITES = {
    "natsproto/testing/checks/": (
        natsproto.testing.CHECKS,
        "tests/conformance/test_conformance.py::test_conformance",
    ),
    "jetstream/testing/checks/": (
        jetstream.testing.CHECKS,
        "tests/conformance/test_jetstream.py::test_jetstream",
    ),
}


class Guarantee(NamedTuple):
    """A statement of the page.

    tests  as pytest names them; a file stands for all of its tests, and a name with brackets for
           those whose first parameter is in the brackets
    """

    section: str
    statement: str
    tests: list[str]
    rules: list[str]


class BadPage(AssertionError):
    """The page breaks its form."""


def anchor(heading: str) -> str:
    """Return the anchor that a renderer of Markdown makes of a heading."""
    return heading.lower().replace(" ", "-")


def read_guarantees(text: str) -> list[Guarantee]:
    """Return the guarantees of the page, in order."""
    parts = HEADING.split(text)
    return [
        _read(section, statement)
        for section, body in zip(parts[1::2], parts[2::2], strict=True)
        for statement in re.split(r"^(?=\*\*)", body, flags=re.MULTILINE)
        if statement.strip()
    ]


def _read(section: str, body: str) -> Guarantee:
    statement = body.partition("\n- ")[0].strip()
    tests: list[str] = []
    rules: list[str] = []
    for item in ITEM.findall(body):
        if item.startswith("Rules: "):
            rules += item.removeprefix("Rules: ").split(", ")
            continue
        link = LINK.match(item)
        if link is None or link[1] != link[2]:
            raise BadPage(f"{section}: {item!r} is not a link to the file that it names")
        tests += _tests(link[1], re.findall(r"`([^`]+)`", item[link.end() :]))
    if not statement.startswith("**") or not tests or not rules:
        raise BadPage(f"{section}: {body!r} lacks a statement, a test or rules")
    return Guarantee(section, statement, tests, rules)


def _tests(path: str, names: list[str]) -> list[str]:
    for folder, (checks, test) in SUITES.items():
        if path.startswith(folder):
            group = path.removeprefix(folder).removesuffix(".py")
            return [_check(checks, group, test, name) for name in names]
    return [f"{path}::{name}" for name in names] or [path]


def _check(checks: dict[str, natsproto.testing.Check], group: str, test: str, name: str) -> str:
    """Return the test that runs a check on asyncio, which runs all of them."""
    short = name.removeprefix("check_")
    if short not in checks or checks[short].group != group:
        raise BadPage(f"there is no check {name} in {group}.py")
    assert ("asyncio", short) in selected(checks)
    return f"{test}[asyncio-{short}]"


def is_skipped(source: str, name: str) -> bool:
    """Return whether the source skips a test, or all of its tests, whatever the circumstances."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and _skips(node.value):
            return True
        if isinstance(node, ast.Expr) and _skips(node.value):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            steps = [each.value for each in node.body if isinstance(each, ast.Expr)]
            return any(_skips(each) for each in [*node.decorator_list, *steps])
    return False


def _skips(node: ast.expr) -> bool:
    """Return whether it is `pytest.skip(...)` or `pytest.mark.skip`, with or without a reason."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(_skips(each) for each in node.elts)
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called) in ("pytest.skip", "pytest.mark.skip", "pytest.xfail")
