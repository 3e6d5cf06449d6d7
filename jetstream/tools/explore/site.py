"""Write the explorer as a folder of static files, which any web server can serve.

core.json       the sources of the library, as far as the page needs them, by their paths
rules.json      the rules of spec_notes: their texts, and the first line of code that names each
dialogues.json  the recorded dialogues of tests/vectors

The last two are empty if the package is installed without the repository.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .labs.wire import show_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
PAGE = HERE / "page"
#: The files of MicroPython that the page loads.
RUNTIME = ("micropython.mjs", "micropython.wasm")
#: The files of Pyodide that the page loads if it cannot load MicroPython.
FALLBACK = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)
# What the page never imports, and what does I/O by means that a page lacks.
_LEFT_OUT = (
    "jetstream/blocking/",
    "jetstream/spark/",
    "jetstream/testing/checks/",
    "jetstream/tools/cli/",
    "jetstream/tools/explore/site.py",
    "jetstream/tools/explore/runtime.py",
    "jetstream/tools/otel.py",
    "jetstream/tools/prometheus.py",
    "natsproto/__main__.py",
    "natsproto/blocking.py",
    "natsproto/cli/",
    "natsproto/compat/",
    "natsproto/testing/checks/",
)
_ADAPTERS = "natsproto/adapters/"
_PAGE_ADAPTERS = (
    "__init__.py",
    "_options.py",
    "driver.py",
    "logs.py",
    "micropython/",
)
# Of the two `testing` rooms, the page needs the simulation.
_TESTING = re.compile(r"(natsproto|jetstream)/testing/(?!sim/|__init__)")
_FUTURE = "annotations = None\n"
_RULE = re.compile(r"^- \*\*([A-Z][A-Z0-9-]+)\*\* (.*)$", re.MULTILINE)
_RULE_ID = re.compile(r"\b(?:D-)?[A-Z][A-Z0-9]*-\d+\b")


def build(folder: Path, runtime: Path, fallback: Path | None = None) -> None:
    """Write all files into the folder, which may exist.

    `runtime` is where MicroPython is, `fallback` where Pyodide is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in PAGE.iterdir():
        shutil.copy(path, folder)
    for name in RUNTIME:
        shutil.copy(runtime / name, folder)
    if fallback is not None:
        (folder / "pyodide").mkdir(exist_ok=True)
        for name in FALLBACK:
            shutil.copy(fallback / name, folder / "pyodide")
    sources = dict(read_sources())
    _write(folder / "core.json", sources)
    _write(folder / "rules.json", read_rules(ROOT / "spec_notes", sources))
    _write(folder / "dialogues.json", read_dialogues(ROOT / "tests/vectors"))


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")), encoding="utf-8")


def read_sources() -> Iterator[tuple[str, str]]:
    """Yield the path and the source of each module that the page may import."""
    yield "__future__.py", _FUTURE
    for package in ("natsproto", "jetstream"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            adapter = name.startswith(_ADAPTERS)
            used = name.removeprefix(_ADAPTERS).startswith(_PAGE_ADAPTERS) or not adapter
            if used and not name.startswith(_LEFT_OUT) and not _TESTING.match(name):
                yield name, path.read_text(encoding="utf-8")


def read_rules(notes: Path, sources: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the rules by their ids."""
    lines: dict[str, tuple[str, int]] = {}
    for name, source in sources.items():
        for number, line in enumerate(source.split("\n"), 1):
            for rule in _RULE_ID.findall(line):
                lines.setdefault(rule, (name, number))
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(notes.glob("*.md")):
        for rule, text in _RULE.findall(path.read_text(encoding="utf-8")):
            file, number = lines.get(rule, ("", 0))
            found[rule] = {"text": text, "file": file, "line": number}
    return found


def read_dialogues(vectors: Path) -> list[dict[str, str]]:
    """Return the recorded dialogues: what each side sent on the first connection, as text."""
    found: list[dict[str, str]] = []
    for path in sorted(vectors.glob("*.json")):
        dialogue = json.loads(path.read_text(encoding="utf-8"))
        sides = {"<": b"", ">": b""}
        frames = [frame for frame in dialogue["frames"] if frame.get("dir") in sides]
        for frame in frames:
            if frame["conn"] == frames[0]["conn"]:
                sides[frame["dir"]] += frame["latin1"].encode("latin-1")
        row = {"name": dialogue["name"], "title": dialogue["title"]}
        row.update(server=show_bytes(sides["<"]), client=show_bytes(sides[">"]))
        found.append(row)
    return found
