"""Merging modules, short names and texts in a file change what is stored, not what code does."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

import pytest

from embedded import merge as merging
from embedded import rename as renaming
from embedded.build import NAMES, ROOT, build, device_files, prepare, transform
from embedded.merge import merge
from embedded.rank import rank
from embedded.rename import rename
from embedded.texts import FILE, READER, RULE, move_texts
from tests.embedded.test_reach import trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def merged(program: str, *, divide: bool = False, **sources: str) -> dict[str, str]:
    """Return the package `p` after merging; a source is that of one of its modules."""
    named = {"p." + name: source for name, source in sources.items() if name != "p"}
    parsed = trees({"p": sources.get("p", ""), **named})
    found = merge(parsed, [ast.parse(program)], divide=divide)
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
    (
        "imports that may fail",
        "try:\n import x\nexcept ImportError as e: pass",
        "from . import a\ntry:\n import x\nexcept ImportError as e: y = e\ny = x",
        None,
    ),
]
AFTER = {
    "imports that may fail": "try:\n    import x\nexcept ImportError as e:\n    pass\ntry:\n"
    "    import x as x_2\nexcept ImportError as e_2:\n    y = e_2\ny = x_2",
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


def parts(monkeypatch, program: str, **sources: str) -> dict[str, str]:
    """Return the package after merging, with every module in a part of its own."""
    monkeypatch.setattr(merging, "_PART", 1)
    return merged(program, divide=True, **sources)


LOADS = "import gc\nimport p.merged\ngc.collect()\nimport p.merged2\ngc.collect()\n"


def test_a_divided_bundle_is_loaded_part_by_part(monkeypatch):
    found = parts(monkeypatch, "from p.b import y", a="x = [1]", b="from .a import x\ny = x")
    assert found == {
        "p.merged": "x = [1]",
        "p.merged2": "from p.merged import x\ny = x",
        "p.b": LOADS + "from p.merged2 import y",
    }


def test_a_function_imports_from_a_later_part_when_it_is_called(monkeypatch):
    a = "def f(x):\n from .b import y as x\n return x"
    found = parts(monkeypatch, "from p.a import f\nf()", a=a, b="from .a import f\ny = f")
    assert found["p.merged"] == "def f(x):\n    from p.merged2 import y as x\n    return x"
    assert found["p.merged2"] == "from p.merged import f\ny = f"


def test_a_module_of_a_later_part_cannot_be_an_object(monkeypatch):
    a = "def f():\n from . import b\n return b.y"
    with pytest.raises(ValueError, match=r"p\.a imports p\.b from a later part"):
        parts(monkeypatch, "from p.a import f\nf()", a=a, b="y = 1")


def renamed(source: str, program: str) -> str:
    found = {"p.m": ast.parse(source)}
    rename(found, [ast.parse(program)])
    return ast.unparse(found["p.m"])


RENAMES = [  # source, program, the source afterwards
    (
        "class Long:\n    def long(self): self.long()",
        "",
        "class a:\n\n    def a(self):\n        self.a()",
    ),
    ("class Long(Exception): pass", "", "class Long(Exception):\n    pass"),
    ("class Event: pass\nclass Long(Event): pass", "", None),
    ("class Event: pass\nclass Long(Event): pass\nclass Long: pass", "", None),
    ("def long(size): return size", "", "def a(b):\n    return b"),
    ("def long(size): return size", "long", "def long(a):\n    return a"),
    ("def long(size): return size", "f(size=1)", "def a(size):\n    return size"),
    ("def long(): getattr(x, 'long')", "", "def long():\n    getattr(x, 'long')"),
    ("def append(): x.append()", "", "def append():\n    x.append()"),
    ("import json\ndef dumps(separators): json.dumps(separators=1)", "", None),
    ("x.hidden", "", "x.hidden"),
    ("def long(*, size): return size", "long(**x)", "def long(*, size):\n    return size"),
    ("class A:\n    def __init__(self, size): self.size = size\nA(**x)", "A", None),
]


@pytest.mark.parametrize(("source", "program", "after"), RENAMES)
def test_names_are_short(monkeypatch, source, program, after):
    monkeypatch.setattr(renaming, "FIRMWARE", [])
    assert renamed(source, program) == (after or ast.unparse(ast.parse(source)))


def test_names_of_the_firmware_come_first_unless_they_are_in_use(monkeypatch):
    monkeypatch.setattr(renaming, "FIRMWARE", ["sqrt", "floor"])
    assert renamed("def long(size): x.floor", "") == "def sqrt(a):\n    x.floor"


SAME = [  # case, source; `result` is the same before and after
    ("getattr", "class A:\n def long(self): return 1\nresult = getattr(A(), 'long')()"),
    ("setattr", "class A: pass\na = A()\nsetattr(a, 'long', 5)\nresult = a.long"),
    (
        "slots",
        "class A:\n __slots__ = ('one', 'two')\n def __init__(self): self.one, self.two = 1, 2\n"
        "a = A()\nresult = [getattr(a, name) for name in a.__slots__]",
    ),
    (
        "nonlocal",
        "def count():\n total = 0\n def add(step):\n  nonlocal total\n  total += step\n"
        "  return total\n return add\nresult = count()(7)",
    ),
    ("global", "total = 1\ndef add(step):\n global total\n total += step\nadd(4)\nresult = total"),
    (
        "keywords",
        "def sub(*, first, second): return first - second\nresult = sub(second=1, first=9)",
    ),
    (
        "unpacked",
        "def sub(first, second): return first - second\nresult = sub(**{'second': 1, 'first': 9})",
    ),
    (
        "a variable and a parameter of other functions",
        "def f(first): return first + 1\ndef g(second): return second * 2\n"
        "def h(x):\n first = f(x)\n second = g(x)\n return first, second\nresult = h(4)",
    ),
    (
        "a parameter and a global",
        "def double(x): return 2 * x\ndef f(value): return double(value)\nresult = f(4)",
    ),
    (
        "a global in the body of a class",
        "def five(): return 5\nclass A:\n def first(self): return 1\n"
        " second = five()\nresult = A.second",
    ),
    (
        "a default in the body of a class",
        "five = 5\nclass A:\n def first(self): return 1\n"
        " def second(self, n=five): return n\nresult = A().second()",
    ),
    (
        "an overridden property",
        "class A:\n @property\n def kind(self): return self.plain()\n def plain(self): return 'A'\n"
        "class B(A):\n def other(self): return 'other'\n def plain(self): return 'B'\n"
        "result = B().kind, B().other()",
    ),
    (
        "attributes that other code assigns",
        "class A: pass\nclass B:\n def __init__(self): self.third = 3\na = A()\n"
        "a.first = 1\na.second = 2\nb = B()\nresult = a.first, a.second, b.third",
    ),
    (
        "two classes with the same attribute",
        "class A:\n def __init__(self): self.own, self.size = 1, 2\n"
        "class B:\n def __init__(self): self.size, self.more = 3, 4\n"
        "def total(each): return each.size\nresult = total(A()) + total(B()), A().own, B().more",
    ),
    (
        "an error in a handler",
        "class Wrong(Exception): pass\ndef f(value):\n try:\n  raise Wrong(value)\n"
        " except Wrong as error:\n  return error.args\nresult = f(3)",
    ),
    (
        "lambda",
        "def f(items, n): return list(map(lambda each: each + n, items))\nresult = f([1], 2)",
    ),
    (
        "comprehension",
        "def f(rows): return [cell for row in rows for cell in row]\nresult = f([[1], [2]])",
    ),
    (
        "a mixin",
        "class A:\n def one(self): return 1\nclass B:\n def two(self): return 2\n"
        "class C(A, B):\n def three(self): return self.one() + self.two()\nresult = C().three()",
    ),
]


@pytest.mark.parametrize(("case", "source"), SAME, ids=[row[0] for row in SAME])
def test_new_names_change_no_result(case, source):
    expected: dict[str, object] = {}
    exec(source, expected)
    found: dict[str, object] = {}
    after = renamed(source, "result")
    exec(after, found)
    assert found["result"] == expected["result"], after


def test_a_subclass_in_another_module_differs_from_its_base():
    """Also if it knows the base by another name."""
    base = (
        "class Base:\n def first(self): return 1\n @property\n def kind(self): return self.first()"
    )
    derived = "from p.m import Base as B\nclass Derived(B):\n def second(self): return self.kind"
    found = {"p.m": ast.parse(base), "p.n": ast.parse(derived)}
    names = rename(found, [])
    assert len({names[name] for name in ("first", "second", "kind")}) == 3
    assert names["Base"] in ast.unparse(found["p.n"])


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
def test_errors_and_events_keep_their_names(program):
    shown = {
        node.name
        for path in device_files()
        if re.fullmatch(r"\w+/(errors(/\w+)?|events)\.py", path)
        for node in classes([(ROOT / path).read_text(encoding="utf-8")])
        if not node.name.startswith("_")
    }
    files = transform([program], small=True)
    plain, small = (
        {
            node.name
            for node in classes(text for path, text in built.items() if path.endswith(".py"))
        }
        for built in (transform([program]), files)
    )
    kept = plain & shown - {"EventQueue", "Unread"}
    assert {"NatsError", "TimeoutExpired", "Connected"} <= kept & small
    # Of two classes with the same name, one has a number if they are in the same module now. A
    # class that is missing has no other name: without hints, less of the packages is reached.
    missing = {name for name in kept if not {name, name + "_2"} & small}
    assert missing & {line.split()[1] for line in files[NAMES].splitlines()} == set()
    assert len(missing) < len(kept) / 10


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
