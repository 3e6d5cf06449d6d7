from __future__ import annotations

import re

import pytest

from tests.rules import (
    NOTES,
    ROOT,
    BadNotes,
    Collector,
    Place,
    read_code,
    read_rules,
    symbol_at,
    unknown_in_code,
)

pytest_plugins = ["pytester"]


def test_rules_are_the_lines_that_start_with_one(tmp_path):
    (tmp_path / "a.md").write_text(
        "# About **WIRE-9**\n\n- **WIRE-1** A frame. (source)\n- WIRE-2 is not.\n1. **Why?** So.\n"
    )
    (tmp_path / "b.md").write_text("- **D-ADR37-12** A pull, see **WIRE-1**. (our own)\n")
    rules = read_rules(tmp_path)
    assert {rule: rules[rule].place for rule in rules} == {
        "WIRE-1": "a.md:3",
        "D-ADR37-12": "b.md:1",
    }


def test_the_parts_of_a_rule(tmp_path):
    (tmp_path / "a.md").write_text(
        "## Pulls (pull.py)\n- **PULL-1** A pull (one). (ADR-37, Pulls (new); [10, 11], [103])\n"
    )
    rule = read_rules(tmp_path)["PULL-1"]
    assert rule.section == "Pulls (pull.py)"
    assert rule.text == "A pull (one)."
    assert rule.source == "ADR-37, Pulls (new); [10, 11], [103]"
    assert rule.recordings == [10, 11, 103]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- **WIRE-1** A. (s)\n- **WIRE-1** B. (s)\n", r"a.md:2: WIRE-1 is already at a.md:1"),
        ("- **wire-1** A. (s)\n", "a.md:1: a rule is written"),
        ("- **d-WIRE-1** A. (s)\n", "a.md:1: a rule is written"),
        ("* **WIRE-1** A. (s)\n", "a.md:1: a rule is written"),
        ("- **WIRE-1**\n", "a.md:1: a rule is written"),
        ("  - **WIRE-1** A. (s)\n", "a.md:1: a rule is written"),
        ("- **WIRE-1** A.\n", "a.md:1: WIRE-1 has no source"),
        ("- **WIRE-1** A. (our own)\n", "a.md:1: the id of our own decisions"),
        ("- **D-WIRE-1** A. (ADR-4; our own)\n", "a.md:1: the id of our own decisions"),
    ],
)
def test_notes_in_another_form_are_rejected(tmp_path, text, problem):
    (tmp_path / "a.md").write_text(text)
    with pytest.raises(BadNotes, match=problem):
        read_rules(tmp_path)


def test_markers_of_every_kind_count(pytester):
    pytester.makeini("[pytest]\nmarkers = rule(id, ...): rules\n")
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.rule("A-1")

        class TestClass:
            pytestmark = pytest.mark.rule("A-2")

            @pytest.mark.rule("A-3", "A-4")
            @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.rule("A-5"))])
            def test(self, x): ...
        """
    )
    collector = Collector()
    pytester.inline_run("--collect-only", plugins=[collector])
    test = "test_markers_of_every_kind_count.py::TestClass::test"
    assert collector.tests == {f"A-{number}": [test] for number in range(1, 6)}


def test_unknown_rule_fails_the_collection(pytester):
    pytester.makeini("[pytest]\nmarkers = rule(id, ...): rules\n")
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile("import pytest\n@pytest.mark.rule('WIRE-99999')\ndef test(): ...")
    run = pytester.runpytest()
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*unknown rules:*", "*::test: WIRE-99999"])


SOURCE = '''\
"""About A-1."""

# A-2: a comment above a constant
LIMIT = 1


class Thing:
    """A-3"""

    # A-4
    @property
    def size(self):
        if LIMIT:
            return 1  # A-5, and D-A-6
        return 0
'''


def test_lines_of_code_that_name_rules(tmp_path):
    (tmp_path / "natsproto" / "testing").mkdir(parents=True)
    (tmp_path / "natsproto" / "a.py").write_text(SOURCE)
    (tmp_path / "natsproto" / "testing" / "b.py").write_text("# A-7 does not count\n")
    assert read_code(tmp_path) == {
        "A-1": [Place("natsproto/a.py", 1, "")],
        "A-2": [Place("natsproto/a.py", 3, "LIMIT")],
        "A-3": [Place("natsproto/a.py", 8, "Thing")],
        "A-4": [Place("natsproto/a.py", 10, "Thing")],
        "A-5": [Place("natsproto/a.py", 14, "Thing.size")],
        "D-A-6": [Place("natsproto/a.py", 14, "Thing.size")],
    }


def test_a_line_past_the_end_has_no_symbol():
    assert symbol_at("# only a comment\n", 1) == ""


def test_a_rule_that_does_not_exist_is_found_by_its_prefix():
    code = {
        "WIRE-1": [Place("a.py", 1, "")],
        "WIRE-99": [Place("a.py", 2, "")],
        "UTF-8": [Place("a.py", 3, "")],
    }
    assert unknown_in_code(["WIRE-1"], code) == ["a.py:2: no such rule: WIRE-99"]


def test_files_that_the_notes_name_exist():
    names = [
        (page.name, path)
        for page in NOTES.glob("*.md")
        for path in re.findall(
            r"\b(?:natsproto|jetstream|tests|docs)/[\w/]+\.(?:py|md)", page.read_text()
        )
    ]
    assert len(names) > 50
    assert [each for each in names if not (ROOT / each[1]).exists()] == []
