"""Merging modules, short names and texts in a file change what is stored, not what code does."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from embedded.build import ROOT, build, device_files, prepare, transform
from embedded.merge import merge
from embedded.rank import rank
from embedded.rename import rename
from embedded.texts import FILE, READER, RULE, move_texts
from tests.embedded.test_reach import trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def merged(program: str, **sources: str) -> dict[str, str]:
    """Return the package `p` after merging; a source is that of one of its modules."""
    named = {"p." + name: source for name, source in sources.items() if name != "p"}
    found = merge(trees({"p": sources.get("p", ""), **named}), [ast.parse(program)])
    return {
        name: ast.unparse(ast.fix_missing_locations(tree)).replace("\n\n", "\n")
        for name, tree in found.items()
    }


CASES = [  # case, module p.a, module p.b, the merged module
    ("a name of another module", "x = [1]", "from .a import x\ny = x", "x = [1]\ny = x"),
    ("under another name", "x = [1]", "from .a import x as z\ny = z", "x = [1]\ny = x"),
    ("two that are called alike", "x = [1]", "from . import a\nx = a.x\ny = x", None),
    ("local of the same name", "x = [1]", "from .a import x as z\ndef y(x): return z, x", None),
    ("in a comprehension", "x = [1]", "from .a import x as z\ny = [x + z for x in z]", None),
    ("import in a function", "x = [1]\ndef f():\n from .b import y\n y()", "def y(): 1", None),
    ("module of others", "import json\nx = json", "from .a import x\nimport json\ny = json", None),
    ("function in a function", "x = 1", "from .a import x\ndef y():\n def x(): 2\n return x", None),
    (
        "class and method",
        "def x(): 1",
        "from .a import x\nclass y:\n def x(self): return x()",
        None,
    ),
    (
        "import in an inner function",
        "x = 1",
        "def y(x):\n def z():\n  from .a import x\n  return x\n return x, z",
        None,
    ),
    ("global", "x = 1", "from . import a\nx = a.x\ndef y():\n global x\n x = 2", None),
]
AFTER = {
    "two that are called alike": "x = [1]\nx_2 = x\ny = x_2",
    "local of the same name": "x_2 = [1]\ndef y(x):\n    return (x_2, x)",
    "in a comprehension": "x_2 = [1]\ny = [x + x_2 for x in x_2]",
    "import in a function": "def y():\n    1\nx = [1]\ndef f():\n    y()",
    "module of others": "import json\nx = json\ny = json",
    "function in a function": "x = 1\ndef y():\n    def x():\n        2\n    return x",
    "class and method": "def x():\n    1\nclass y:\n    def x(self):\n        return x()",
    "import in an inner function": (
        "x_2 = 1\ndef y(x):\n    def z():\n        return x_2\n    return (x, z)"
    ),
    "global": "x = 1\nx_2 = x\ndef y():\n    global x_2\n    x_2 = 2",
}


@pytest.mark.parametrize(("case", "a", "b", "after"), CASES)
def test_modules_are_merged(case, a, b, after):
    program = "from p.b import y\nfrom p.a import x"
    found = merged(program, a=a, b=b)["p.merged"]
    assert sorted(found.splitlines()) == sorted((after or AFTER[case]).splitlines())


def test_what_is_imported_later_stays_a_module():
    a = "x = 1\ndef f():\n    from .b import g\n    return g()"
    b = "from . import a\nfrom .a import x\ndef g():\n    return a.x + x"
    found = merged("from p.a import x", a=a, b=b)
    assert found == {
        "p.merged": "x = 1\ndef f():\n    from p.b import g\n    return g()",
        "p.a": "from p.merged import x",
        "p.b": ("from p import merged as a\nfrom p.merged import x\ndef g():\n    return a.x + x"),
    }


def test_what_a_function_imports_that_the_program_calls_is_merged():
    a = "class A:\n    def f(self):\n        from .b import g\n        return g()"
    found = merged("from p.a import A\nA().f()", a=a, b="def g():\n    return 1")
    assert set(found) == {"p.merged", "p.a"}


def test_a_module_that_is_passed_on_cannot_be_merged():
    with pytest.raises(ValueError, match=r"uses the module p\.a as an object"):
        merged("from p.b import y", a="x = 1", b="from . import a\ny = a")


def renamed(source: str, program: str) -> str:
    found = {"p.m": ast.parse(source)}
    rename(found, [ast.parse(program)])
    return ast.unparse(found["p.m"])


RENAMES = [  # source, program, the source afterwards
    (
        "class A:\n    def long(self): self.long()",
        "",
        "class A:\n\n    def a(self):\n        self.a()",
    ),
    ("def long(size): return size", "", "def b(a):\n    return a"),
    ("def long(size): return size", "long", "def long(a):\n    return a"),
    ("def long(size): return size", "f(size=1)", "def a(size):\n    return size"),
    ("def long(): getattr(x, 'long')", "", "def long():\n    getattr(x, 'long')"),
    ("def append(): x.append()", "", "def append():\n    x.append()"),
    ("import json\ndef dumps(separators): json.dumps(separators=1)", "", None),
    ("x.hidden", "", "x.hidden"),
    ("def long(*, size): return size", "long(**x)", "def long(*, size):\n    return size"),
    ("class A:\n    def __init__(self, size): self.size = size\nA(**x)", "", None),
]


@pytest.mark.parametrize(("source", "program", "after"), RENAMES)
def test_names_are_short(source, program, after):
    assert renamed(source, program) == (after or ast.unparse(ast.parse(source)))


def test_an_attribute_and_a_global_of_different_names_share_one_only_if_neither_hides_the_other():
    source = "class A:\n    first = 1\n    second = 2\ndef second(): 3\ndef third(): A.first"
    found: dict[str, object] = {}
    exec(renamed(source, ""), found)
    functions = [name for name, value in found.items() if callable(value) and name != "A"]
    assert len(functions) == 2


TEXT = "the value is too large: %d"
MOVED = [  # source, the source afterwards
    (f"raise ValueError({TEXT!r} % x)", "raise ValueError(text_of(11) % x)"),
    (f"if x:\n    t = {TEXT!r}\n    raise E(t)", "if x:\n    t = text_of(11)\n    raise E(t)"),
    (f"t = {TEXT!r}\nf(t)", None),
    ("raise ValueError('short')", None),
    ("f(x, 'D-OPT-9')", "f(x, '')"),
    ("f('D-OPT-9', 'D-OPT-8')\ne.rule == 'D-OPT-9'", "f('D-OPT-9', '')\ne.rule == 'D-OPT-9'"),
    (f"class E(Exception):\n    pass\nx = E({TEXT!r})", None),
    (f"class A:\n\n    def _text(self):\n        return {TEXT!r}", None),
]


@pytest.mark.parametrize(("source", "after"), MOVED)
def test_texts_are_moved(source, after):
    found = {"p.m": ast.parse(source)}
    _, _, texts = move_texts(found).partition("\n")
    moved = ast.unparse(ast.fix_missing_locations(found["p.m"]))
    expected = after or (
        source if "class" not in source else source.replace(repr(TEXT), "text_of(11)")
    )
    assert moved.removeprefix("from natsproto.texts import text as text_of").strip() == expected
    assert texts == ("" if "text_of" not in expected else TEXT + "\n")


def test_only_numbers_of_rules_look_like_them():
    notes = "".join(path.read_text() for path in (ROOT / "spec_notes").glob("*.md"))
    known = set(re.findall(r"\b(?:D-)?[A-Z0-9]+-\d+\b", notes)) - {"UTF-8"}
    for path in device_files():
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            value = getattr(node, "value", None)
            if isinstance(value, str) and RULE.fullmatch(value):
                assert value in known, f"{path}: {value}"


VALUES = [  # text, its number
    ("nothing to format", 10),
    ("%s has %d of %.3g and %r, U+%04X", 15),
    ("it has a '%' without two digits", 10),
    ("100%% of %s are in use", 11),
]


@pytest.mark.parametrize(("text", "number"), VALUES)
def test_the_number_of_a_text_ends_with_the_number_of_its_values(text, number):
    found = {"p.m": ast.parse(f"raise ValueError({text!r})")}
    move_texts(found)
    assert ast.unparse(found["p.m"]).endswith(f"raise ValueError(text_of({number}))")


LINES = ["the first text", "the second one: %s of %s"]


def reader_of_texts(directory: Path) -> tuple[Callable[[int], str], str]:
    """Return the function that reads texts from this directory, and what the file must contain."""
    found = {"p.m": ast.parse("\n".join(f"raise E({line!r})" for line in LINES))}
    content = move_texts(found)
    names = {"__file__": f"{directory}/texts.mpy"}
    exec(compile(found[READER], "texts", "exec"), names)
    return names["text"], content


def test_the_reader_of_texts(tmp_path):
    text, content = reader_of_texts(tmp_path)
    (tmp_path / "texts.txt").write_text(content)
    assert [text(number) for number in (10, 22)] == LINES


BROKEN = [  # case, what is done to the file
    ("missing", None),
    ("of another build", lambda content: content.replace(b"first", b"other", 1)[1:]),
    ("empty", lambda content: b""),
    ("cut off before the text", lambda content: content[:20]),
    ("cut off in the text", lambda content: content[:-2]),
    ("not text", lambda content: b"\xff\xfe" * 50),
]


@pytest.mark.parametrize(("case", "change"), BROKEN)
def test_without_its_file_a_text_names_the_file_and_the_number(tmp_path, case, change):
    text, content = reader_of_texts(tmp_path)
    if change is not None:
        (tmp_path / "texts.txt").write_bytes(change(content.encode()))
    assert text(22) % ("x", 1.5) == "text 22 of natsproto/texts.txt: x: 1.5"


def test_a_port_without_file_names_has_texts_as_well(tmp_path):
    found: dict[str, ast.Module] = {}
    move_texts(found)
    names: dict[str, object] = {}
    exec(compile(found[READER], "texts", "exec"), names)
    assert names["text"](10) == "text 10 of natsproto/texts.txt"


def test_a_large_module_begins_with_its_most_frequent_names():
    tree = ast.parse("\n".join(f"x.name{i}" for i in range(200)) + "\nx.often" * 3)
    rank(tree)
    first = ast.unparse(ast.fix_missing_locations(tree)).splitlines()[:2]
    assert first[0] == "if not __name__:"
    assert first[1].strip().startswith("__name__.x.often.name0.")
    small = ast.parse("x.a")
    rank(small)
    assert ast.unparse(small) == "x.a"


PROGRAM = "from natsproto.adapters.micropython import connect\nconnect('nats://localhost')"


USERS = [PROGRAM, (ROOT / "examples/device_sensor.py").read_text()]


@pytest.mark.parametrize("program", USERS, ids=["core", "JetStream"])
def test_classes_keep_their_names(program):
    before = Counter(node.name for node in classes(transform([]).values()))
    small = transform([program], small=True)
    sources = [source for path, source in small.items() if path.endswith(".py")]
    after = {node.name for node in classes(sources)}
    # Of two classes with the same name, one has a number if they are in the same module now.
    same = {name for name, count in before.items() if count > 1}
    assert {name for name in after if name not in before} <= {name + "_2" for name in same}


def classes(sources) -> list[ast.ClassDef]:
    return [
        node
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    ]


def test_a_small_build_runs_on_python_as_well(tmp_path, monkeypatch):
    """The modules are ordinary ones: the parser of a build for a program parses."""
    program = "from natsproto.wire.parser import Parser\nParser().feed(b'')"
    for path, source in transform([program], small=True).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    for name in [name for name in sys.modules if name.split(".")[0] == "natsproto"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    from natsproto.wire.parser import Parser

    assert [type(frame).__name__ for frame in Parser().feed(b"PING\r\n+OK\r\n")] == ["Ping", "Ok"]
    with pytest.raises(Exception, match="unknown operation"):
        Parser().feed(b"NONSENSE\r\n")
    for name in [name for name in sys.modules if name.split(".")[0] == "natsproto"]:
        del sys.modules[name]


def test_the_texts_are_in_the_package_and_the_names_are_beside_it(tmp_path):
    output = tmp_path / "device"
    files = build(output, [PROGRAM])
    assert FILE in files
    assert FILE in (output / "package.json").read_text()
    assert "natsproto/merged.mpy" in files
    assert sorted(path.name for path in output.glob("*")) == ["natsproto", "package.json"]
    long = [line.split()[1] for line in (tmp_path / "device-names.txt").read_text().splitlines()]
    assert "take_effects" in long
    assert "connect" not in long


def test_modules_to_be_frozen_are_merged_but_keep_names_texts_and_rules(tmp_path):
    """Those are in flash then, and a frozen package cannot contain other files."""
    files = prepare(tmp_path, [PROGRAM])
    assert all(path.endswith(".py") for path in files)
    merged = (tmp_path / "natsproto/merged.py").read_text()
    assert "no server could be reached: %s" in merged
    assert "def take_effects" in merged
    assert "text_of" not in merged
    assert "'SUBJ-4'" in merged
