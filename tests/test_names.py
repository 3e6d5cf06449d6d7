"""The public names of the packages, as seen by dir(), `import` and type checkers.

A program can name every object that it is handed: the classes that public methods return, their
fields, and so on, are importable from `jetstream` or `natsproto`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from typing import TYPE_CHECKING

import pytest

import jetstream
import jetstream.blocking
import jetstream.events
import natsproto
from tests.core import MODULES, ROOT, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PACKAGES = [natsproto, jetstream]
EVERY = [natsproto, jetstream, jetstream.blocking]
ROOTS = [
    jetstream.JetStream,
    jetstream.Stream,
    jetstream.Consumer,
    jetstream.KeyValue,
    jetstream.ObjectStore,
    natsproto.Client,
    natsproto.Subscription,
]
# Names in annotations that are not classes of ours: the standard library's, and aliases.
OTHERS = {
    "Any",
    "ClassVar",
    "Coroutine",
    "Field",  # of FIELDS, which describes the JSON
    "Generator",
    "Infos",  # list[ObjectInfo]
    "Item",  # of a watcher: a type variable
    "Iterator",
    "Json",
    "Self",
    "datetime",
}
# Blocking twins have the same names, in jetstream.blocking and natsproto.blocking.
DEFINED = {
    node.name: dotted(path)
    for path in MODULES
    if "blocking" not in dotted(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
}


def is_public(name: str) -> bool:
    return not name.startswith("_") or name.endswith("__")


def annotations(cls: type) -> Iterator[str]:
    """Yield the annotations of a class's fields, and of what its methods and properties return."""
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if is_public(name) and inspect.isfunction(member):
                yield member.__annotations__.get("return", "None")
        fields = vars(base).get("__annotations__", {})
        yield from (text for name, text in fields.items() if is_public(name))


def classes_named(text: str) -> set[str]:
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return names - OTHERS - set(vars(builtins))


def exported(name: str) -> type | None:
    """Return a class of the packages, of natsproto.paths or of jetstream.events."""
    if name in jetstream.__all__ + natsproto.__all__:
        return getattr(jetstream, name, None) or getattr(natsproto, name, None)
    return getattr(natsproto.paths, name, None) or getattr(jetstream.events, name, None)


def test_every_class_that_a_program_is_handed_can_be_imported():
    pending, seen = list(ROOTS), set(ROOTS)
    missing = set()
    while pending:
        for name in set().union(*map(classes_named, annotations(pending.pop()))):
            cls = exported(name)
            if cls is None or cls.__module__ != DEFINED.get(name):
                missing.add(name)
            elif cls not in seen:
                seen.add(cls)
                pending.append(cls)
    assert missing == set()
    assert {jetstream.KeyWatcher, jetstream.Publication, natsproto.Stats} <= seen


def test_the_blocking_twins_can_be_imported_from_one_place():
    known = set(dir(jetstream.blocking))
    for module in (jetstream.blocking.kv, jetstream.blocking.objects, jetstream.blocking.pull):
        twins = {name for name in vars(module) if name in jetstream.__all__}
        own = {name for name in twins if vars(module)[name].__module__ == module.__name__}
        assert own
        assert own <= known
    for name in known & set(jetstream.__all__):
        assert getattr(jetstream.blocking, name).__name__ == name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_dir_has_the_names_and_the_public_modules(package):
    assert package.__all__ == sorted(package.__all__)
    assert dir(package) == sorted({*package.__all__, *package._MODULES, "__version__"})
    for name in package._MODULES:
        assert getattr(package, name).__name__ == f"{package.__name__}.{name}"
    for name in {*package.__all__} - {"__version__"}:
        assert getattr(package, name).__name__.rpartition(".")[2] == name
    assert package.__version__ == natsproto.__version__
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'Jetstream'"):
        package.Jetstream  # noqa: B018


def test_the_modules_that_programs_use():
    assert {"blocking", "config", "errors", "events", "kv", "objects"} <= set(dir(jetstream))
    assert {"adapters", "auth", "blocking", "connection", "errors", "events"} <= set(dir(natsproto))


@pytest.mark.parametrize("package", EVERY, ids=lambda package: package.__name__)
def test_type_checkers_resolve_every_name(package: ModuleType):
    """mypy and pyright look at tests/typing/names.py (see tests/typing/test_typing.py)."""
    source = (ROOT / "tests" / "typing" / "names.py").read_text(encoding="utf-8")
    lists = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.AnnAssign)]
    names = [f"{package.__name__}.{name}" for name in dir(package)]
    assert names in [[ast.unparse(item) for item in each.elts] for each in lists]


@pytest.mark.parametrize("package", EVERY, ids=lambda package: package.__name__)
def test_type_checkers_know_no_other_name(package: ModuleType):
    """`import X as X` is what makes a name public for them, besides `__all__`."""
    imports = [
        alias
        for node in ast.walk(ast.parse(inspect.getsource(package)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert {alias.name for alias in imports if alias.name == alias.asname} <= set(dir(package))


def test_former_names_still_work():
    assert natsproto.OutBufferFull is natsproto.PendingBufferFull
    assert jetstream.errors.SeveralStreams is jetstream.errors.AmbiguousStream
    assert jetstream.events.Recounted is jetstream.events.ConsumerSequenceReset
