"""The window that the sink needs (option maxInFlight): three replicas, locally and 20 ms away.

    python bench/spark_window.py [--quick] [--rounds N] [--count N] [--markdown]

It writes with delivery=dedup like a task of Spark, but without Spark: rows of 128 B from Arrow
batches, each with an id, to a file stream on three servers of this machine. The distance is
simulated by a proxy between the sink and the leader of the stream, which forwards every byte 10 ms
later. Every window runs once per round; rates are medians, and ratios are per round.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from typing import TYPE_CHECKING

from _tables import load, print_table, progress, versions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from jetstream.spark.options import Settings

WINDOWS = [256, 1024, 4096, 16384]
DEFAULT = 4096
SIZE = 128
ONE_WAY = 0.010
PLACES = ["here", "20 ms away"]


def run_proxy(port: int, report: Connection) -> None:
    """Forward to a server from a separate process; report the own port first."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(1 << 20):
            loop.call_later(ONE_WAY, writer.write, data)
        loop.call_later(ONE_WAY, writer.close)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, there[1]), forward(there[0], writer))

    async def serve() -> None:
        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        report.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def write(settings: Settings, window: int, count: int) -> float:
    """Return the rows per second; the connection exists already."""
    import pyarrow as pa

    from jetstream.spark.connect import client, jetstream
    from jetstream.spark.encoder import Encoder
    from jetstream.spark.sending import Sender

    batch = pa.RecordBatch.from_pydict({"data": [bytes(SIZE)] * 10_000})
    encoder = Encoder(settings, os.urandom(4).hex())
    start = time.perf_counter()
    with Sender(client(settings), jetstream(settings), window, 10.0) as sender:
        for _ in range(count // 10_000):
            sender.send(encoder.encode(batch))
        sender.finish()
    return count / (time.perf_counter() - start)


def measure(rounds: int, count: int) -> list[dict[tuple[str, int], float]]:
    from jetstream.spark.connect import jetstream
    from jetstream.spark.options import WRITE, read_options
    from natsproto.testing import Cluster

    with Cluster(3) as cluster:
        settings = read_options({"servers": cluster.urls[0], "subject": "out"}, WRITE)
        js = jetstream(settings)
        stream = js.create_stream(name="OUT", subjects=["out"], num_replicas=3)
        leader = next(each for each in cluster.members if each.name == stream.info().cluster.leader)
        here, there = multiprocessing.Pipe()
        proxy = multiprocessing.Process(target=run_proxy, args=(leader.port, there), daemon=True)
        proxy.start()
        urls = [leader.url, f"nats://127.0.0.1:{here.recv()}"]
        places = {
            name: read_options({"servers": url, "subject": "out"}, WRITE)
            for name, url in zip(PLACES, urls)
        }
        for place in places.values():
            write(place, DEFAULT, 10_000)  # connects
        results: list[dict[tuple[str, int], float]] = []
        for turn in range(rounds):
            found: dict[tuple[str, int], float] = {}
            for name, place in places.items():
                for window in WINDOWS:
                    progress(f"round {turn + 1} of {rounds}: {name}, {window}")
                    found[name, window] = write(place, window, count)
                    stream.purge()
            results.append(found)
        progress("")
        proxy.terminate()
        return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--count", type=int, help="rows, in ten thousands")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 5)
    try:
        import pyspark
    except ImportError:
        print("no PySpark: the benchmark of Spark's window is left out")
        return
    before = load()
    results = measure(rounds, options.count or (20_000 if options.quick else 100_000))
    print(f"{versions()}, PySpark {pyspark.__version__}, {before}\n", flush=True)
    table = [["maxInFlight", *[f"{place}{what}" for place in PLACES for what in (", rows/s", "")]]]
    for window in WINDOWS:
        row = [f"{window:,}"]
        for place in PLACES:
            rate = statistics.median(found[place, window] for found in results)
            ratios = [found[place, window] / found[place, DEFAULT] for found in results]
            row += [f"{rate:,.0f}", f"{statistics.median(ratios):.2f}"]
        table.append(row)
    print_table(table, markdown=options.markdown)


if __name__ == "__main__":
    main()
