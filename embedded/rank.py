"""Lets the code of a large module refer to its most frequent names with one byte.

An instruction contains the position of a name in a table, in one byte for the first 128 names and
in two for the others. The compiler fills the table in the order in which it meets the names, so the
module begins with a statement that is never executed and mentions the most frequent ones.
"""

from __future__ import annotations

import ast
from collections import Counter

from .names import Function, ScopedTransformer, Symbol, parameters

_FIRST = 128
_LONGEST = 10  # a str up to this length is a name for the compiler


def rank(tree: ast.Module) -> None:
    """Add the statement, if the module has so many names that it matters."""
    counter = _Counter()
    counter.visit(tree)
    if len(counter.names) <= _FIRST:
        return
    most: ast.expr = ast.Name("__name__", ast.Load())
    # By name if the counts are equal: every build must be the same.
    by_count = sorted(counter.names, key=lambda name: (-counter.names[name], name))
    for name in by_count[:_FIRST]:
        if name.isidentifier():
            most = ast.Attribute(most, name, ast.Load())
    never = ast.UnaryOp(ast.Not(), ast.Name("__name__", ast.Load()))
    tree.body.insert(0, ast.If(never, [ast.Expr(most)], []))


class _Counter(ScopedTransformer):
    """Counts the names in the code of a module; those of local variables are not in the code."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        self.names.update([node.name, *parameters(node.args)])
        return super().locals_of(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not self.is_local(node.id):
            self.names[node.id] += 1
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.names[node.attr] += 1
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.names[node.arg or ""] += 1
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and len(node.value) <= _LONGEST:
            self.names[node.value] += 1
        return node
