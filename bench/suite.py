"""Every comparison with other clients, in one run whose figures are stored.

    python bench/suite.py [--rounds N] [--share S] [--only WORD ...]
    python bench/suite.py --check [--rounds N] [--only WORD ...]

_compare.py describes the method. The figures of every round are written to bench/results.json,
from which docs/generate/performance.py makes the tables and the chart of docs/performance.md.
`--share` scales the number of messages. With `--only`, the rows whose names contain one of the
words are measured and replaced; the others keep their figures.

`--check` stores nothing: it measures some of the rows in short, natsproto and nats-py alone, and
compares their ratios with the stored ones. Those that fell by more than 10 % are measured again, in
more rounds; if they still fell, they are reported, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import cold
import core
import kv
import pull
import push
import scaling
import streams
from _compare import PACKAGES, RAW, ROOT, collect
from _tables import versions
from figures import ALLOWED, OURS, RESULTS, Row, fallen, read, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from _compare import Program, Result, Scenario

PROGRAMS = [each.PROGRAM for each in (core, streams, pull, push, kv, scaling, cold)]
FIELDS = {"cpu": 4, "rate": 4, "p50": 4, "lost": 9}  # with their significant digits
MORE_ROUNDS = 3  # times as many, for rows that seem to have fallen


def chosen(program: Program, only: list[str], *, check: bool) -> list[Scenario]:
    return [
        each
        for each in program.scenarios
        if each.stored
        and (each.check or not check)
        and (not only or any(word in each.name for word in only))
    ]


def to_row(scenario: Scenario, results: list[Result], rounds: int) -> dict[str, Any]:
    """Return the figures of a row, by client and field, in the order of the rounds."""
    clients: dict[str, dict[str, list[float | None]]] = {}
    for result in results:
        if result["what"] != scenario.name:
            continue
        mine = clients.setdefault(result["who"], {})
        for field, digits in FIELDS.items():
            if result.get(field) is not None:
                values = mine.setdefault(field, [None] * rounds)
                values[result["round"]] = float(f"{result[field]:.{digits}g}")
    return {"name": scenario.name, "base": scenario.base, "clients": clients}


def run(
    programs: list[tuple[Program, list[Scenario]]],
    names: list[str],
    rounds: int,
    share: float,
    done: Callable[[list[dict[str, Any]]], None] = lambda rows: None,
) -> list[dict[str, Any]]:
    """Return the rows of all programs, after each of which `done` gets those that there are.

    If there are no names, all clients take part.
    """
    rows: list[dict[str, Any]] = []
    for program, scenarios in programs:
        if scenarios:
            everyone = [name for name in program.times if name != RAW]
            who = [name for name in everyone if name in names] if names else everyone
            before = os.getloadavg()[0]
            results = collect(program, scenarios, who, rounds, share)
            load = [round(before, 1), round(os.getloadavg()[0], 1)]
            about = {"load": load, "share": share}
            rows += [{**to_row(each, results, rounds), **about} for each in scenarios]
            done(rows)
            print(f"{len(rows)} rows measured, load {load[1]}", flush=True)
    return rows


def machine() -> dict[str, Any]:
    """Return what a reader must know of the machine and the versions to judge the figures."""
    node = shutil.which("node")
    found = versions().split(", ")
    if node and PACKAGES.is_dir():
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        package = PACKAGES / "@nats-io/transport-node/package.json"
        found.append(f"nats.js {json.loads(package.read_text())['version']}")
        found.append(f"Node {version.stdout.strip().removeprefix('v')}")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "versions": found,
        "commit": commit(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
    }


def commit() -> str:
    """Return the last commit of the measured library."""
    command = ["git", "log", "-1", "--format=%h", "--", "natsproto", "jetstream"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


def store(rows: list[dict[str, Any]], about: dict[str, Any], path: Path = RESULTS) -> None:
    """Write the rows, and keep those of earlier runs that were not measured again."""
    old = read(path)["rows"] if path.exists() else []
    new = {row["name"]: row for row in rows}
    order = [each.name for program in PROGRAMS for each in program.scenarios]
    merged = {row["name"]: row for row in old if row["name"] in order} | new
    kept = [merged[name] for name in order if name in merged]
    path.write_text(to_json({**about, "rows": kept}), encoding="utf-8")


def to_json(results: dict[str, Any]) -> str:
    """Return the results with one line per client, so that diffs are readable."""
    head = {key: value for key, value in results.items() if key != "rows"}
    lines = [json.dumps(head, indent=1)[:-2] + ',\n "rows": [']
    for row in results["rows"]:
        start = json.dumps({key: row[key] for key in ("name", "base", "date", "load", "share")})[
            :-1
        ]
        clients = [
            f"   {json.dumps(who)}: {json.dumps(row['clients'][who])}" for who in row["clients"]
        ]
        lines.append(f'  {start}, "clients": {{\n' + ",\n".join(clients) + "\n  }},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join(lines) + "\n ]\n}\n"


def check(only: list[str], rounds: int, share: float) -> int:
    """Compare a short run with the stored figures; return the exit status."""
    stored = read()
    python = platform.python_version()
    if not stored["versions"][0].endswith(python):
        print(f"the stored figures are of {stored['versions'][0]}, these of {python}")
    old = rows_of(stored)
    names = [*OURS, "nats-py", *cold.IMPORTS]
    clients = [*OURS, *cold.IMPORTS]
    programs = [(each, chosen(each, only, check=True)) for each in PROGRAMS]
    new = {row["name"]: Row(row) for row in run(programs, names, rounds, share)}
    suspects = {fall.row for fall in fallen(old, new, clients)}
    if suspects:
        print("measured again, in more rounds: " + ", ".join(sorted(suspects)), flush=True)
        again = [(p, [each for each in s if each.name in suspects]) for p, s in programs]
        for row in run(again, names, MORE_ROUNDS * rounds, share):
            new[row["name"]] = Row(row)
    falls = fallen(old, new, clients)
    for fall in falls:
        print(f"{fall.row}: {fall.client}: {fall.now:.2f} x, stored {fall.stored:.2f} x")
    print(f"{len(falls)} ratios below {ALLOWED:.0%} of the stored ones, of {len(new)} rows")
    return 1 if falls else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--share", type=float)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    options = parser.parse_args()
    if options.check:
        return check(options.only, options.rounds or 3, options.share or 0.5)
    about = machine()
    print(", ".join(about["versions"]), flush=True)
    rounds = options.rounds or 5
    programs = [(each, chosen(each, options.only, check=False)) for each in PROGRAMS]

    def keep(rows: list[dict[str, Any]]) -> None:
        store([{**row, "date": about["date"]} for row in rows], about)

    run(programs, [], rounds, options.share or 1.0, keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
