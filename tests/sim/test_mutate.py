"""The tool that makes mechanical mistakes: what it makes, and who looks for them."""

from __future__ import annotations

from tests.core import ROOT
from tests.sim.mutate import MODES, USUAL, equivalents, finders, mutants, table
from tests.sim.test_mutants import TABLES


def test_every_mutant_is_another_text_with_one_change():
    path = ROOT / "natsproto/connection/timers.py"
    made = list(mutants(path))
    assert len(made) > 30
    assert len({each.text for each in made}) == len(made)
    for each in made:
        compile(each.text, each.path, "exec")
    shown = [each.shown for each in made]
    assert "while heap and heap[0][0] < now:" in shown
    assert "while heap or heap[0][0] <= now:" in shown
    assert "waitable.armed = None" not in shown
    assert not any("TYPE_CHECKING" in each for each in shown)


def test_tables_come_before_modes():
    found = finders(ROOT / "jetstream/pull/silence.py")
    assert found[:6] == ["pull.test_silence", *MODES["jetstream/pull/"]]
    assert "pull.test_consume" in found[6:]
    assert "connection.test_pings" in finders(ROOT / "natsproto/connection/pings.py")
    assert "connection.test_pings" in TABLES


def test_the_page_has_the_kept_scores():
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| `")] == table()


def test_equivalent_mutants_exist_and_have_a_reason():
    known = equivalents()
    modules = {module for module, _, _ in known}
    made = {(each.path, each.where, each.shown) for each in all_mutants(modules)}
    assert [each for each in known if each not in made] == []
    assert [each for each, reason in known.items() if len(reason) < 20] == []


def all_mutants(modules):
    return [mutant for module in modules for mutant in mutants(ROOT / module)]


def test_the_usual_modules_exist():
    assert [each for each in USUAL if not (ROOT / each).exists()] == []
