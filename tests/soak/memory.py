"""python -m tests.soak.memory [--megabytes 1024]

It measures how much memory a push subscription needs when far more messages arrive than its handler
takes: with flow control the server waits, and without it the queue is limited, and gaps are
reported.
Each is measured in a process of its own: the peak of its resident memory, less what it had before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from jetstream import JetStream
from jetstream.events import Gap
from jetstream.push.api import PushMessages
from natsproto.adapters.asyncio import connect
from natsproto.errors import TimeoutExpired
from natsproto.testing import Server

MEGABYTE = 1024 * 1024
BLOCK = 64 * 1024
# Memory beyond the queue: buffers of the socket, the parser and the interpreter.
MARGIN = 32
# Of the queue, in megabytes: the server's largest window, or the requests.
LIMITS = {"flow_control": 32, "limit": 8}
RESTS = 8


def peak() -> float:
    """Return the peak in megabytes; the kernel counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def fill(url: str, megabytes: int) -> None:
    async with connect(url) as client:
        js = JetStream(client, timeout=30.0)
        await js.create_stream(name="S", subjects=["s"])
        async with js.publisher(max_pending=64) as window:
            for _ in range(megabytes * MEGABYTE // BLOCK):
                await window.publish("s", bytes(BLOCK))


async def take(url: str, mode: str, count: int) -> dict[str, Any]:
    """Subscribe with a handler that pauses now and then, and return its observations."""
    asked: dict[str, Any] = {"ack_policy": "none", "idle_heartbeat": 1.0}
    if mode == "flow_control":
        asked["flow_control"] = True
    else:
        asked["max_pending_bytes"] = LIMITS[mode] * MEGABYTE
    async with connect(url) as client:
        js = JetStream(client, timeout=30.0)
        before = peak()
        taken = 0
        async with await js.subscribe(stream="S", alarm_after=30, **asked) as messages:
            missing = [0]
            listening = asyncio.ensure_future(listen(messages, missing))
            while taken + missing[0] < count:
                if taken % (count // RESTS) == 0:
                    await asyncio.sleep(0.25)
                with suppress(TimeoutExpired):  # then a heartbeat reveals the missing messages
                    await messages.next(1.0)
                    taken += 1
            dropped = messages.dropped
            listening.cancel()
        found = {"taken": taken, "missing": missing[0], "dropped": dropped}
        return {**found, "grown": round(peak() - before, 1)}


async def listen(messages: PushMessages, missing: list[int]) -> None:
    """Collect the reported gaps; a server may also disconnect a client that reads too slowly."""
    async for event in messages.events:
        if isinstance(event, Gap):
            missing[0] += event.last - event.first + 1


def measure(megabytes: int) -> list[str]:
    """Run all modes and return the complaints."""
    complaints = []
    count = megabytes * MEGABYTE // BLOCK
    with Server(jetstream=True) as server:
        asyncio.run(fill(server.url, megabytes))
        for mode, limit in LIMITS.items():
            began = time.monotonic()
            command = [sys.executable, "-m", "tests.soak.memory", "--child", server.url, mode]
            run = subprocess.run([*command, str(count)], check=True, capture_output=True, text=True)
            found = json.loads(run.stdout)
            took = time.monotonic() - began
            print(f"{mode}: {megabytes} MiB offered, {found} in {took:.1f} s")
            if found["grown"] > limit + MARGIN:
                complaints.append(f"{mode}: {found['grown']:.0f} MiB, limit {limit} + {MARGIN}")
            if found["taken"] + found["missing"] != count or found["dropped"] > found["missing"]:
                complaints.append(f"{mode}: {found} of {count}")
            if found["missing"] and mode == "flow_control":
                complaints.append(f"{mode}: {found['missing']} are missing")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.memory")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        url, mode, count = options.child
        print(json.dumps(asyncio.run(take(url, mode, int(count)))))
        return 0
    complaints = measure(options.megabytes)
    for complaint in complaints:
        print("  " + complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
