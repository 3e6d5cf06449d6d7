"""Whole programs print the same on nats-py, with a changed import, and after `install`.

They are in tests/compat/programs, and import `nats` as any program for nats-py does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("nats")
PROGRAMS = sorted(Path(__file__).parent.joinpath("programs").glob("*.py"))
RESTART = "ready to be restarted\n"
LIMIT = 60.0


def unchanged(text: str) -> str:
    return text


def changed_import(text: str) -> str:
    """Return the program with `natsproto.compat.nats` in place of `nats`."""
    text = re.sub(r"^import nats$", "from natsproto.compat import nats", text, flags=re.M)
    return re.sub(r"^(import|from) nats\.", r"\1 natsproto.compat.nats.", text, flags=re.M)


def installed(text: str) -> str:
    return "import natsproto.compat.nats\nnatsproto.compat.nats.install()\n" + text


def run(program: str, folder: Path) -> str:
    """Return what the program prints. Its server is restarted when it says so."""
    path = folder / "program.py"
    path.write_text(program)
    with Server(jetstream=True) as server:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", str(path), server.url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if line == RESTART:
                    server.kill()
                    server.restart()
            _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors) == (0, "")
    return printed


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("change", [changed_import, installed], ids=lambda each: each.__name__)
def test_a_program_prints_the_same(path: Path, change: Callable[[str], str], tmp_path: Path):
    text = path.read_text()
    assert change(text) != text
    expected = run(unchanged(text), tmp_path)
    assert expected
    assert run(change(text), tmp_path) == expected
