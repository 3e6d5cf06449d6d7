"""The Spark phase of the demo: a cold start, then two queries while workers and the server die."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING

from examples.orders import faults, show
from examples.orders.generator import Totals, orders
from examples.orders.live import Work, publish
from examples.orders.phases import POLL, Outcome, compare
from examples.orders.pipeline import LOG, WATERMARK, Pipeline, start_session
from examples.orders.tracks import Clock, Track
from examples.orders.view import View
from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from examples.orders.pipeline import MicroBatch
    from natsproto.testing import Server

WARM_UP = 20_000  # orders of the queries that warm Spark up
BACKLOG = 0.5  # share of the orders that are in the stream before the queries start
KILL_WORKERS, KILL_SERVER = 0.35, 0.65  # when this share has been read
LONG = 200_000  # orders from which on Java's best compiler pays


class Shop:
    """Publishes the rest of the orders in its own process: a backlog, and more on request."""

    def __init__(self, url: str, seed: int, skip: int, count: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.work = Work("shop", count)
        self._backlog = int(count * BACKLOG)
        self._go = spawn.Event()
        arguments = (url, seed, self.work, skip, self._backlog, self._go)
        self._process = spawn.Process(target=publish, args=arguments)
        self._process.start()

    def wait_for_backlog(self) -> None:
        while self.work.count < self._backlog and self._process.is_alive():
            time.sleep(POLL)

    def go_on(self) -> None:
        self._go.set()

    @property
    def over(self) -> bool:
        return not self._process.is_alive()

    def check(self) -> None:
        """Raise RuntimeError if the process failed."""
        if self._process.exitcode:
            raise RuntimeError("the shop failed; its process has shown the error")

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def warm_up(spark: SparkSession, url: str, directory: Path) -> float:
    """Run both queries over a small stream of their own; return the seconds.

    Java loads Spark's classes and compiles them, and Spark starts its Python workers.
    """
    began = time.perf_counter()
    with connect(url) as client:
        js = JetStream(client)
        js.create_stream(name="WARMUP", subjects=["warm.>"])
        with client.corked(), js.publisher(max_pending=1000) as publisher:
            for order in orders(WARM_UP, 1):
                publisher.publish(f"warm.{order.region}", order.encode())
    pipeline = Pipeline(spark, url, directory, "WARMUP", "WARMED")
    pipeline.start()
    while pipeline.active or pipeline.restart_failed():
        time.sleep(POLL)
    pipeline.stored_in_stream()
    pipeline.count()
    return time.perf_counter() - began


def follow(pipeline: Pipeline, shop: Shop, server: Server, done: int, *, with_faults: bool) -> View:
    """Run both queries while the shop publishes; kill workers and the server on the way.

    Returns the view with its tracks and events, when everything was read.
    """
    clock = Clock()
    total = done + shop.work.total
    pipeline.start(follow=True)
    tracks = [Track("shop", total, reads=False)]
    tracks += [Track(f"query {name}", total) for name in pipeline.names]
    outage = faults.Outage(server, clock)
    killed = not (with_faults and faults.CAN_KILL_WORKERS)
    with View("Spark: two queries side by side", tracks, clock) as view:
        while not (shop.over and all(track.count == total for track in tracks)):
            time.sleep(POLL)
            for name in pipeline.restart_failed():
                view.event(f"query {name} failed, and starts again from its checkpoint")
            published = done + shop.work.count
            counts = [published, *pipeline.rows().values()]
            for track, count in zip(tracks, counts):
                track.add(clock(), count, published)
            if max(counts[1:]) > 0:
                shop.go_on()
            share = min(counts) / total
            if not killed and share >= KILL_WORKERS:
                pids = faults.kill_workers()
                killed = pids > 0
                if killed:
                    view.event(f"{pids} Python workers of Spark were killed")
            if with_faults and not outage.began and share >= KILL_SERVER:
                outage.begin()
                view.event("the server was killed")
            if outage.end_if_due():
                view.event("the server is back")
            shop.check()
            view.update()
        if outage.end():
            view.event("the server is back")
        pipeline.finish()
    return view


def run_spark(
    server: Server, totals: Totals, seed: int, done: int, directory: Path, *, with_faults: bool
) -> Outcome:
    """Publish the rest of the orders, and have Spark add up all of them."""
    log = directory / LOG
    shop = Shop(server.url, seed, done, totals.count - done)
    try:
        began = time.perf_counter()
        with show.console.status("Spark is starting, and orders pile up in the stream"):
            spark = start_session(directory, quick=totals.count < LONG)
            starting = time.perf_counter() - began
            warming = warm_up(spark, server.url, directory)
            shop.wait_for_backlog()
        cold = [["start of Spark", f"{starting:.1f}"], ["first queries", f"{warming:.1f}"]]
        show.table("Spark, cold: not part of the rates below", ["part", "seconds"], cold)
        pipeline = Pipeline(spark, server.url, directory)
        view = follow(pipeline, shop, server, done, with_faults=with_faults)
        batches = pipeline.batches()
        with show.console.status("reading back the results"):
            found = {
                "stream REVENUE": pipeline.stored_in_stream(),
                "Parquet": pipeline.stored_in_parquet(),
            }
            began = time.perf_counter()
            counted = pipeline.count()
            counting = time.perf_counter() - began
        spark.stop()
    except BaseException:
        shop.stop()
        if log.exists():
            show.console.print(log.read_text(errors="replace")[-4000:], soft_wrap=True)
        raise
    expected = totals.closed(WATERMARK)
    wrong = compare(found, expected)
    if counted != (totals.count, totals.cents):
        wrong.append(f"batch read: {counted[0]:,} orders of {show.money(counted[1])}")
    return Outcome(
        "Spark",
        view.tracks,
        view.events,
        expected,
        wrong,
        {f"query {name}": rates_of(each, view.clock) for name, each in batches.items()},
        show_spark(batches, totals.count, counting),
    )


def rates_of(batches: list[MicroBatch], clock: Clock) -> list[tuple[float, float]]:
    """Return the rate over time of a query, in steps: a step is a micro-batch."""
    steps: list[tuple[float, float]] = []
    for batch in batches:
        at = (batch.began - clock.began).total_seconds()
        rate = batch.rows / batch.seconds
        steps += [(max(0.0, at), rate), (at + batch.seconds, rate)]
    return steps


def show_spark(
    batches: dict[str, list[MicroBatch]], total: int, counting: float
) -> list[tuple[str, str]]:
    """Print the rates of the queries and of a batch read; return them for the report."""
    rows: list[list[str]] = []
    for name, found in batches.items():
        count = sum(batch.rows for batch in found)
        spent = sum(batch.seconds for batch in found)
        best = max(batch.rows / batch.seconds for batch in found)
        rows.append(
            [
                f"query {name}",
                f"{count:,}",
                f"{spent:.1f}",
                f"{count / spent:,.0f}",
                f"{best:,.0f}",
            ]
        )
    rate = f"{total / counting:,.0f}"
    rows.append(["batch read, alone", f"{total:,}", f"{counting:.1f}", rate, rate])
    columns = ["part", "rows", "seconds", "rows/s", "best batch"]
    show.table("Spark, warm", columns, rows)
    return [(f"{row[0]}: rows per second", row[3]) for row in rows]
