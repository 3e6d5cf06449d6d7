from __future__ import annotations

import pytest

from tests.rules import BadNotes, Collector, read_rules

pytest_plugins = ["pytester"]


def test_rules_are_the_lines_that_start_with_one(tmp_path):
    (tmp_path / "a.md").write_text(
        "# About **WIRE-9**\n\n- **WIRE-1** A frame. (source)\n- WIRE-2 is not.\n1. **Why?** So.\n"
    )
    (tmp_path / "b.md").write_text("- **ADR37-12** A pull, see **WIRE-1**. (source)\n")
    assert read_rules(tmp_path) == {"WIRE-1": "a.md:3", "ADR37-12": "b.md:1"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- **WIRE-1** A. (s)\n- **WIRE-1** B. (s)\n", r"a.md:2: WIRE-1 is already at a.md:1"),
        ("- **wire-1** A. (s)\n", "a.md:1: a rule is written"),
        ("* **WIRE-1** A. (s)\n", "a.md:1: a rule is written"),
        ("- **WIRE-1**\n", "a.md:1: a rule is written"),
        ("  - **WIRE-1** A. (s)\n", "a.md:1: a rule is written"),
    ],
)
def test_notes_in_another_form_are_refused(tmp_path, text, complaint):
    (tmp_path / "a.md").write_text(text)
    with pytest.raises(BadNotes, match=complaint):
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
            @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("A-5"))])
            def test(self, x): ...
        """
    )
    collector = Collector()
    pytester.inline_run("--collect-only", plugins=[collector])
    assert collector.named == {"A-1", "A-2", "A-3", "A-4", "A-5"}


def test_unknown_rule_fails_the_collection(pytester):
    pytester.makeini("[pytest]\nmarkers = rule(id, ...): rules\n")
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile("import pytest\n@pytest.mark.rule('WIRE-99999')\ndef test(): ...")
    run = pytester.runpytest()
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*unknown rules:*", "*::test: WIRE-99999"])
