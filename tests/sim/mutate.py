"""python -m tests.sim.mutate [module.py ...]: make mistakes everywhere in a module, one at a time.

The mutants of the tests (*_mutants.py) are mistakes that somebody might make. This makes mechanical
ones: other comparisons, `or` for `and`, numbers off by one, a call or a branch left out. Each has
to be found by the module's own tests or, if these let it pass, by the modes of its room. Those that
nobody finds are listed; some of them change nothing that matters, others show a missing test.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import resource
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    *("natsproto/connection/machine.py", "natsproto/connection/subscriptions.py"),
    *("natsproto/connection/requests.py", "natsproto/connection/servers.py"),
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
LONGEST = 30  # seconds for one mutant: it may never end
MEMORY = 2 << 30  # nor stop to grow
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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    counting = Edits(-1)
    counting.visit(copy.deepcopy(tree))
    for number in range(counting.count):
        edit = Edits(number)
        text = ast.unparse(ast.fix_missing_locations(edit.visit(copy.deepcopy(tree))))
        before = ast.unparse(tree).splitlines()
        shown = [new for new, old in zip(text.splitlines(), before) if new != old]
        yield Mutant(name(path), edit.line, (shown or ["(a line less)"])[0].strip(), text)


def finders(path: Path) -> list[str]:
    """Return the tables and the modes that look at a module."""
    tests = [name(each).removesuffix(".py").replace("/", ".") for each in own_tests(path)]
    tables = [each.removeprefix("tests.").removeprefix("jetstream.") for each in tests]
    modes = [found for room, found in MODES.items() if name(path).startswith(room)]
    return tables + (modes[0] if modes else [])


def found_by(mutant: Mutant) -> str:
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
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST)
    finder = ""
    try:
        for finder in finders(path):
            run_tables(finder) if "test_" in finder else test_mutants.run_seeds(finder)
        return ""
    except BaseException:  # whatever it is, it was found
        return finder
    finally:
        signal.alarm(0)
        sys.meta_path.remove(mutation)
        for key in [key for key in sys.modules if is_fresh(key)]:
            del sys.modules[key]
        sys.modules.update(before)


def _too_long(*_: object) -> None:
    raise TimeoutError("it does not end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutate")
    parser.add_argument("modules", nargs="*", help="such as jetstream/pull/consume.py")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one for each core")
    options = parser.parse_args()
    for module in options.modules or USUAL:
        made = list(mutants(ROOT / module))
        with ProcessPoolExecutor(options.jobs or os.cpu_count()) as pool:
            results = list(pool.map(found_by, made, chunksize=4))
        left = [mutant for mutant, finder in zip(made, results) if not finder]
        share = 100.0 * (len(made) - len(left)) / max(1, len(made))
        print(f"{module}: {len(made)} mutants, {share:.1f} % found", flush=True)
        for mutant in left:
            print(f"  {mutant.line}: {mutant.shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
