"""A build for one program leaves out what the program cannot reach, and nothing else."""

from __future__ import annotations

import ast

import pytest

from embedded.build import transform
from embedded.flatten import ENTRIES
from embedded.fold import fold
from embedded.reach import reach


def trees(sources: dict[str, str]) -> dict[str, ast.Module]:
    parsed = {name: ast.parse(source) for name, source in sources.items()}
    for name, tree in parsed.items():
        tree.is_package = any(other.startswith(name + ".") for other in sources)
    return parsed


def reached(program: str, **sources: str) -> dict[str, str]:
    """Return the modules of the package `p` that stay; a source is that of one of its modules."""
    named = {"p." + name: source for name, source in sources.items() if name != "p"}
    found = reach(trees({"p": sources.get("p", ""), **named}), [ast.parse(program)])
    return {name: ast.unparse(tree) for name, tree in found.items() if tree.body}


ALIASES = "class A:\n def __init__(self, b):\n  self.x = b.part.y\n  b.z = self.c\n def y(self): 1"
CASES = [  # case, program, module p.m, what stays of it
    ("function", "from p.m import f", "def f(): pass\ndef g(): pass", "def f():\n    pass"),
    ("a function that another calls", "import p.m\np.m.f()", "def g(): 1\ndef f(): g()", None),
    ("attribute of a module", "from p import m\nm.a", "a = 1\nb = 2", "a = 1"),
    ("unused import", "from p.m import f", "import os, sys\ndef f(): sys.exit()", None),
    ("method", "from p.m import A\nA().x()", "class A:\n def x(self): 1\n def y(self): 2", None),
    ("name in a text", "from p.m import A\ngetattr(A, 'x')", "class A:\n x = 1\n y = 2", None),
    ("base class", "from p.m import A", "class B: pass\nclass C: pass\nclass A(B): pass", None),
    ("method of a class that is not used", "from p.m import a\na.x()", "a = 1", "a = 1"),
    ("special methods", "from p.m import A", "class A:\n def __len__(self): return 0", None),
    ("alias in a class", "from p.m import A", "class A:\n x = 1\n __y__ = x", None),
    ("decorated in another way", "import p.m", "@register\ndef f(): pass", None),
    ("statements", "import p.m", "if x:\n    y = 1", None),
    ("alias", "from p.m import A\nA().x", ALIASES, None),
    ("unused alias", "from p.m import A", ALIASES, None),
]
STAYS = {
    "a function that another calls": "def g():\n    1\n\ndef f():\n    g()",
    "unused import": "import sys\n\ndef f():\n    sys.exit()",
    "method": "class A:\n\n    def x(self):\n        1",
    "name in a text": "class A:\n    x = 1",
    "base class": "class B:\n    pass\n\nclass A(B):\n    pass",
    "special methods": "class A:\n\n    def __len__(self):\n        return 0",
    "alias in a class": "class A:\n    x = 1\n    __y__ = x",
    "decorated in another way": "@register\ndef f():\n    pass",
    "statements": "if x:\n    y = 1",
    "alias": "class A:\n\n    def __init__(self, b):\n        self.x = b.part.y\n"
    "        b.z = self.c\n\n    def y(self):\n        1",
    "unused alias": "class A:\n\n    def __init__(self, b):\n        pass\n        b.z = self.c",
}


@pytest.mark.parametrize(("case", "program", "source", "stays"), CASES)
def test_of_a_module(case, program, source, stays):
    assert reached(program, m=source) == {"p.m": stays or STAYS[case]}


SPECIAL = "class A:\n async def __aenter__(self): 1\n async def __anext__(self): 2"


@pytest.mark.parametrize(
    ("statement", "stays"),
    [
        ("pass", "pass"),
        ("async with A(): pass", "__aenter__"),
        ("async for _ in A(): pass", "__anext__"),
        ("[x async for x in A()]", "__anext__"),
    ],
)
def test_special_methods_that_no_statement_calls_are_left_out(statement, stays):
    program = f"from p.m import A\nasync def f():\n {statement}"
    [source] = reached(program, m=SPECIAL).values()
    kept = [name for name in ("__aenter__", "__anext__") if name in source]
    assert kept == [stays] * (stays != "pass")


@pytest.mark.parametrize(
    ("program", "stays"),
    [
        ("import asyncio\nasyncio.run(A())", False),
        ("import asyncio as a\na.run(A())", False),
        ("import other\nother.a.run()", True),
        ("from other import a\na.run()", True),
        ("import a\na = A()\na.run()", True),
        ("import a\ndef f(a): a.run()", True),
    ],
)
def test_functions_of_other_modules_are_not_methods(program, stays):
    [source] = reached(f"from p.m import A\n{program}", m="class A:\n def run(self): 1").values()
    assert ("run" in source) == stays


def test_modules_that_only_unused_functions_import_are_left_out():
    m = "def f():\n    from .a import x\ndef g():\n    from . import b"
    found = reached("from p.m import f", m=m, a="x = 1\ny = 2", b="z = 1")
    assert found == {"p.m": "def f():\n    from .a import x", "p.a": "x = 1"}


def test_lazy_names_of_a_package():
    homes = "_HOMES = '''\n  a: X Y\n  b: Z\n'''\n__getattr__ = lazy(_HOMES)"
    found = reached("from p import X", p=homes, a="X = [1]\nY = [2]", b="Z = [3]")
    assert found == {"p": "_HOMES = 'a:X'\n__getattr__ = lazy(_HOMES)", "p.a": "X = [1]"}


def test_imports_are_shallow():
    """The entries import everything that they need, each module after those that it imports."""
    sources = transform([])
    for entry in ENTRIES:
        path = entry.replace(".", "/")
        source = sources.get(path + ".py") or sources[path + "/__init__.py"]
        order = [
            node.names[0].name
            for node in ast.parse(source).body
            if isinstance(node, ast.Import) and node.names[0].name.startswith(("nats", "jets"))
        ]
        assert len(order) == len(set(order)) > 9
        assert entry not in order
        if entry == "natsproto.adapters.micropython":
            part = [name for name in order if name in BOTTOM_UP]
            assert part == BOTTOM_UP


BOTTOM_UP = [
    "natsproto.errors",
    "natsproto.client",
    "natsproto.connection.states",
    "natsproto.connection.lifecycle",
    "natsproto.connection.machine",
    "natsproto.adapters.driver",
]


def folded(**sources: str) -> dict[str, str]:
    parsed = trees({"p": "", **{"p." + name: source for name, source in sources.items()}})
    fold(parsed)
    return {name[2:]: ast.unparse(tree) for name, tree in parsed.items() if name != "p"}


FOLDS = [  # module p.a, module p.b, the same afterwards
    ("A = 2\nb = A", "", "A = 2\nb = 2", ""),
    ("_A = 2\nb = _A", "", "b = 2", ""),
    ("_A = 2\nB = _A * 8\nc = B", "", "B = 2 * 8\nc = 16", ""),
    ("A = 'short'", "from .a import A\nb = A", "A = 'short'", "b = 'short'"),
    ("A = 'longer than ten'\nb = A", "", "A = 'longer than ten'\nb = A", ""),
    ("A = 1", "from . import a\nb = a.A", "A = 1", "from . import a\nb = 1"),
    ("A = 1", "from p.a import A as C\nB = C + 1\nd = B", "A = 1", "B = 1 + 1\nd = 2"),
    ("_A = 1", "from .a import _A, x\nb = _A", "_A = 1", "from .a import x\nb = 1"),
    ("A = 1\nA = 2\nb = A", "", "A = 1\nA = 2\nb = A", ""),
    ("A = [1]\nb = A", "", "A = [1]\nb = A", ""),
    ("A = f(1)\nB = True\nc = (A, B)", "", "A = f(1)\nB = True\nc = (A, B)", ""),
]


@pytest.mark.parametrize(("a", "b", "after_a", "after_b"), FOLDS)
def test_constants_are_folded(a, b, after_a, after_b):
    assert folded(a=a, b=b) == {"a": after_a, "b": after_b}


def test_a_program_of_the_core_leaves_jetstream_out():
    program = "from natsproto.adapters.micropython import connect\nconnect('').publish"
    found = transform([program])
    assert not [path for path in found if path.startswith("jetstream")]
    merged = found["natsproto/merged.py"]
    assert "def publish" in merged
    assert "def request_many" not in merged
    assert "request_many" in transform([])["natsproto/client.py"]
