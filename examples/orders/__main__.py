"""The whole job: a real server, a stream of orders, four clients, two Spark queries, one check.

    python -m examples.orders [--events 1000000] [--seed 7] [--spark auto|yes|no] [--lite]

All results are compared with what the generator knows; a difference is exit status 1. On the way
the server and workers of Spark are killed (not with --no-faults), and the sums must still be exact.
A report with charts is written (--report). --lite runs only the clients: it needs neither Java nor
PySpark. Without Java the Spark part is omitted, and only --spark yes makes that a failure.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples.orders import show
from examples.orders.generator import Totals, orders
from examples.orders.phases import Outcome, run_live
from examples.orders.report import write_report
from natsproto.testing import Server

EVENTS = 1_000_000
LIVE = 100_000  # orders that the clients consume; with --lite also the default of --events
JAVA = 17  # the oldest that Spark 4 supports
GET_JAVA = f"""Spark needs Java {JAVA} or later, which is not installed. To get it:
  Debian, Ubuntu   apt install openjdk-{JAVA}-jre-headless
  Fedora           dnf install java-{JAVA}-openjdk-headless
  macOS            brew install openjdk@{JAVA}
  any system       https://adoptium.net
then run this again. The Spark part is omitted."""
GET_PYSPARK = (
    "PySpark is not installed: `pip install 'natsproto[spark]'`. The Spark part is omitted."
)


def has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    return java_version(said) >= JAVA


def java_version(said: str) -> int:
    """Return 17 for `version "17.0.2"`, 1 for all before Java 9, 0 for something else."""
    version = said.partition('version "')[2].partition('"')[0].partition(".")[0]
    return int(version) if version.isdigit() else 0


def missing_for_spark() -> str:
    """Return what to install for the Spark part; "" if it can run."""
    if importlib.util.find_spec("pyspark") is None:
        return GET_PYSPARK
    return "" if has_java() else GET_JAVA


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.orders")
    parser.add_argument(
        "--events", type=int, help=f"number of orders ({EVENTS:,}; with --lite {LIVE:,})"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--spark", choices=["auto", "yes", "no"], default="auto")
    parser.add_argument("--lite", action="store_true", help="without Spark; like --spark no")
    parser.add_argument("--no-faults", action="store_true", help="kill neither server nor workers")
    parser.add_argument("--report", type=Path, default=Path("build", "orders.html"))
    asked = parser.parse_args()
    if asked.events is not None and asked.events < 1:
        parser.error(f"--events {asked.events}: at least 1")
    if asked.lite:
        asked.spark = "no"
    return asked


def main() -> int:
    asked = parse()
    missing = "" if asked.spark == "no" else missing_for_spark()
    with_spark = asked.spark != "no" and not missing
    events = asked.events or (EVENTS if with_spark else LIVE)
    faults = not asked.no_faults
    first = min(events, LIVE) if with_spark else events
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as directory, Server(jetstream=True) as server:
        version = ".".join(map(str, server.version))
        show.console.print(f"nats-server {version}: {events:,} orders\n")
        totals = Totals(orders(first, asked.seed))
        outcomes.append(run_live(server, totals, asked.seed, with_faults=faults and not with_spark))
        if with_spark and not outcomes[0].wrong:
            from examples.orders.spark_phase import run_spark

            totals = Totals(orders(events, asked.seed))
            found = run_spark(
                server, totals, asked.seed, first, Path(directory), with_faults=faults
            )
            outcomes.append(found)
    show.revenue(outcomes[-1].windows)
    if missing:
        show.console.print(missing)
    write_report(asked.report, outcomes, totals, version)
    show.console.print(f"Report with charts: {asked.report.resolve().as_uri()}", soft_wrap=True)
    wrong = [text for outcome in outcomes for text in outcome.wrong]
    for text in wrong:
        show.console.print(f"wrong: {text}")
    if not wrong:
        show.console.print(
            f"All found what was ordered: {totals.count:,} orders of {show.money(totals.cents)}."
        )
    return 1 if wrong or (missing and asked.spark == "yes") else 0


if __name__ == "__main__":
    sys.exit(main())
