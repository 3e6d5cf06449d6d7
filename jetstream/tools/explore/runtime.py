"""Find the Python for WebAssembly, or install it from npm into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from natsproto.errors import MissingExtra

from .site import FALLBACK, RUNTIME

PACKAGE = "@micropython/micropython-webassembly-pyscript"
VERSION = "1.27.0"
PYODIDE = "pyodide"
PYODIDE_VERSION = "314.0.7"


def find_runtime(given: str = "") -> Path:
    """Return the folder with MicroPython's files: the given one, or that in the cache."""
    return _find(given, "micropython", PACKAGE, VERSION, RUNTIME)


def find_fallback(given: str = "") -> Path:
    """Return the folder with Pyodide's files: the given one, or that in the cache."""
    return _find(given, "pyodide", PYODIDE, PYODIDE_VERSION, FALLBACK)


def cache() -> Path:
    """Return the folder for files that can be fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "natsproto"


def _find(given: str, name: str, package: str, version: str, files: tuple[str, ...]) -> Path:
    folder = Path(given) if given else cache() / f"{name}-{version}"
    if not given and not folder.exists():
        _install(folder, package, version)
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise MissingExtra(f"{folder} has no {missing[0]}; it is part of the npm package {package}")
    return folder


def _install(target: Path, package: str, version: str) -> None:
    """Install a package completely or not at all."""
    npm = shutil.which("npm")
    if npm is None:
        raise MissingExtra(
            f"{package} is installed by npm, which was not found; install Node, or pass the folder"
            " of this package: --runtime for MicroPython, --fallback for Pyodide"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as made:
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", made]
        done = subprocess.run(
            [*command, f"{package}@{version}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no output"]
            raise MissingExtra(f"npm could not install {package} {version}: {last[0]}")
        try:
            Path(made, "node_modules", package).rename(target)
        except OSError:
            if not target.exists():  # no other process was faster
                raise
