"""Pulling from a stream: natsproto's JetStream on every runtime against other clients.

    python bench/pull.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

As core.py does it: in each round every client runs every scenario once, in a new process, in an
order that rotates; all figures are medians of the rounds. The streams are in memory and filled
beforehand; each run has a consumer of its own, which the server is asked about in the end. Nothing
may be lost, delivered twice or left without acknowledgement.

fetch(n) + ack: fetches of n messages, each acknowledged.
consume: a buffer of 500, refilled by the library; nats-py has no such thing and fetches 500.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _pull import CONTENDERS, HEADER, KINDS, WARM_UP
from core import TIMEOUT, Scenario, chosen, print_table, progress, summarize, versions

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from core import Result

SCENARIOS = [
    Scenario("fetch(100) + ack, 128 B", "fetch100", 8_000, 128, quick=True),
    Scenario("fetch(500) + ack, 128 B", "fetch500", 10_000, 128),
    Scenario("consume, ack each, 128 B", "consume", 10_000, 128, quick=True),
    Scenario("consume, ack none, 128 B", "none", 15_000, 128),
    Scenario("consume, two headers, ack, 128 B", "headers", 10_000, 128),
    Scenario("consume, ack each, 16 KiB", "consume", 1_000, 16 * 1024),
]
HEADS = ["msgs/s", "x", "CPU us", "CPU x", "of raw"]
_numbers = itertools.count(1)


def stream_of(scenario: Scenario) -> str:
    return f"S{scenario.size}" + ("H" if scenario.kind == "headers" else "")


def fill(js: JetStream, scenarios: list[Scenario], share: float) -> None:
    """A stream for each kind of messages, with as many as the fastest of its clients takes."""
    most = max(times for _, times in CONTENDERS.values())
    for name in sorted({stream_of(each) for each in scenarios}):
        mine = [each for each in scenarios if stream_of(each) == name]
        js.create_stream(name=name, subjects=["pull." + name], storage="memory")
        count = int(max(each.count for each in mine) * share) * most + 2 * WARM_UP
        headers = {HEADER: "4711", "Order-Kind": "coffee"} if name.endswith("H") else None
        size = mine[0].size
        with js.publisher() as window:
            for number in range(count):
                data = b"%08d" % number + bytes(size - 8)
                if headers:
                    window.publish("pull." + name, data, headers=headers)
                else:
                    window.publish("pull." + name, data)


def measure(name: str, scenario: Scenario, count: int, server: Server, js: JetStream) -> Result:
    """Run it once; empty if the client is not installed."""
    stream = stream_of(scenario)
    ack = KINDS[scenario.kind][1]
    consumer = js.create_consumer(
        stream,
        durable_name=f"c{next(_numbers)}",
        ack_policy="explicit" if ack else "none",
        max_ack_pending=20_000,
        mem_storage=True,
    )
    script = str(Path(__file__).with_name("_pull.py"))
    command = [sys.executable, script, name, scenario.kind, server.url, stream, consumer.name]
    try:
        run = subprocess.run(
            [*command, str(count)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        )
        last = run.stdout.strip().rpartition("\n")[2]
        why = run.stderr.strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired:
        last, why = "", f"it took longer than {TIMEOUT:.0f} s"
    info = consumer.info()
    consumer.delete()
    if last == "absent":
        return {}
    if not last:
        print(f"{name}: {scenario.name}: no result: {why}", file=sys.stderr)
        return {}
    result: Result = json.loads(last)
    lost = int(result.get("lost", 0))
    if ack:
        lost = lost or WARM_UP + count - info.ack_floor.stream_seq
    result["lost"] = lost or info.delivered.stream_seq - info.delivered.consumer_seq
    return result


def run(scenarios: list[Scenario], names: list[str], rounds: int, share: float) -> list[Result]:
    """Every result, with the round, the scenario and the client in it."""
    results: list[Result] = []
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        progress("the streams are filled")
        fill(js, scenarios, share)
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    count = int(scenario.count * share) * CONTENDERS[name][1]
                    result = measure(name, scenario, count, server, js)
                    if result:
                        results.append(
                            {**result, "round": turn, "who": name, "what": scenario.name}
                        )
    progress("")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()

    scenarios = [each for each in SCENARIOS if each.quick or not options.quick]
    scenarios = chosen(scenarios, [each.name for each in scenarios], options.only)
    names = chosen(list(CONTENDERS), list(CONTENDERS), options.only)
    rounds = options.rounds or (2 if options.quick else 5)
    print(versions())
    print(f"load {os.getloadavg()[0]:.1f} at the start", flush=True)
    results = run(scenarios, names, rounds, 0.5 if options.quick else 1.0)
    print(f"load {os.getloadavg()[0]:.1f} at the end\n")
    for scenario in scenarios:
        like = Scenario(scenario.name, "publish", scenario.count, scenario.size)
        rows = [summarize(like, name, results) for name in names]
        table = [[scenario.name, *HEADS], *[row for row in rows if row]]
        print_table(table, markdown=options.markdown)


if __name__ == "__main__":
    main()
