"""Moves the texts of errors and events to a file, from which a device reads one when it needs it.

A text takes its length and 20 bytes of memory from the start, and most are never shown. A text is
moved only if it is used when something fails: in a `raise`, in the arguments of an error, in an
assignment just before these, and in the `_text` of an event. The numbers of rules are left out of
errors, except for those that the packages compare with the rule of an error.

In the code, `text_of(NUMBER)` replaces the text. The last digit of the number is how many values
are formatted into the text, the digits before it are its line in the file. The first line of the
file is a checksum of the others, which the reader knows.

Errors must have texts without the file too, and the adapter takes an OSError for the loss of the
connection. So if the file is missing, cannot be read, or belongs to another build, the reader
returns a text that names the file and the number, with room for the values.
"""

from __future__ import annotations

import ast
import binascii
import itertools
import re

#: The module that reads the file, and the file beside it.
READER = "natsproto.texts"
FILE = "natsproto/texts.txt"
#: The number of a rule, as in spec_notes.
RULE = re.compile(r"(D-)?[A-Z0-9]+-\d+")

_SOURCE = """
def text(number):
    try:
        with open(__file__.rsplit("/", 1)[0] + "/texts.txt") as file:
            if file.readline() == {checksum!r}:
                for _ in range(number // 10):
                    line = file.readline()
                if line[-1:] == "\\n":
                    return line[:-1]
    except Exception:
        pass
    return "text %d of {file}" % number + ": %s" * (number % 10)
"""
_SHORTEST = 12  # characters; a shorter text takes as little as the code that reads it
_EVENT = "_text"  # the method of an event that returns its text
_VALUE = re.compile(r"%%|%[#0 +-]*\d*(?:\.\d+)?[a-zA-Z]")  # what `%` replaces in a text
_MOST_VALUES = 9  # in the last digit of a number


def move_texts(trees: dict[str, ast.Module]) -> str:
    """Change the modules, and add one that reads the file; return what is in the file."""
    errors = _errors(trees)
    compared = _compared(trees)
    found: dict[str, int] = {}
    for tree in trees.values():
        mover = _Mover(errors, compared, found)
        mover.visit(tree)
        if mover.moved:
            tree.body.insert(0, ast.ImportFrom(READER, [ast.alias("text", mover.NAME)], 0))
    lines = "".join(text + "\n" for text in found)
    checksum = f"{binascii.crc32(lines.encode()):08x}\n"
    trees[READER] = ast.parse(_SOURCE.format(checksum=checksum, file=FILE))
    return checksum + lines


def _values_in(text: str) -> int:
    """Return how many values are formatted into a text."""
    return len([found for found in _VALUE.findall(text) if found != "%%"])


def _errors(trees: dict[str, ast.Module]) -> set[str]:
    """Return the names of all exceptions that these modules define."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Exception"}
    while True:
        more = {name for name in bases if bases[name] & found}
        if more <= found:
            return found
        found |= more


def _compared(trees: dict[str, ast.Module]) -> set[str]:
    """Return the texts that these modules compare with something."""
    return {
        each.value
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


class _Mover(ast.NodeTransformer):
    """Replaces the texts of one module, and adds them to those found so far."""

    NAME = "text_of"

    def __init__(self, errors: set[str], compared: set[str], found: dict[str, int]) -> None:
        self._errors = errors
        self._compared = compared
        self._found = found  # the lines of the file, with their numbers
        self._depth = 0  # of nodes that are only reached when something fails
        self.moved = False

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        text = node.value
        if not isinstance(text, str) or text in self._compared:
            return node
        if RULE.fullmatch(text):
            return ast.Constant("")
        if not self._depth or len(text) < _SHORTEST:
            return node
        values = _values_in(text)
        if " " not in text or "\n" in text or values > _MOST_VALUES:
            return node
        self.moved = True
        line = self._found.setdefault(text, len(self._found) + 1)
        number = ast.Constant(line * 10 + values)
        return ast.Call(ast.Name(self.NAME, ast.Load()), [number], [])

    def _visit_failing(self, node: ast.AST) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self._visit_failing(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._visit_failing(node) if self._fails(node) else self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._visit_failing(node) if node.name in self._errors else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # The values of parameters are made when the module is loaded.
        arguments, node.args = node.args, ast.arguments([], [], None, [], [], None, [])
        failing = node.name in (_EVENT, "__str__", "__repr__")
        self._visit_failing(node) if failing else self.generic_visit(node)
        node.args = arguments
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                self._visit_before_errors(block)
        return super().generic_visit(node)

    def _visit_before_errors(self, block: list[ast.stmt]) -> None:
        """Visit assignments of texts to a variable that the next statement raises."""
        for statement, following in itertools.pairwise(block):
            failing = isinstance(following, ast.Raise) or (
                isinstance(following, (ast.Return, ast.Expr))
                and any(self._fails(each) for each in ast.walk(following))
            )
            if isinstance(statement, ast.Assign) and failing:
                self._visit_failing(statement)

    def _fails(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and getattr(node.func, "id", "") in self._errors
