"""The whole job: a real server, a stream of orders, four clients, two Spark queries, one check.

    python -m examples.orders [--events 100000] [--seed 7] [--spark auto|yes|no]

What everybody found is compared with what the generator knows; a difference is exit status 1.
Without Java the Spark part is left out, and only --spark yes makes that a failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from examples.orders import show
from examples.orders.generator import Totals, Windows, orders
from examples.orders.live import Live
from natsproto.testing import Server

if TYPE_CHECKING:
    from examples.orders.pipeline import Pipeline

JAVA = 17  # what Spark 4 asks for, at least
GET_JAVA = f"""Spark needs Java {JAVA} or later, which is not here. To get it:
  Debian, Ubuntu   apt install openjdk-{JAVA}-jre-headless
  Fedora           dnf install java-{JAVA}-openjdk-headless
  macOS            brew install openjdk@{JAVA}
  any system       https://adoptium.net
then run this again. The Spark part is left out."""


def has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    return java_version(said) >= JAVA


def java_version(said: str) -> int:
    """17 of `version "17.0.2"`; 1 of all before Java 9; 0 of something else."""
    version = said.partition('version "')[2].partition('"')[0].partition(".")[0]
    return int(version) if version.isdigit() else 0


def run_live(url: str, events: int, seed: int) -> Live:
    live = Live(url, events, seed)
    live.start()
    with show.progress() as progress:
        bars = [(progress.add_task(part.name, total=part.total), part) for part in live.parts]
        over = False
        while not over:
            over = live.over(0.1)
            for bar, part in bars:
                progress.update(bar, completed=part.count)
    return live


def check_live(live: Live, totals: Totals) -> list[str]:
    wrong = [f"{name}: it failed" for name in live.failed()]
    wrong += [
        f"{part.name}: {part.count:,} orders of {show.money(part.cents)}, not {totals.count:,}"
        f" of {show.money(totals.cents)}"
        for part in live.parts
        if (part.count, part.cents) != (totals.count, totals.cents)
    ]
    unacked = live.unacked()
    if unacked:
        wrong.append(f"{unacked:,} messages are not acknowledged")
    rows = [
        [part.name, f"{part.count:,}", f"{part.seconds:.2f}", f"{part.count / part.seconds:,.0f}"]
        for part in live.parts
    ]
    columns = ["side by side", "messages", "seconds", "messages/s"]
    show.table("Live: one stream, three runtimes", columns, rows)
    return wrong


def run_queries(pipeline: Pipeline, orders: int) -> None:
    pipeline.start()
    with show.progress() as progress:
        bar = progress.add_task("two Spark queries", total=2 * orders)
        over = False
        while not over:
            over = pipeline.over(0.2)
            progress.update(bar, completed=pipeline.rows)
    show.console.print()


def run_spark(url: str, totals: Totals, directory: Path) -> list[str]:
    from examples.orders.pipeline import WATERMARK, Pipeline, start_session

    log = directory / "spark.log"
    began = time.perf_counter()
    try:
        with show.console.status("Spark is starting"):
            spark = start_session(log)
        started = time.perf_counter() - began
        pipeline = Pipeline(spark, url, directory)
        run_queries(pipeline, totals.count)
        progress = pipeline.progress()
        began = time.perf_counter()
        with show.console.status("reading back what was written"):
            found = {
                "stream REVENUE": pipeline.stored_in_stream(),
                "Parquet": pipeline.stored_in_parquet(),
            }
        reading = time.perf_counter() - began
        spark.stop()
    except Exception:
        show.console.print(log.read_text(errors="replace")[-4000:])
        raise
    expected = totals.closed(WATERMARK)
    wrong = [
        f"{name}: {len(windows):,} windows, {len(set(windows.items()) ^ set(expected.items())):,}"
        f" differences from the {len(expected):,} of the generator"
        for name, windows in found.items()
        if windows != expected
    ]
    show_revenue(expected)
    rows = [["start of Spark", "", f"{started:.1f}", ""]]
    rows += [
        [f"query {name}", f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}"]
        for name, (count, seconds) in progress.items()
    ]
    rows.append(["read back", f"{len(expected):,} windows, twice", f"{reading:.1f}", ""])
    show.table("Spark: two queries side by side", ["part", "rows", "seconds", "rows/s"], rows)
    return wrong


def show_revenue(windows: Windows) -> None:
    by_region: Counter[str] = Counter()
    for (_, region), cents in windows.items():
        by_region[region] += cents
    rows = [[region, show.money(cents)] for region, cents in by_region.most_common()]
    show.table("Revenue by region", ["region", "revenue"], rows)
    show.chart(windows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.orders")
    parser.add_argument("--events", type=int, default=100_000, help="how many orders (100,000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--spark", choices=["auto", "yes", "no"], default="auto")
    asked = parser.parse_args()
    with_spark = asked.spark != "no" and has_java()
    with tempfile.TemporaryDirectory() as directory, Server(jetstream=True) as server:
        version = ".".join(map(str, server.version))
        show.console.print(f"nats-server {version}: {asked.events:,} orders\n")
        live = run_live(server.url, asked.events, asked.seed)
        show.console.print()
        totals = Totals(orders(asked.events, asked.seed))
        wrong = check_live(live, totals)
        if with_spark and not wrong:
            wrong = run_spark(server.url, totals, Path(directory))
    if asked.spark != "no" and not with_spark:
        show.console.print(GET_JAVA)
        if asked.spark == "yes":
            return 1
    for each in wrong:
        show.console.print(f"wrong: {each}")
    if not wrong:
        show.console.print(
            f"All found what was ordered: {totals.count:,} orders of {show.money(totals.cents)}."
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
