"""How the programs that compare clients do it, and their common options.

In each round every client runs every scenario once, each time in a new process, in rotating order.
Rates are wall time, and CPU is that of the client's process, including system time. "x" compares
with nats-py in the same round, and higher is better; all figures are medians of the rounds.
suite.py runs the scenarios of all these programs and stores the figures of every round.

--quick: fewer rounds and messages, and only the scenarios marked for it. --only: scenarios or
clients whose names contain one of the words. A client that is not installed is omitted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from _tables import load, print_table, progress, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    Result: TypeAlias = dict[str, Any]
    # Runs a client in a scenario, with so many messages; empty if there is no result.
    Measure: TypeAlias = Callable[[str, "Scenario", int], Result]
    # Has a server ready, for these scenarios and this share of their counts.
    Session: TypeAlias = Callable[[list["Scenario"], float], AbstractContextManager[Measure]]

BASE = "nats-py"
RAW = "raw socket"
NODE = "nats.js"
ROOT = Path(__file__).parent.parent
# Where run.py installs nats.js.
PACKAGES = Path(os.environ.get("BENCH_NODE", ROOT / ".venv/bench/node")) / "node_modules"
TIMEOUT = 60.0
# The columns of a table, each of which is in CELLS.
RATE = ["msgs/s", "x", "CPU us", "CPU x", "of raw"]
LATENCY = ["p50 us", "of nats-py's", "p99 us", "CPU us", "CPU x"]


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    count  messages for nats-py; where rates are compared, faster clients get more unless `even`
    quick  the scenario is part of `--quick`
    check  the scenario is part of `make bench-check`
    stored the scenario is part of suite.py
    whole  short runs have as many messages: the cost of each depends on how many there are
    base   the client that the others are compared with
    """

    name: str
    kind: str
    count: int
    size: int
    columns: list[str]
    quick: bool = False
    check: bool = False
    even: bool = False
    stored: bool = True
    whole: bool = False
    base: str = BASE


@dataclass(frozen=True)
class Program:
    """A program that compares clients: its scenarios, and how it runs them.

    times  how many times as many messages as nats-py each client gets, by its name
    """

    doc: str
    scenarios: list[Scenario]
    times: Mapping[str, float]
    session: Session


class Row:
    """The results of a client in a scenario, in all rounds."""

    def __init__(self, name: str, results: list[Result]) -> None:
        self._all = results  # of the scenario
        self.mine = [each for each in results if each["who"] == name]

    def middle(self, field: str) -> float:
        return median([each[field] for each in self.mine])

    def ratio(self, field: str, to: str = BASE, *, inverse: bool = False) -> float | None:
        """Return the ratio to another row in the same round; None if there is no other."""
        theirs = {each["round"]: each[field] for each in self._all if each["who"] == to}
        pairs = [(each[field], theirs.get(each["round"])) for each in self.mine]
        found = [b / a if inverse else a / b for a, b in pairs if b is not None]
        return median(found) if found else None

    def less(self, field: str) -> float | None:
        base = [each[field] for each in self._all if each["who"] == BASE]
        return median(base) - self.middle(field) if base else None

    def errors(self) -> str:
        """Return the note on lost or duplicated messages that follows the name."""
        text = ""
        for word, sign in [("lost", 1), ("duplicated", -1)]:
            count = sum(max(0, sign * int(each.get("lost", 0))) for each in self.mine)
            if count:
                text += f" ({count} {word})"
        return text


CELLS: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "msgs/s": ("{:,.0f}k", lambda row: row.middle("rate") / 1000),
    "keys/s": ("{:,.0f}k", lambda row: row.middle("rate") / 1000),
    "x": ("{:.2f}", lambda row: row.ratio("rate")),
    "of raw": ("{:.0%}", lambda row: row.ratio("rate", RAW)),
    "p50 us": ("{:.0f}", lambda row: row.middle("p50")),
    "of nats-py's": ("{:.2f}", lambda row: row.ratio("p50")),
    "p99 us": ("{:.0f}", lambda row: row.middle("p99")),
    "CPU us": ("{:.2f}", lambda row: row.middle("cpu")),
    "CPU x": ("{:.2f}", lambda row: row.ratio("cpu", inverse=True)),
    "MB connected": ("{:.1f}", lambda row: row.middle("connected")),
    "less than nats-py": ("{:.1f}", lambda row: row.less("connected")),
    "MB more": ("{:.2f}", lambda row: row.middle("more")),
}


def compare(program: Program) -> None:
    """Run one program by itself and print its tables."""
    parser = argparse.ArgumentParser(description=program.doc.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 5)
    share = 0.5 if options.quick else 1.0

    by_name = {each.name: each for each in program.scenarios if each.quick or not options.quick}
    scenarios = [by_name[name] for name in chosen(list(by_name), options.only)]
    names = chosen(list(program.times), options.only)
    print(versions() + "\n" + load() + " at the start", flush=True)
    results = collect(program, scenarios, names, rounds, share)
    print(load() + " at the end\n")
    for scenario in scenarios:
        print_table(tabulate(scenario, names, results), markdown=options.markdown)


def collect(
    program: Program, scenarios: list[Scenario], names: list[str], rounds: int, share: float
) -> list[Result]:
    """Run the clients in interleaved rounds; return a result for each run that succeeded."""
    results: list[Result] = []
    with program.session(scenarios, share) as measure:
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    part = 1.0 if scenario.whole else share
                    count = max(1, int(scenario.count * part))
                    if "x" in scenario.columns and not scenario.even:
                        count = max(1, int(count * program.times[name]))
                    if result := measure(name, scenario, count):
                        result.update(round=turn, who=name, what=scenario.name)
                        results.append(result)
    progress("")
    return results


def chosen(names: list[str], words: list[str]) -> list[str]:
    """Return the names that contain one of the words; all of them if there are no words."""
    return [name for name in names if any(word in name for word in words)] or names


def tabulate(scenario: Scenario, names: list[str], results: list[Result]) -> list[list[str]]:
    mine = [each for each in results if each["what"] == scenario.name]
    table = [[scenario.name, *scenario.columns]]
    for name in names:
        row = Row(name, mine)
        if row.mine:
            cells = [(form, value(row)) for form, value in map(CELLS.get, scenario.columns)]
            texts = ["-" if value is None else form.format(value) for form, value in cells]
            table.append([name + row.errors(), *texts])
    return table


def command(script: str, name: str, scenario: Scenario, url: str, *rest: object) -> dict[str, Any]:
    """Return the command that starts the process of a client; _client.py describes the scripts."""
    if name == NODE:
        # One script has all the scenarios, so the name of the Python script is an argument.
        words = [Path(__file__).with_name("nats.cjs"), Path(script).stem, scenario.kind, url, *rest]
        node = shutil.which("node") or "node"
        return {
            "args": [node, *map(str, words)],
            "env": {"NODE_PATH": str(PACKAGES)},
            "text": True,
        }
    # .pyc files are there after the first round; the path is this one's, wherever that is from.
    words = [Path(__file__).with_name(script), name, scenario.kind, url, *rest]
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return {"args": [sys.executable, *map(str, words)], "env": env, "text": True}


def is_missing(name: str) -> bool:
    """Report whether the client needs Node or packages that are not there."""
    return name == NODE and not (shutil.which("node") and PACKAGES.is_dir())


def run_client(script: str, name: str, scenario: Scenario, url: str, *rest: object) -> Result:
    """Run the client once; return an empty result if it is not installed or failed."""
    if is_missing(name):
        return {}
    try:
        run = subprocess.run(
            **command(script, name, scenario, url, *rest), capture_output=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        last, why = "", f"it took longer than {TIMEOUT:.0f} s"
    else:
        last, why = [text.strip().rpartition("\n")[2] for text in (run.stdout, run.stderr)]
    if last == "absent":
        return {}
    if not last:
        print(f"{name}: {scenario.name}: no result: {why}", file=sys.stderr)
        return {}
    result: Result = json.loads(last)
    return result
