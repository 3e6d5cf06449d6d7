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
            if name == "connect":
                from .hints import no_connect

                raise no_connect(package) from None
            raise AttributeError("module %r has no attribute %r" % (package, name)) from error
        if home:
            found = getattr(found, name)
        namespace[name] = found
        return found

    return load


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
