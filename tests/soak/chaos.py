"""python -m tests.soak.chaos [--rounds 200] [--seed 0]: a cluster under faults, with checks.

A round is a fault, its end, and the time until all readers have caught up. Members of the cluster
are killed, stopped, frozen or slowed down, one or two of three at a time; links between them break,
swallow data or crawl; leaders step down. Meanwhile clients write and read a stream, a bucket and an
object store in every way (chaos_work.py). --spark also runs the crash tests of the Spark source and
sink, `SPARK_SOAK=1`, afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from natsproto.adapters.asyncio import connect
from natsproto.adapters.blocking import connect as connect_blocking
from natsproto.errors import NatsError
from tests.soak.chaos_work import Work
from tests.soak.faults import CLUSTER
from tests.soak.partitions import CUT, HOLE, OPEN, SLOW, ProxiedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.testing import Server

FORMING = 90.0


class Chaos:
    """The cluster and what befalls it. The faults block: they run in a thread."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = ProxiedCluster({**CLUSTER, "write_deadline": "2s"})
        self.faults: dict[str, Callable[[], None]] = {
            "kill one": lambda: self._down(1, 0.5),
            "kill two": lambda: self._down(2, 2.0),
            "freeze one": self._freeze,
            "stutter": self._stutter,
            "cut one off": lambda: self._partition(CUT),
            "black hole": lambda: self._partition(HOLE),
            "slow links": lambda: self._partition(SLOW),
            "stream leader": lambda: self._step_down("STREAM.LEADER.STEPDOWN.CHAOS"),
            "bucket leader": lambda: self._step_down("STREAM.LEADER.STEPDOWN.KV_chaos"),
            "consumer leader": lambda: self._step_down("CONSUMER.LEADER.STEPDOWN.CHAOS.consume"),
        }

    def _some(self, count: int) -> list[Server]:
        return self.rng.sample(self.cluster.members, count)

    def _down(self, count: int, seconds: float) -> None:
        members = self._some(count)
        for member in members:
            member.kill()
        time.sleep(seconds)
        for member in members:
            member.restart()

    def _freeze(self) -> None:
        (member,) = self._some(1)
        member.freeze()
        time.sleep(self.rng.choice((1.0, 6.0)))
        member.thaw()

    def _stutter(self) -> None:
        """Stop a member every few milliseconds, as a slow disk or a busy host does."""
        (member,) = self._some(1)
        for _ in range(100):
            member.freeze()
            time.sleep(0.03)
            member.thaw()
            time.sleep(0.01)

    def _partition(self, state: str) -> None:
        self.cluster.proxies.change(state, self.rng.choice((1, 2, 3)))
        time.sleep(self.rng.choice((1.0, 5.0)))
        self.cluster.proxies.change(OPEN)

    def _step_down(self, endpoint: str) -> None:
        with connect_blocking(self.cluster.urls) as client:
            try:
                client.request("$JS.API." + endpoint, timeout=2.0)
            except NatsError:
                return  # there is no leader, and nothing to do

    async def run(self, rounds: int, seconds: float = 1e9) -> tuple[list[str], list[float]]:
        """Run some rounds, no longer than that; return the complaints and the recovery times."""
        recoveries = []
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    connect(self.cluster.urls, reconnect_wait=0.05, max_reconnects=-1)
                )
                for _ in range(3)
            ]
            work = Work(clients)
            stack.enter_context(work.trace.tap())
            await work.start()
            await work.settle()
            begin = time.monotonic()
            names: list[str] = []
            while len(recoveries) < rounds and time.monotonic() - begin < seconds:
                if not names:
                    names = self.rng.sample(sorted(self.faults), len(self.faults))
                name = names.pop()
                await asyncio.to_thread(self.faults[name])
                await asyncio.to_thread(self.cluster.wait_formed, FORMING)
                recoveries.append(await work.settle())
                done = f"round {len(recoveries)}: {name}"
                print(f"{done}, {recoveries[-1]:.1f} s until all had caught up", flush=True)
            complaints = await work.finish()
            print(f"{len(work.acked)} publishes acknowledged, {work.failures} windows failed")
            for line in work.explanations():
                print("  " + line)
        return complaints, recoveries


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.chaos")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no round after that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spark", action="store_true", help="also crash Spark; needs Java 17")
    options = parser.parse_args(arguments)
    logging.getLogger("natsproto").setLevel(logging.ERROR)  # every fault is a warning
    chaos = Chaos(options.seed)
    try:
        complaints, recoveries = asyncio.run(chaos.run(options.rounds, options.seconds))
    finally:
        chaos.cluster.stop()
    print(f"{len(recoveries)} rounds, slowest recovery {max(recoveries, default=0.0):.1f} s")
    for complaint in complaints:
        print("  " + complaint)
    if options.spark and not complaints:
        command = [sys.executable, "-m", "pytest", "-q", "tests/spark", "-k", "crash or cluster"]
        return subprocess.run(command, env={**os.environ, "SPARK_SOAK": "1"}).returncode
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
