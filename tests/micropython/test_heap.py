"""The heap that imports take on MicroPython (32 bits), as compiled for a device, and its limits.

A program of live/usage.py says which modules a kind of program loads. These are imported in a new
MicroPython, and the heap in use before and after is compared. If a limit fails, look for an import
that only some programs need, and move it into the function that needs it. docs/embedding.md has a
table of the limits.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from tests.core import ROOT
from tests.micropython.runner import run

HERE = Path(__file__).parent
PAGE = ROOT / "docs/embedding.md"

# Modules of MicroPython itself, which count for none of the programs.
RUNTIME = "import asyncio, binascii, collections, gc, hashlib, heapq, json, os, struct, sys, time"
LIMITS = [  # program, modules, KiB
    ("wire", 12, 34),
    ("messages", 43, 126),
    ("pull", 80, 220),
    ("buckets", 123, 358),
]
ABSENT = {  # what a program must not load, although others do
    "messages": {"natsproto.auth", "natsproto.hints", "natsproto.websocket", "jetstream"},
    "pull": {"jetstream.streams.manager", "jetstream.schema.stream_config", "jetstream.pull.fetch"},
}


@pytest.fixture(scope="module")
def loaded(micropython, live_root, live_server):
    """Return the modules that each program loads."""
    with connect(live_server.url) as client:
        js = JetStream(client)
        js.create_stream(name="USAGE", subjects=["usage.>"]).create_consumer(durable_name="worker")
        js.create_key_value(bucket="usage")
    url = live_server.urls["websocket"].replace("ws://", "nats://")
    found: dict[str, list[str]] = {}
    for program, _, _ in LIMITS:
        code = f"import usage\nawait usage.{program}({url!r})"
        command = ["node", "--experimental-websocket", "--no-warnings", HERE / "live.mjs"]
        found[program] = run([*command, micropython, live_root, code]).split()
    return found


def heap_of(micropython: Path, device: Path, modules: list[str]) -> float:
    """Return the KiB that the modules take."""
    # A statement each: garbage is collected between two calls from outside.
    used = ["gc.collect()", "print(gc.mem_alloc())"]
    statements = [RUNTIME, *used, *[f"import {module}" for module in modules], *used]
    before, after = run(["node", HERE / "run.mjs", micropython, device, *statements]).split()
    return (int(after) - int(before)) / 1024


@pytest.mark.parametrize(("program", "most", "limit"), LIMITS)
def test_the_heap_of_a_program(micropython, device, loaded, program, most, limit):
    modules = loaded[program]
    assert ABSENT.get(program, set()).isdisjoint(modules)
    heap = heap_of(micropython, device, modules)
    report = f"{program}: {len(modules)} modules, {heap:.1f} KiB"
    assert heap <= limit, report
    assert len(modules) <= most, f"{report}: {modules}"
    # A limit far above what is used would let it grow unnoticed.
    assert heap > 0.93 * limit, f"{report}: lower the limit of {limit} KiB"


def test_the_page_has_these_limits():
    rows = re.findall(r"^\| .* \| `(\w+)` \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [(name, int(count), int(heap)) for name, count, heap in rows] == LIMITS
