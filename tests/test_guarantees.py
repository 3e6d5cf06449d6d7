"""Each guarantee of the README has tests that exist, are collected and run."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from natsproto.testing import AsyncioRunner, Server
from tests.core import ROOT
from tests.guarantees import PAGE, SUITES, BadPage, anchor, is_skipped, read_guarantees
from tests.rules import read_rules

GUARANTEES = read_guarantees(PAGE.read_text(encoding="utf-8"))
TESTS = sorted({test for each in GUARANTEES for test in each.tests})
# Other pages link to these.
ANCHORS = [
    "publishing",
    "consuming",
    "ordered-consumers",
    "snapshots",
    "closing",
    "objects",
    "bounded-memory",
    "invalid-input",
]


def test_the_sections_keep_their_anchors():
    sections = dict.fromkeys(anchor(each.section) for each in GUARANTEES)
    assert list(sections) == ANCHORS


def test_links_to_the_page_lead_to_a_section():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    links = [
        link
        for page in pages
        for link in re.findall(r"guarantees\.md#([\w-]+)", page.read_text(encoding="utf-8"))
    ]
    assert [link for link in links if link not in ANCHORS] == []


def readme_guarantees() -> list[str]:
    """Return the items of README's section, each as one text."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Guarantees\n")[2].partition("\n## ")[0]
    return re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)


def sections_of(item: str) -> list[str]:
    return re.findall(r"guarantees\.md#([\w-]+)", item)


def test_readme_promises_nothing_else():
    """Each guarantee of the README links to a section of the page, and the other way round."""
    assert sorted(map(sections_of, readme_guarantees())) == sorted([name] for name in ANCHORS)


def test_the_rules_exist():
    known = read_rules()
    assert [rule for each in GUARANTEES for rule in each.rules if rule not in known] == []


@pytest.fixture(scope="module")
def collected() -> list[str]:
    files = sorted({test.partition("::")[0] for test in TESTS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *files], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("test", TESTS)
def test_a_test_is_collected_and_runs(test, collected):
    path, _, name = test.partition("::")
    # "test_seeds[publish]" stands for "test_seeds[publish-0]" and so on.
    first = (f"{test}[", test.removesuffix("]") + "-") if name else f"{path}::"
    assert [line for line in collected if line == test or line.startswith(first)]
    assert not is_skipped((ROOT / path).read_text(encoding="utf-8"), name.partition("[")[0])


def test_the_checks_run_on_the_installed_server():
    with Server() as server:
        version = server.version
    skipped = [
        (name, reason)
        for checks, test in SUITES.values()
        for name in checks
        if f"{test}[asyncio-{name}]" in TESTS
        and (reason := checks[name].reason_to_skip(AsyncioRunner(), version))
    ]
    assert skipped == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("**A.**\n\n- Rules: PUB-1\n", "lacks a statement, a test or rules"),
        ("**A.**\n\n- [`tests/core.py`](../tests/core.py)\n", "lacks a statement, a test or rules"),
        ("**A.**\n\n- [`tests/core.py`](../tests/rules.py)\n- Rules: PUB-1\n", "is not a link to"),
        ("**A.**\n\n- some test\n- Rules: PUB-1\n", "is not a link to"),
        (
            "**A.**\n\n- [`natsproto/testing/checks/tls.py`](../natsproto/testing/checks/tls.py)"
            " `check_flush`\n- Rules: PUB-1\n",
            "there is no check check_flush in tls.py",
        ),
    ],
)
def test_incomplete_guarantees_are_noticed(text, problem):
    with pytest.raises(BadPage, match=problem):
        read_guarantees("# Page\n\n## Publishing\n\n" + text)


@pytest.mark.parametrize(
    "source",
    [
        "pytestmark = pytest.mark.skip\ndef test_a(): pass",
        "pytestmark = [pytest.mark.rule('A-1'), pytest.mark.skip('later')]\ndef test_a(): pass",
        "pytest.skip('later', allow_module_level=True)\ndef test_a(): pass",
        "@pytest.mark.skip(reason='later')\ndef test_a(): pass",
        "def test_a():\n    'A.'\n    pytest.skip('later')\n    assert True",
        "def test_a():\n    pytest.xfail('later')",
    ],
)
def test_unconditional_skips_are_noticed(source):
    assert is_skipped(source, "test_a")


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.skipif(OLD, reason='old')\ndef test_a(): pass",
        "def test_a():\n    if OLD:\n        pytest.skip('old')\n    assert True",
        "@pytest.mark.skip\ndef test_b(): pass\ndef test_a(): pass",
    ],
)
def test_skips_with_a_condition_are_allowed(source):
    assert not is_skipped(source, "test_a")
