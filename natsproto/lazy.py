"""Lazy names: a package imports them on first use, so that importing it stays cheap.

A package lists them in a text, with a line for each module:

    wire.parser: Parser ParserState
    wire.frames: Msg Ping

A text takes less memory than a dict of names, most of which are never used.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable


#: The docstring of properties that only raise an error with a hint.
HINT = "Raise AttributeError with the name to use instead."
_NO_CONNECT = (
    "%s has no connect: each runtime has its own. Import it from natsproto.adapters.asyncio, .trio,"
    " .anyio, .threads or .blocking"
)


def lazy_names(package: str, homes: str, namespace: dict[str, object]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    `homes` is the list of its lazy names; `namespace` is the package's globals().
    """

    def load(name: str) -> object:
        # Modules are found as well: MicroPython calls this for `from package import module`
        # before it looks for a file.
        home = find_home(homes, name)
        try:
            found: object = __import__("%s.%s" % (package, home or name), None, None, [name])
        except ImportError as error:
            raise no_name(package, name) from error
        if home:
            found = getattr(found, name)
        namespace[name] = found
        return found

    return load


def no_name(package: str, name: str) -> Exception:
    """Return the error for a name that a package does not have."""
    if name == "connect":  # D-HINT-1
        # Not AttributeError, whose text `from package import connect` would hide.
        return ImportError(_NO_CONNECT % package)
    return AttributeError("module %r has no attribute %r" % (package, name))


def find_home(homes: str, name: str) -> str:
    """Return the module that has this name, or ""."""
    for line in homes.split("\n"):
        module, _, names = line.partition(":")
        if name in names.split():
            return module.strip()
    return ""


def lazy_list(homes: str) -> list[str]:
    """Return all lazy names."""
    return [name for line in homes.split("\n") for name in line.partition(":")[2].split()]


def lazy_hints(module: str, table: str) -> Callable[[object, str], object]:
    """Return the `__getattr__` of a class: AttributeError, with a hint from this table (D-HINT-1).

    The table is imported only then.
    """

    def missing(instance: object, name: str) -> object:
        from .hints import no_attribute

        hints = getattr(__import__(module, None, None, [table]), table)
        raise no_attribute(instance, name, hints)

    return missing


def add_hints(owner: type, module: str, table: str, names: str) -> None:
    """Add properties to a class that only raise AttributeError, with a hint (D-HINT-1).

    For classes whose attributes are read for every message: `__getattr__` would slow down all of
    them.
    """
    missing = lazy_hints(module, table)
    for name in names.split():
        setattr(owner, name, property(_hint(missing, name), doc=HINT))


def _hint(missing: Callable[[object, str], object], name: str) -> Callable[[object], object]:
    def hint(instance: object) -> object:
        return missing(instance, name)

    return hint
