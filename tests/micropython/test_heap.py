"""The heap that imports take on MicroPython (32 bits), as compiled for a device, and its limits.

A program of live/usage.py says which modules a kind of program loads. These are imported in a new
MicroPython, and the heap in use before and after is compared: of the whole packages, and of a build
for this one program. If a limit fails, look for an import that only some programs need, and move it
into the function that needs it. docs/embedding.md has a table of the limits.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from embedded.build import build
from embedded.firmware import NAMES as FIRMWARE
from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from tests.core import ROOT
from tests.micropython.conftest import HOST, add_programs
from tests.micropython.runner import run

HERE = Path(__file__).parent
PAGE = ROOT / "docs/embedding.md"

# Modules of MicroPython itself, which count for none of the programs.
RUNTIME = "import asyncio, binascii, collections, gc, hashlib, heapq, json, os, struct, sys, time"
LIMITS = [  # program, modules, KiB, KiB if built for this program
    ("wire", 12, 34, 17),
    ("messages", 46, 125, 80),
    ("pull", 83, 219, 130),
    ("buckets", 125, 356, 234),
]
ABSENT = {  # what a program must not load, although others do
    "messages": {"natsproto.auth", "natsproto.hints", "natsproto.websocket", "jetstream"},
    "pull": {"jetstream.streams.manager", "jetstream.schema.stream_config", "jetstream.pull.fetch"},
}


@pytest.fixture(scope="module")
def url(live_server):
    with connect(live_server.url) as client:
        js = JetStream(client)
        js.create_stream(name="USAGE", subjects=["usage.>"]).create_consumer(durable_name="worker")
        js.create_key_value(bucket="usage")
    return live_server.urls["websocket"].replace("ws://", "nats://")


def loaded_by(micropython: Path, root: Path, url: str, program: str) -> list[str]:
    """Run a program on a device, and return the modules that it loads."""
    add_programs(root)
    code = f"import usage\nawait usage.{program}({url!r})"
    command = ["node", "--experimental-websocket", "--no-warnings", HERE / "live.mjs"]
    return run([*command, micropython, root, code]).split()


def source_of(program: str) -> list[str]:
    """Return the sources of one program: its function, and what it uses of live/."""
    usage = ast.parse((HERE / "live/usage.py").read_text(encoding="utf-8"))
    function = next(node for node in usage.body if getattr(node, "name", "") == program)
    source = ast.unparse(function)
    connects = "network" in source
    paths = (HOST, HERE / "live/network.py") if connects else ()
    return [source, *(path.read_text(encoding="utf-8") for path in paths)]


def heap_of(micropython: Path, device: Path, modules: list[str]) -> float:
    """Return the KiB that the modules take."""
    # A statement each: garbage is collected between two calls from outside.
    used = ["gc.collect()", "print(gc.mem_alloc())"]
    statements = [RUNTIME, *used, *[f"import {module}" for module in modules], *used]
    before, after = run(["node", HERE / "run.mjs", micropython, device, *statements]).split()
    return (int(after) - int(before)) / 1024


def check_heap(micropython: Path, device: Path, modules: list[str], limit: int) -> None:
    heap = heap_of(micropython, device, modules)
    report = f"{len(modules)} modules, {heap:.1f} KiB"
    assert heap <= limit, f"{report}: {modules}"
    # A limit far above what is used would let it grow unnoticed.
    assert heap > 0.93 * limit, f"{report}: lower the limit of {limit} KiB"


@pytest.mark.parametrize(("program", "most", "limit"), [row[:3] for row in LIMITS])
def test_the_heap_of_a_program(micropython, device, url, program, most, limit):
    modules = loaded_by(micropython, device, url, program)
    assert ABSENT.get(program, set()).isdisjoint(modules)
    check_heap(micropython, device, modules, limit)
    assert len(modules) <= most, modules


@pytest.mark.parametrize(("program", "limit"), [(row[0], row[3]) for row in LIMITS])
def test_the_heap_of_a_build_for_one_program(micropython, tmp_path, url, program, limit):
    build(tmp_path, source_of(program))
    modules = loaded_by(micropython, tmp_path, url, program)
    check_heap(micropython, tmp_path, modules, limit)


def test_the_firmware_contains_the_names_that_cost_nothing(micropython, tmp_path):
    mentioned = "; ".join(f"__name__.{name}" for name in [*FIRMWARE, "not_there"])
    code = f"import micropython\nif not __name__: {mentioned}\nmicropython.qstr_info(1)"
    printed = run(["node", HERE / "run.mjs", micropython, tmp_path, code])
    assert re.findall(r"Q\((\w+)\)", printed) == ["not_there"]


def test_the_page_has_these_limits():
    pattern = r"^\| .* \| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$"
    rows = re.findall(pattern, PAGE.read_text(), re.MULTILINE)
    assert [(name, *map(int, figures)) for name, *figures in rows] == LIMITS
