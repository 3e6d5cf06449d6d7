"""The files of the core: everything that runs without I/O, on MicroPython too."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("natsproto", "jetstream")
OUTSIDE = ("adapters", "testing", "spark")  # they do I/O


def _modules(package: str) -> list[Path]:
    paths = sorted((ROOT / package).rglob("*.py"))
    return [path for path in paths if path.relative_to(ROOT).parts[1] not in OUTSIDE]


MODULES = [path for package in PACKAGES for path in _modules(package)]


def name(path: Path) -> str:
    """Return a path as in natsproto/wire/parser.py, on every system."""
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """Return a module's name as in natsproto.wire.parser; that of a package for its __init__."""
    return name(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
