"""The key-value store: natsproto on every runtime against nats-py.

    python bench/kv.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

As core.py does it: in each round every client runs every scenario once, in a new process, in an
order that rotates; all figures are medians of the rounds. The bucket is in memory and has 10,000
keys of 128 bytes. Every client must find all of them.

get, put: one after the other; microseconds, and CPU for each.
watch: the initial values of all keys, entry by entry. keys: the list of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _kv import BUCKET, CONTENDERS, KEYS
from core import TIMEOUT, Scenario, chosen, print_table, progress, versions
from core import summarize as summarize_core

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from core import Result

SIZE = 128
SCENARIOS = [
    Scenario("get, 128 B", "get", 2_000, SIZE, quick=True),
    Scenario("put, 128 B", "put", 2_000, SIZE, quick=True),
    Scenario("watch 10,000 keys, 128 B", "watch", 3, SIZE, quick=True),
    Scenario("keys, 10,000 of them", "keys", 3, SIZE, quick=True),
]
LATENCY = ["p50 us", "of nats-py's", "p99 us", "CPU us", "CPU x"]
RATE = ["keys/s", "x", "CPU us", "CPU x"]
HEADS = {"get": LATENCY, "put": LATENCY, "watch": RATE, "keys": RATE}
# How core.py makes the rows of each kind.
LIKE = {"get": "request", "put": "request", "watch": "publish", "keys": "publish"}


def measure(name: str, scenario: Scenario, count: int, server: Server) -> Result:
    """Run it once; empty if the client is not installed."""
    script = str(Path(__file__).with_name("_kv.py"))
    run = subprocess.run(
        [sys.executable, script, name, scenario.kind, server.url, str(count), str(scenario.size)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    last = run.stdout.strip().rpartition("\n")[2]
    if last == "absent":
        return {}
    if not last:
        why = run.stderr.strip().rpartition("\n")[2]
        print(f"{name}: {scenario.name}: no result: {why}", file=sys.stderr)
        return {}
    result: Result = json.loads(last)
    return result


def run(scenarios: list[Scenario], names: list[str], rounds: int, share: float) -> list[Result]:
    """Every result, with the round, the scenario and the client in it."""
    results: list[Result] = []
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_key_value(bucket=BUCKET, storage="memory")
        with js.publisher() as window:
            for number in range(KEYS):
                window.publish(f"$KV.{BUCKET}.orders.{number}", bytes(SIZE))
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    count = max(1, int(scenario.count * share))
                    result = measure(name, scenario, count, server)
                    if result:
                        results.append(
                            {**result, "round": turn, "who": name, "what": scenario.name}
                        )
    progress("")
    return results


def summarize(scenario: Scenario, name: str, results: list[Result]) -> list[str]:
    like = Scenario(scenario.name, LIKE[scenario.kind], scenario.count, scenario.size)
    return summarize_core(like, name, results)[: 1 + len(HEADS[scenario.kind])]


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
    print(versions() + "\n", flush=True)
    results = run(scenarios, names, rounds, 0.5 if options.quick else 1.0)
    for scenario in scenarios:
        rows = [summarize(scenario, name, results) for name in names]
        table = [[scenario.name, *HEADS[scenario.kind]], *[row for row in rows if row]]
        print_table(table, markdown=options.markdown)


if __name__ == "__main__":
    main()
