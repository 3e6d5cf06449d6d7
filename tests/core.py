"""Which files make up the core: what runs without I/O, everywhere, on MicroPython too."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("natsproto", "jetstream")
# Sub-packages (adapters, testing, spark) are outside: they do I/O.
MODULES = [path for package in PACKAGES for path in sorted(ROOT.glob(f"{package}/*.py"))]


def name(path: Path) -> str:
    """As in natsproto/wire/parser.py, on every system."""
    return path.relative_to(ROOT).as_posix()
