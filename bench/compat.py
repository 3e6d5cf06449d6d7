"""Programs for nats-py, unchanged, on nats-py and on natsproto.compat.nats.

    python bench/compat.py [--rounds 5] [--messages 20000] [--write]

Each round runs each program on both, one after the other, against one server of its own. The
figures are the CPU time of the client's process for each message, the least of all rounds.
`--write` puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from natsproto.testing import Server

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- begin of compat -->", "<!-- end of compat -->"
CLIENTS = ["nats", "natsproto.compat.nats"]
DATA = b"x" * 128


async def publish(nats: Any, url: str, count: int) -> float:
    """Publish to a subject without subscribers."""
    nc = await nats.connect(url)
    started = time.process_time()
    for _ in range(count):
        await nc.publish("bench", DATA)
    await nc.flush()
    spent = time.process_time() - started
    await nc.close()
    return spent


async def callback_subscriber(nats: Any, url: str, count: int) -> float:
    """Receive by a callback; the publisher is not measured."""
    nc = await nats.connect(url)
    done = asyncio.Event()
    left = count

    async def receive(msg: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    await nc.subscribe("bench", cb=receive)
    await nc.flush()
    publisher = await asyncio.create_subprocess_exec(
        *_publisher(url, count), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert publisher.stdin is not None
    assert publisher.stdout is not None
    await publisher.stdout.readline()
    started = time.process_time()
    publisher.stdin.write(b"go\n")
    await done.wait()
    spent = time.process_time() - started
    await publisher.wait()
    await nc.close()
    return spent


async def pull_worker(nats: Any, url: str, count: int) -> float:
    """Fetch and acknowledge, 100 messages at a time."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    await js.add_stream(name="PULL", subjects=["pull"], storage="memory")
    for _ in range(count):
        await nc.publish("pull", DATA)
    await nc.flush()
    sub = await js.pull_subscribe("pull", "worker")
    started = time.process_time()
    left = count
    while left:
        for msg in await sub.fetch(100, timeout=10):
            await msg.ack()
            left -= 1
    spent = time.process_time() - started
    await js.delete_stream("PULL")
    await nc.close()
    return spent


async def kv_watch(nats: Any, url: str, count: int) -> float:
    """Read the initial values of a watch."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    kv = await js.create_key_value(bucket="WATCH", storage="memory")
    for number in range(count):
        await nc.publish(f"$KV.WATCH.k{number}", DATA)
    await nc.flush()
    started = time.process_time()
    watcher = await kv.watchall()
    left = count
    while left:
        if await watcher.updates() is not None:
            left -= 1
    spent = time.process_time() - started
    await watcher.stop()
    await js.delete_key_value("WATCH")
    await nc.close()
    return spent


PROGRAMS = {
    "publish": publish,
    "callback subscriber": callback_subscriber,
    "pull worker, `fetch(100)` and acks": pull_worker,
    "key-value watch": kv_watch,
}
_PUBLISHER = """
import asyncio, sys
from natsproto.adapters.blocking import connect
with connect(sys.argv[1]) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[2])):
        client.publish("bench", b"x" * 128)
"""


def _publisher(url: str, count: int) -> list[str]:
    return [sys.executable, "-c", _PUBLISHER, url, str(count)]


def measure(rounds: int, count: int) -> dict[str, list[float]]:
    """Return microseconds of CPU for each message, by program, in the order of CLIENTS."""
    found: dict[str, list[list[float]]] = {name: [[], []] for name in PROGRAMS}
    with Server(jetstream=True) as server:
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                for place, client in enumerate(CLIENTS):
                    nats = importlib.import_module(client)
                    spent = asyncio.run(program(nats, server.url, count))
                    found[name][place].append(spent / count * 1e6)
    return {name: [min(each) for each in both] for name, both in found.items()}


def table(found: dict[str, list[float]]) -> str:
    """Return the table of the page."""
    lines = [
        "| program | nats-py, us | natsproto.compat.nats, us | ratio |",
        "|---|---:|---:|---:|",
    ]
    for name, (theirs, ours) in found.items():
        lines.append(f"| {name} | {theirs:.1f} | {ours:.1f} | {theirs / ours:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the table if that is wanted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = table(measure(options.rounds, options.messages))
    print(text)
    if options.write:
        page = PAGE.read_text()
        head, tail = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")


if __name__ == "__main__":
    main()
