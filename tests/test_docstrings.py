"""Every public callable has a docstring that starts with a verb in the imperative.

Functions and methods of classes are public if programs can name them: those of the two packages and
of their public modules. Properties and classes have docstrings as well; these describe an object
and may start with any word.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

import jetstream
import natsproto
import natsproto.adapters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PACKAGES = ("natsproto", "jetstream")
# The first words of docstrings. A new verb is added here; a word that is not a verb is not.
_WORDS = """
    abandon accept acknowledge add adopt answer append apply assert begin bind block buffer
    build call cancel change check clear close collect combine commit compare configure connect
    consume convert copy count create decode delete deliver derive detach dial discard discover
    drain drop emit encode encrypt end enqueue ensure exit extend feed fetch find fire flush
    follow forget format gather generate get handle hold ignore increment insert issue iterate
    join keep leave limit list load lock make mark match measure merge move note notify observe
    omit open parse pass pause peek poll pop prepare print process publish pull purge push put
    raise read receive reconnect record recreate refresh reject release remove rename repeat
    replace reply report request require reset resolve respond restart restore resume retry
    return reveal run save schedule seal search send set settle show skip sleep sort split start
    step stop store strip subscribe sum swap switch take terminate test transform uncork unpin
    unsubscribe update upload use validate verify wait wake warn watch wrap write yield
    """
VERBS = set(_WORDS.split())
ELSEWHERE = ["pyodide"]  # adapters that cannot be imported on this runtime


class Documented(NamedTuple):
    """A public object, its full name, and whether its docstring starts with a verb."""

    name: str
    module: str
    docstring: str
    is_call: bool


def public_modules() -> Iterator[ModuleType]:
    for package in (natsproto, jetstream):
        yield package
        yield from (getattr(package, name) for name in package._MODULES)
    yield natsproto.encode
    for found in pkgutil.iter_modules(natsproto.adapters.__path__, "natsproto.adapters."):
        name = found.name.rpartition(".")[2]
        if not name.startswith("_") and name not in ELSEWHERE:
            yield importlib.import_module(found.name)


def is_ours(found: object) -> bool:
    return str(getattr(found, "__module__", "")).partition(".")[0] in PACKAGES


def documented(module: ModuleType) -> Iterator[Documented]:
    """Yield the functions and classes of a module, and the members of the classes."""
    names = getattr(module, "__all__", None) or [
        name for name in vars(module) if not name.startswith("_")
    ]
    for name in names:
        found = getattr(module, name)
        if inspect.isfunction(found) and is_ours(found):
            yield entry(found.__qualname__, found, True)
        elif inspect.isclass(found) and is_ours(found):
            yield entry(found.__qualname__, found, False)
            yield from members(found)


def members(cls: type) -> Iterator[Documented]:
    for base in filter(is_ours, cls.__mro__):
        for name, member in vars(base).items():
            if name.startswith("_"):
                continue
            if isinstance(member, property):
                yield entry(f"{base.__qualname__}.{name}", member.fget, False)
            member = getattr(member, "__func__", member)
            if inspect.isfunction(member):
                yield entry(f"{base.__qualname__}.{name}", member, True)


def entry(name: str, found: object, is_call: bool) -> Documented:
    docstring = inspect.cleandoc(getattr(found, "__doc__", None) or "")
    return Documented(name, found.__module__, docstring, is_call)


PUBLIC = {(each.module, each.name): each for home in public_modules() for each in documented(home)}


def problem(each: Documented) -> str:
    words = each.docstring.split()
    if not words:
        return "no docstring"
    first = words[0].strip("`.,:;()").lower()
    if each.is_call and first not in VERBS:
        return f"starts with {words[0]!r}"
    if each.docstring.partition("\n\n")[0].rstrip()[-1] not in ".:":
        return "does not start with a sentence"
    return ""


@pytest.mark.parametrize("module", sorted({each.module for each in PUBLIC.values()}))
def test_public_callables_have_docstrings(module):
    own = [each for each in PUBLIC.values() if each.module == module]
    found = {each.name: problem(each) for each in own if problem(each)}
    assert found == {}


def test_the_public_names_are_found():
    names = {name for _, name in PUBLIC}
    assert {"JetStream.publish", "Client.subscribe", "Headers.get_all", "connect"} <= names
    assert len(PUBLIC) > 700


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("", "no docstring"),
        ("The next message.", "starts with 'The'"),
        ("Whether it is open.", "starts with 'Whether'"),
        ("Returns a message.", "starts with 'Returns'"),
        ("Return a message", "does not start with a sentence"),
        ("Return a message.\n\nIt may be old", ""),
    ],
)
def test_docstrings_that_are_rejected(docstring, found):
    assert problem(Documented("f", "m", docstring, True)) == found
