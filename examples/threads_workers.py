"""Four threads share one client and the work of one queue group.

Argument: the URL of a server, if it is not the usual one.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter

from natsproto.adapters.threads import connect
from natsproto.blocking import Client, Subscription

JOBS = 200


def work(client: Client, jobs: Subscription, done: Counter[str]) -> None:
    for job in jobs:  # until the subscription is drained
        client.publish(job.reply, b"%d" % int(job.data) ** 2)
        done[threading.current_thread().name] += 1


def main(url: str) -> None:
    with connect(url) as client:
        results = client.subscribe("results")
        done: Counter[str] = Counter()
        shares = [client.subscribe("jobs", queue="workers") for _ in range(4)]
        threads = [
            threading.Thread(target=work, args=[client, jobs, done], name=f"worker {n}")
            for n, jobs in enumerate(shares)
        ]
        for thread in threads:
            thread.start()
        for n in range(JOBS):
            client.publish("jobs", b"%d" % n, reply="results")
        squares = sorted(int(results.next(timeout=5.0).data) for _ in range(JOBS))
        for jobs in shares:
            jobs.drain()
        for thread in threads:
            thread.join()
    assert squares == [n * n for n in range(JOBS)]
    for name, count in sorted(done.items()):
        print(f"{name} did {count} of {JOBS} jobs")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["nats://127.0.0.1:4222"])
