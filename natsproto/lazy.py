"""Lazy names: a package imports them on first use, so that importing it stays cheap."""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(
    package: str, homes: dict[str, str], namespace: dict[str, object]
) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    `homes` maps each lazy name to its module; `namespace` is the package's globals().
    """

    def load(name: str) -> object:
        # Modules are found as well: MicroPython calls this for `from package import module`
        # before it looks for a file.
        try:
            found: object = __import__(package + "." + homes.get(name, name), None, None, [name])
        except ImportError as error:
            raise AttributeError("module %r has no attribute %r" % (package, name)) from error
        if name in homes:
            found = getattr(found, name)
        namespace[name] = found
        return found

    return load
