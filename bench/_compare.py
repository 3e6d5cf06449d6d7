"""How core.py, streams.py, pull.py and kv.py compare clients, and the options they all have.

In each round every client runs every scenario once, each time in a new process, in an order that
rotates. Rates are wall time, CPU is that of the client's process, system time included. "x"
compares with nats-py in the same round, more is better; all figures are medians of the rounds.

--quick: fewer rounds and messages, and the scenarios that are marked for it. --only: scenarios or
clients with that word in their name. A client that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from _tables import load, print_table, progress, versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    Result: TypeAlias = dict[str, Any]
    # Runs a client in a scenario, with so many messages; empty if there is no result.
    Measure: TypeAlias = Callable[[str, "Scenario", int], Result]
    # Has a server ready, for these scenarios and this share of their counts.
    Session: TypeAlias = Callable[[list["Scenario"], float], AbstractContextManager[Measure]]

BASE = "nats-py"
RAW = "raw socket"
TIMEOUT = 60.0
# The columns of a table, each of which is in CELLS.
RATE = ["msgs/s", "x", "CPU us", "CPU x", "of raw"]
LATENCY = ["p50 us", "of nats-py's", "p99 us", "CPU us", "CPU x"]


@dataclass(frozen=True)
class Scenario:
    """`count` is for nats-py; where rates are compared, faster clients get several times more."""

    name: str
    kind: str
    count: int
    size: int
    columns: list[str]
    quick: bool = False


class Row:
    """What a client did in a scenario, in all rounds."""

    def __init__(self, name: str, results: list[Result]) -> None:
        self._all = results  # of the scenario
        self.mine = [each for each in results if each["who"] == name]

    def middle(self, field: str) -> float:
        return median([each[field] for each in self.mine])

    def ratio(self, field: str, to: str = BASE, *, inverse: bool = False) -> float | None:
        """To another one in the same round; None if there is no other."""
        theirs = {each["round"]: each[field] for each in self._all if each["who"] == to}
        pairs = [(each[field], theirs.get(each["round"])) for each in self.mine]
        found = [b / a if inverse else a / b for a, b in pairs if b is not None]
        return median(found) if found else None

    def less(self, field: str) -> float | None:
        base = [each[field] for each in self._all if each["who"] == BASE]
        return median(base) - self.middle(field) if base else None

    def errors(self) -> str:
        """What was lost or doubled, for the name."""
        text = ""
        for word, sign in [("lost", 1), ("doubled", -1)]:
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


def compare(doc: str, scenarios: list[Scenario], times: dict[str, int], session: Session) -> None:
    """The program. `times`: how many times as many messages as nats-py each client gets."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 5)
    share = 0.5 if options.quick else 1.0

    by_name = {each.name: each for each in scenarios if each.quick or not options.quick}
    scenarios = [by_name[name] for name in chosen(list(by_name), options.only)]
    names = chosen(list(times), options.only)
    print(versions() + "\n" + load() + " at the start", flush=True)
    results: list[Result] = []
    with session(scenarios, share) as measure:
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    count = max(1, int(scenario.count * share))
                    if "x" in scenario.columns:
                        count *= times[name]
                    if result := measure(name, scenario, count):
                        result.update(round=turn, who=name, what=scenario.name)
                        results.append(result)
    progress("")
    print(load() + " at the end\n")
    for scenario in scenarios:
        print_table(tabulate(scenario, names, results), markdown=options.markdown)


def chosen(names: list[str], words: list[str]) -> list[str]:
    """Those with one of the words in them; all, if that is none."""
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
    """How the process of a client is started; a client's script is described in _client.py."""
    # .pyc files are there after the first round; the path is this one's, wherever that is from.
    words = [Path(__file__).with_name(script), name, scenario.kind, url, *rest]
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return {"args": [sys.executable, *map(str, words)], "env": env, "text": True}


def run_client(script: str, name: str, scenario: Scenario, url: str, *rest: object) -> Result:
    """Run it once; empty if the client is not installed, or failed."""
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
