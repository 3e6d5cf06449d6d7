"""The files of the core: everything that runs without I/O, on MicroPython too."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("natsproto", "jetstream")
# They do I/O, or, like natsproto/compat, run on asyncio alone.
OUTSIDE = (
    "natsproto/__main__.py",
    "natsproto/adapters/",
    "natsproto/cli/",
    "natsproto/compat/",
    "natsproto/testing/",
    "natsproto/trace/",
    "jetstream/spark/",
    "jetstream/testing/",
    "jetstream/tools/cli/",
    "jetstream/tools/explore/",
    "jetstream/tools/otel.py",
    "jetstream/tools/prometheus.py",
)


def _modules(package: str) -> list[Path]:
    paths = sorted((ROOT / package).rglob("*.py"))
    return [path for path in paths if not name(path).startswith(OUTSIDE)]


def name(path: Path) -> str:
    """Return a path as in natsproto/wire/parser.py, on every system."""
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """Return a module's name as in natsproto.wire.parser; that of a package for its __init__."""
    return name(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")


MODULES = [path for package in PACKAGES for path in _modules(package)]
# Not the core, but written in its subset of Python: the simulation runs on MicroPython as well.
SIMULATION = [
    path
    for package in PACKAGES
    for path in [
        ROOT / package / "testing/__init__.py",
        *sorted((ROOT / package / "testing/sim").glob("*.py")),
    ]
]
