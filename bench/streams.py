"""Publishing to a stream: natsproto's JetStream on every runtime against other clients.

    python bench/streams.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

As core.py does it: in each round every client runs every scenario once, in a new process, in an
order that rotates; all figures are medians of the rounds. The stream is in memory and keeps the
last 10,000 messages. Whatever a client was told is stored must be: the stream's sequence tells.

sequential: each publish waits for its acknowledgement; microseconds, and CPU a publish.
window: 1000 acknowledgements are outstanding at a time, as each library has it.
load: many messages in the cheapest way that a library has: fast batches, or else its window.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _streams import CONTENDERS, SUBJECT, WINDOW
from core import TIMEOUT, Scenario, chosen, print_table, progress, versions
from core import summarize as summarize_core

from jetstream.blocking import JetStream, Stream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from core import Result

SCENARIOS = [
    Scenario("publish, sequential, 128 B", "sequential", 2_000, 128, quick=True),
    Scenario("publish, window 1000, 128 B", "window", 20_000, 128, quick=True),
    Scenario("publish, window 1000, 16 KiB", "window", 4_000, 16 * 1024),
    Scenario("load a stream, 128 B", "load", 20_000, 128, quick=True),
]
HEADS = {
    "sequential": ["p50 us", "of nats-py's", "p99 us", "CPU us", "CPU x"],
    "window": ["msgs/s", "x", "CPU us", "CPU x", "of raw"],
    "load": ["msgs/s", "x", "CPU us", "CPU x", "of raw"],
}
# How core.py makes the rows of each kind.
LIKE = {"sequential": "request", "window": "publish", "load": "publish"}


def measure(name: str, scenario: Scenario, count: int, server: Server, stream: Stream) -> Result:
    """Run it once; empty if the client is not installed."""
    script = str(Path(__file__).with_name("_streams.py"))
    before = stream.info().state.last_seq
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
    warm_up = max(20, count // 20) if scenario.kind == "sequential" else 2 * WINDOW
    result["lost"] = before + warm_up + count - stream.info().state.last_seq
    return result


def run(scenarios: list[Scenario], names: list[str], rounds: int, share: float) -> list[Result]:
    """Every result, with the round, the scenario and the client in it."""
    results: list[Result] = []
    with Server(jetstream=True) as server, connect(server.url) as client:
        stream = JetStream(client).create_stream(
            name="BENCH",
            subjects=[SUBJECT],
            storage="memory",
            max_msgs=10_000,
            allow_batched=True,
        )
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    count = int(scenario.count * share)
                    if scenario.kind != "sequential":
                        count = count * CONTENDERS[name][1] // WINDOW * WINDOW
                    result = measure(name, scenario, count, server, stream)
                    if result:
                        results.append(
                            {**result, "round": turn, "who": name, "what": scenario.name}
                        )
    progress("")
    return results


def summarize(scenario: Scenario, name: str, results: list[Result]) -> list[str]:
    like = Scenario(scenario.name, LIKE[scenario.kind], scenario.count, scenario.size)
    return summarize_core(like, name, results)


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
