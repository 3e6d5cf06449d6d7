"""The time from a publish until foreachBatch has its row, and the same for a source in memory.

Two queries without a trigger interval run side by side and are idle most of the time. One reads a
stream, the other one a source with nothing behind it, whose latency is Spark's own. They are
measured in turn, one row at a time.
"""

from __future__ import annotations

import queue
import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _tables import print_table, progress

if TYPE_CHECKING:
    from collections.abc import Callable

_WARM = 5  # rounds that are not counted
_LONGEST = 60.0  # seconds


class Probe:
    """A query that notes when each of its rows arrives."""

    def __init__(self, frame: Any, publish: Callable[[], object], directory: str) -> None:
        self._publish = publish
        self._seen: queue.Queue[float] = queue.Queue()
        writer = frame.writeStream.foreachBatch(self._arrived)
        self._query = writer.option("checkpointLocation", directory).start()

    def _arrived(self, batch: Any, number: int) -> None:
        if batch.collect():
            self._seen.put(time.perf_counter())

    def await_start(self) -> None:
        """Wait until the query has looked at its source, where it then starts."""
        while self._query.lastProgress is None:
            if not self._query.isActive:
                raise RuntimeError(f"the query has ended: {self._query.exception()}")
            time.sleep(0.1)

    def measure(self) -> float:
        """Return the seconds from a publish to its row."""
        start = time.perf_counter()
        self._publish()
        return self._seen.get(timeout=_LONGEST) - start

    def stop(self) -> None:
        self._query.stop()


def latencies(spark: Any, url: str, js: Any, rounds: int) -> dict[str, list[float]]:
    """Return the latencies of both queries, in seconds."""
    numbers = random.Random(1)
    js.create_stream(name="WAKE", subjects=["wake"])
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = directory / "rows"
        file.touch()

        def extend() -> None:
            with file.open("ab") as opened:
                opened.write(b".")

        ours = spark.readStream.format("jetstream").options(servers=url, stream="WAKE").load()
        alone = spark.readStream.format("nothing").option("file", str(file)).load()
        probes = {
            "a stream": Probe(ours, lambda: js.publish("wake", bytes(128)), str(directory / "a")),
            "rows from memory": Probe(alone, extend, str(directory / "b")),
        }
        for probe in probes.values():
            stack.callback(probe.stop)
        for probe in probes.values():
            probe.await_start()
        found: dict[str, list[float]] = {name: [] for name in probes}
        for turn in range(_WARM + rounds):
            progress(f"latency: {turn} of {_WARM + rounds}")
            for name, probe in probes.items():
                time.sleep(numbers.uniform(0.2, 0.8))
                delay = probe.measure()
                if turn >= _WARM:
                    found[name].append(delay)
    progress("")
    return found


def show_latencies(found: dict[str, list[float]], *, markdown: bool) -> None:
    table = [["publish to foreachBatch, ms", "median", "least", "90 %", "most"]]
    for name, delays in found.items():
        cells = [statistics.median(delays), min(delays), _most_of(delays, 0.9), max(delays)]
        table.append([name, *[f"{cell * 1000:.0f}" for cell in cells]])
    ours, alone = [statistics.median(delays) for delays in found.values()]
    table.append(["difference; target <= 200", f"{(ours - alone) * 1000:.0f}", "", "", ""])
    print_table(table, markdown=markdown)


def _most_of(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]
