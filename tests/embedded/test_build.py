"""The files for devices: their lists, and what stripping removes and keeps."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys

import pytest

from embedded.build import (
    FREEZE,
    MANIFEST,
    ROOT,
    device_files,
    manifest,
    prepare,
    transform,
    version,
)
from embedded.strip import strip
from natsproto.wire.record import Record
from tests.core import MODULES, name


def test_the_package_of_the_repository_is_current():
    assert MANIFEST.read_text() == manifest(device_files(), future=True), (
        "run python -m embedded.build --manifest"
    )


def test_the_whole_core_is_there_except_what_blocks():
    core = {name(path) for path in MODULES}
    left_out = core - set(device_files())
    prefixes = ("natsproto/blocking.py", "jetstream/blocking/", "jetstream/tools/")
    assert all(path.startswith(prefixes) for path in left_out)
    adapters = [path for path in device_files() if path not in core]
    assert [path.removeprefix("natsproto/adapters/") for path in adapters] == [
        "__init__.py",
        "_options.py",
        "driver.py",
        "logs.py",
        "micropython/__init__.py",
        "micropython/clock.py",
        "micropython/port.py",
        "micropython/transport.py",
    ]


PASS = "class A:\n    pass"


@pytest.mark.parametrize(
    ("source", "stripped"),
    [
        ("from __future__ import annotations\nimport json", "import json"),
        ("TYPE_CHECKING: bool = False\nif TYPE_CHECKING:\n    import typing\nx = 1", "x = 1"),
        ("if TYPE_CHECKING:\n    import typing\nelse:\n    x = 1", "x = 1"),
        ("if not TYPE_CHECKING:\n    x = 1", "x = 1"),
        ("HAS_MEMORY: bool = True\nif HAS_MEMORY and x:\n    x = 1\ny = 1", "y = 1"),
        ("if other:\n    x = 1", "if other:\n    x = 1"),
        ("__all__ = ['a']\na = 1", "a = 1"),
        ("a: int = 1\nb: str", "a = 1"),
        ("class A:\n    __slots__ = ('a',)\n    x = 1", "class A:\n    x = 1"),
        ("class A:\n    __slots__ = ('a',)", "class A:\n    pass"),
        ("class R:\n    __slots__ = ('a',)", "class R:\n    __slots__ = ('a',)"),
        ("class R:\n    class A:\n        __slots__ = ()\n    __slots__ = ('a',)", None),
        ('def f():\n    """Text."""', "def f():\n    pass"),
        ("class A:\n    def __reduce__(self):\n        return A, ()", "class A:\n    pass"),
        ('async def f():\n    """Text."""\n    return 1', "async def f():\n    return 1"),
        ("f = Field('a', TEXT, 'About it.', (2, 9))", "f = Field('a', TEXT, '', (2, 9))"),
        ("f = Fields('a', TEXT, 'About it.')", "f = Fields('a', TEXT, 'About it.')"),
        ("def f(a: int=1, *b: str) -> bool:\n    return a", "def f(a=1, *b):\n    return a"),
        ("if x:\n    assert y", "if x:\n    pass"),
        ("if name == 'connect':\n    x = 1\ny = 1", "y = 1"),
        ("from natsproto.hinting import add_hints\nadd_hints(A, 'm', 'T', 'a')\nx = 1", "x = 1"),
        ("class A:\n    if not TYPE_CHECKING:\n        __getattr__ = lazy_hints('m')", PASS),
        ("if hasattr(os, 'register_at_fork'):\n    x = 1\nelse:\n    x = 2", "x = 2"),
    ],
)
def test_strip(source, stripped):
    if stripped is None:
        stripped = "class R:\n\n    class A:\n        pass\n    __slots__ = ('a',)"
    assert stripped_source(source, READER) == stripped


READER = "class R:\n    def names(self):\n        return self.__slots__"


def stripped_source(source: str, *others: str) -> str:
    trees = [ast.parse(text) for text in (source, *others)]
    strip(trees)
    return ast.unparse(ast.fix_missing_locations(trees[0]))


HINT = "class A:\n    def __getattr__(self, name):\n        raise no_attribute(self, name)"
OTHER = "class A:\n\n    def __getattr__(self, name):\n        return 0"
SMALL = [  # source, the source in a build for a program
    ("class A:\n    def __repr__(self):\n        return 'A'", "class A:\n    pass"),
    (HINT, "class A:\n    pass"),
    (OTHER, OTHER),
    (
        "class A:\n    def f(self):\n        return [n for n in self.__slots__]",
        "class A:\n\n    def f(self):\n        return [n for n in sorted(self.__dict__)]",
    ),
    ("for n in x.__slots__:\n    print(n)", "for n in sorted(x.__dict__):\n    print(n)"),
    ("y = x.__slots__[1:]", "y = x.__slots__[1:]"),
]


@pytest.mark.parametrize(("source", "stripped"), SMALL)
def test_strip_for_a_program(source, stripped):
    tree = ast.parse(source)
    strip([tree], small=True)
    assert ast.unparse(ast.fix_missing_locations(tree)) == stripped


def test_the_slots_of_a_record_are_its_attributes():
    """A build for a program reads the attributes instead."""
    for path in device_files():
        if not path.startswith("natsproto/adapters/"):
            importlib.import_module(path[:-3].replace("/", ".").removesuffix(".__init__"))
    records = subclasses(Record)
    assert len(records) > 50
    for record in records:
        slots = [name for each in record.__mro__ for name in each.__dict__.get("__slots__", ())]
        assert sorted(record.__slots__) == sorted(slots) or record._fields is not Record._fields


def subclasses(record: type[Record]) -> set[type[Record]]:
    found = set(record.__subclasses__())
    return found.union(*map(subclasses, found))


def test_classes_that_read_their_slots_keep_them():
    slots = "\n    __slots__ = ('a',)\n"
    source = "".join(
        f"class {name}:{slots}" for name in ("Point(R)", "Far(Point)", "Other", "Plain(Other)")
    )
    kept = stripped_source(source, READER)
    assert [part.partition(":")[0] for part in kept.split("class ") if "__slots__" in part] == [
        "Point(R)",
        "Far(Point)",
    ]


SOURCES = transform([])


@pytest.mark.parametrize("path", device_files())
def test_the_whole_build_keeps_the_functions(path):
    """No function is lost that runs on a device, and none changes its arguments."""
    source = (ROOT / path).read_text(encoding="utf-8")
    # Those that are left out are in blocks for type checkers, or for pickle and dir().
    assert functions(SOURCES[path]) == functions(without_type_checking(source))


FALSE = ("TYPE_CHECKING", "hasattr(os, 'register_at_fork')", "HAS_MEMORY")


def functions(source: str) -> list[tuple[str, list[str]]]:
    return sorted(
        (node.name, [arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name not in ("__reduce__", "__dir__")
    )


def without_type_checking(source: str) -> str:
    """Return the source as MicroPython executes it: nothing forks or remembers layouts."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).split(" and ")[0] in FALSE:
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def test_the_freeze_manifest_names_every_module(tmp_path, monkeypatch):
    files = prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    frozen: list[str] = []
    known: dict[str, object] = {}

    def package(name, files, opt):
        frozen.extend(f"{name}/{file}" for file in files)

    names = {"metadata": lambda **values: known.update(values), "require": frozen.append}
    names["package"] = package
    exec(FREEZE.read_text(), names)
    assert frozen == sorted(files, key=lambda path: (path.startswith("jetstream"), path))
    assert known["version"] == version()
    assert json.loads((tmp_path / "package.json").read_text())["deps"] == []


def test_the_freeze_manifest_of_the_repository_requires_future(monkeypatch):
    monkeypatch.chdir(ROOT)
    required: list[str] = []
    names = {"metadata": lambda **values: None, "require": required.append}
    names["package"] = lambda name, files, opt: None
    exec(FREEZE.read_text(), names)
    assert required == ["__future__"]


@pytest.mark.parametrize("path", device_files())
def test_texts_can_be_frozen(path):
    """The tool that freezes modules reads all texts as UTF-8, which has no surrogates."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value.encode("utf-8")


def test_every_build_is_the_same(tmp_path):
    """Whatever the order of sets, which differs from one process to the next."""
    program = tmp_path / "main.py"
    program.write_text("from natsproto.adapters.micropython import connect\n")
    builds: list[dict[str, bytes]] = []
    for seed in ("1", "2"):
        output = tmp_path / seed
        command = [sys.executable, "-m", "embedded.build", output, "--program", program]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        paths = [path for path in output.rglob("*") if path.is_file()]
        builds.append({str(path.relative_to(output)): path.read_bytes() for path in paths})
    assert builds[0] == builds[1]
    assert len(builds[0]) > 5
