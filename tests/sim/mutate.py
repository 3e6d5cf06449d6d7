"""python -m tests.sim.mutate [module.py ...]: make mistakes everywhere in a module, one at a time.

The mutants of the tests (*_mutants.py) are mistakes that somebody might make. This makes mechanical
ones: other comparisons, `or` for `and`, numbers off by one, a call or a branch left out. Each has
to be found by the module's own tests or, if these let it pass, by the other tests of its room or
the modes. Those that nobody finds are listed; some of them change nothing that matters, others show
a missing test. equivalent.txt names the former with the reason; they do not count.

With --store the scores are kept in scores.json, from which docs/reliability.md has its table. With
--again only the mutants that were not found before are made: after new tests that is much faster.
With --own only the module's own tests and the modes look for them, so the score is a lower bound.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import resource
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.core import ROOT, name
from tests.cover import own_tests
from tests.sim import test_mutants
from tests.sim.test_mutants import Mutation, is_fresh, run_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = [
    *("jetstream/pull/consume.py", "jetstream/pull/fetch.py", "jetstream/pull/silence.py"),
    *(
        "jetstream/ordered/cursor.py",
        "jetstream/ordered/recreate.py",
        "jetstream/ordered/policy.py",
    ),
    *("jetstream/push/machine.py", "jetstream/publish/window_machine.py"),
    *("jetstream/kv/snapshot.py", "jetstream/kv/watcher.py"),
    *("natsproto/connection/machine.py", "natsproto/connection/lifecycle.py"),
    *("natsproto/connection/subscriptions.py", "natsproto/connection/requests.py"),
    *("natsproto/connection/servers.py", "natsproto/connection/outbound.py"),
]
MODES = {  # of a room, for what its tables let pass
    "jetstream/pull/": ["consume", "bytes", "fetch", "gone", "pinned"],
    "jetstream/ordered/": ["ordered", "ordered_fetch", "recreated", "ordered_push"],
    "jetstream/push/": ["push", "push_fc", "ordered_push"],
    "jetstream/publish/": ["publish", "forged", "fast"],
    "jetstream/kv/": ["kv_watch", "kv_keys"],
    "jetstream/objects/": ["objects"],
    "natsproto/connection/": ["consume", "forged", "service"],
}
# These compare the text of signatures, which is formatted differently in every mutant.
TEXT_TESTS = ("connection.test_calls",)
LONGEST = 30  # seconds of CPU time for one mutant: it may never end
MEMORY = 2 << 30  # nor stop to grow
SCORES = Path(__file__).with_name("scores.json")
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Mutant(NamedTuple):
    """A mistake: where it is, the line with it, and the whole text of the module."""

    path: str
    line: int
    where: str  # the function or class
    shown: str
    text: str


class Edits(ast.NodeTransformer):
    """Makes the edit with one number; counts them all."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.line = 0

    def _now(self, node: ast.AST) -> bool:
        self.count += 1
        if self.count - 1 != self.wanted:
            return False
        self.line = getattr(node, "lineno", 0)
        return True

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if type(node.ops[0]) in SWAPS and self._now(node):
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._now(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) in SWAPS and self._now(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) in SWAPS and self._now(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.Not) and self._now(node) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, (bool, int, float)) and self._now(node):
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        call = isinstance(node.value, (ast.Call, ast.Await))
        return ast.copy_location(ast.Pass(), node) if call and self._now(node) else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None and ast.unparse(node.target) != "TYPE_CHECKING":
            node.value = self.visit(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return node if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    before = ast.unparse(tree).splitlines()
    counting = Edits(-1)
    counting.visit(ast.parse(source))
    for number in range(counting.count):
        edit = Edits(number)
        # Parsing it again takes a third of the time of a deep copy.
        text = ast.unparse(ast.fix_missing_locations(edit.visit(ast.parse(source))))
        line = _shown(before, text.splitlines())
        yield Mutant(name(path), edit.line, _place(tree, edit.line), line, text)


def _shown(before: list[str], after: list[str]) -> str:
    """Return the line with the mistake; a call that is left out is named in a comment."""
    for old, new in zip(before, after):
        if new != old:
            return f"pass  # {old.strip()}" if new.strip() == "pass" else new.strip()
    return "(a line less)"


def _place(tree: ast.AST, line: int) -> str:
    """Return the innermost function or class with this line, such as Push.receive."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return ".".join(node.name for node in sorted(found, key=lambda node: node.lineno)) or "-"


def finders(path: Path, only_own: bool = False) -> list[str]:
    """Return the tables and the modes that look at a module: its own tables first."""
    own = own_tests(path)
    others = [each for folder in {test.parent for test in own} for each in folder.glob("test_*.py")]
    tests = own + sorted(each for each in others if each not in own)
    names = [name(each).removesuffix(".py").replace("/", ".") for each in tests]
    tables = [each.removeprefix("tests.").removeprefix("jetstream.") for each in names]
    tables = [each for each in tables if each not in TEXT_TESTS]
    modes = [found for room, found in MODES.items() if name(path).startswith(room)]
    count = len(own)
    return tables[:count] + (modes[0] if modes else []) + ([] if only_own else tables[count:])


def found_by(mutant: Mutant, only_own: bool = False) -> str:
    """Return who finds a mutant; "" if nobody does."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    path = ROOT / mutant.path
    module = mutant.path.removesuffix(".py").replace("/", ".").removeprefix("jetstream.")
    mutation = Mutation(module, "", "")
    mutation.text = mutant.text
    before = {key: value for key, value in sys.modules.items() if is_fresh(key)}
    sys.meta_path.insert(0, mutation)
    for key in before:
        if is_fresh(key, mutation.core):
            del sys.modules[key]
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)  # not by the clock: others may use the machine
    finder = ""
    try:
        for finder in finders(path, only_own):
            run_tables(finder) if "test_" in finder else test_mutants.run_seeds(finder)
        return ""
    except BaseException:  # whatever it is, it was found
        return finder
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.meta_path.remove(mutation)
        for key in [key for key in sys.modules if is_fresh(key)]:
            del sys.modules[key]
        sys.modules.update(before)


def _too_long(*_: object) -> None:
    raise TimeoutError("it does not end")


def unchanged(path: Path) -> Mutant:
    """Return the mutant without a mistake: nobody may find it, or all scores would be wrong."""
    text = ast.unparse(ast.parse(path.read_text(encoding="utf-8")))
    return Mutant(name(path), 0, "-", "(no change)", text)


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the mutants that change nothing that matters, each with the reason."""
    found: dict[tuple[str, str, str], str] = {}
    for block in EQUIVALENT.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            module, where = lines[0].split()
            found[module, where, lines[1].strip()] = " ".join(line.strip() for line in lines[2:])
    return found


class Score(NamedTuple):
    """The outcome for one module."""

    made: int
    equivalent: int
    left: list[Mutant]

    @property
    def share(self) -> float:
        """The found mutants in percent of those that could be found."""
        possible = self.made - self.equivalent
        return 100.0 * (possible - len(self.left)) / max(1, possible)


def score(module: str, jobs: int = 0, again: bool = False, only_own: bool = False) -> Score:
    """Make every mutant of a module, and let its tests and modes look for each."""
    every = list(mutants(ROOT / module))
    made = every
    if again:
        before = [tuple(each) for each in read_scores()[module]["left"]]
        made = [mutant for mutant in every if (mutant.where, mutant.shown) in before]
    known = equivalents()
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        look = partial(found_by, only_own=only_own)
        finder, *results = pool.map(look, [unchanged(ROOT / module), *made])
    if finder:
        raise RuntimeError(f"{finder} fails for {module} without a mistake")
    missed = [mutant for mutant, finder in zip(made, results) if not finder]
    left = [each for each in missed if (module, each.where, each.shown) not in known]
    same = [each for each in every if (module, each.where, each.shown) in known]
    return Score(len(every), len(same), left)


def read_scores() -> dict[str, Any]:
    """Return the scores that were kept."""
    scores: dict[str, Any] = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    return scores


def store(module: str, found: Score) -> None:
    """Keep a score, with the date and the version of Python."""
    scores = read_scores()
    scores[module] = {
        "mutants": found.made,
        "equivalent": found.equivalent,
        "left": [[mutant.where, mutant.shown] for mutant in found.left],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    SCORES.write_text(json.dumps(scores, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def table() -> list[str]:
    """Return the scores as the rows of docs/reliability.md."""
    rows = []
    for module, found in sorted(read_scores().items()):
        possible = found["mutants"] - found["equivalent"]
        share = 100.0 * (possible - len(found["left"])) / possible
        numbers = f"{found['mutants']} | {found['equivalent']} | {len(found['left'])}"
        rows.append(f"| `{module}` | {numbers} | {share:.1f} % | {found['date']} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutate")
    parser.add_argument("modules", nargs="*", help="such as jetstream/pull/consume.py")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one for each core")
    parser.add_argument("--again", action="store_true", help="only those that were not found")
    parser.add_argument("--own", action="store_true", help="only by its own tests and the modes")
    parser.add_argument("--store", action="store_true", help="keep the scores in scores.json")
    parser.add_argument("--table", action="store_true", help="print the kept scores, and end")
    options = parser.parse_args()
    if options.table:
        print("\n".join(table()))
        return 0
    for module in options.modules or USUAL:
        found = score(module, options.jobs, options.again, options.own)
        print(
            f"{module}: {found.made} mutants, {found.share:.1f} % found, "
            f"{found.equivalent} equivalent",
            flush=True,
        )
        for mutant in found.left:
            print(f"  {mutant.line} {mutant.where}: {mutant.shown}", flush=True)
        if options.store:
            store(module, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
