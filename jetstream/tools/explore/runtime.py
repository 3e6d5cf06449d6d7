"""Find MicroPython for WebAssembly, or install it from npm into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from natsproto.errors import MissingExtra

from .site import RUNTIME

PACKAGE = "@micropython/micropython-webassembly-pyscript"
VERSION = "1.27.0"


def find_runtime(given: str = "") -> Path:
    """Return the folder with MicroPython's files: the given one, or that in the cache."""
    if given:
        return _checked(Path(given))
    cached = cache() / f"micropython-{VERSION}"
    if not cached.exists():
        _install(cached)
    return _checked(cached)


def cache() -> Path:
    """Return the folder for files that can be fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "natsproto"


def _checked(folder: Path) -> Path:
    missing = [name for name in RUNTIME if not (folder / name).is_file()]
    if missing:
        raise MissingExtra(f"{folder} has no {missing[0]}; it is part of the npm package {PACKAGE}")
    return folder


def _install(target: Path) -> None:
    """Install the package completely or not at all."""
    npm = shutil.which("npm")
    if npm is None:
        text = (
            "MicroPython is installed by npm, which was not found; install Node, or pass --runtime"
        )
        raise MissingExtra(f"{text} with a folder of the npm package {PACKAGE}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as made:
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", made]
        done = subprocess.run(
            [*command, f"{PACKAGE}@{VERSION}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no output"]
            raise MissingExtra(f"npm could not install {PACKAGE} {VERSION}: {last[0]}")
        try:
            Path(made, "node_modules", PACKAGE).rename(target)
        except OSError:
            if not target.exists():  # no other process was faster
                raise
