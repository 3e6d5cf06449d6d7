"""The stored figures of the benchmarks: their file, ratios, targets, and comparison with new ones.

bench/results.json has, for each row and client, the microseconds of CPU per message and the rate
of every round. Everything else is computed here: this module needs nothing but Python, so that the
pages are generated and tested without a benchmark.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

RESULTS = Path(__file__).with_name("results.json")
ALLOWED = 0.9  # a ratio that falls below this share of the stored one is reported
OURS = [f"natsproto {each}" for each in ("asyncio", "uvloop", "trio", "blocking", "threads")]
PEERS = ["nats-py", "nats-py uvloop", "nats-core", "natsrpy uvloop", "nats.js"]
PYTHON_PEERS = PEERS[:-1]

# Row, client, and how many times less CPU per message than nats-py it is to take.
ASYNCIO, UVLOOP, TRIO, BLOCKING, _ = OURS
TARGETS = [
    ("publish 16 B", ASYNCIO, 6.0),
    ("publish 16 B", BLOCKING, 6.0),
    ("iterator 16 B", ASYNCIO, 18.0),
    ("callback 16 B", ASYNCIO, 4.0),
    ("consume + ack, 128 B", ASYNCIO, 9.0),
    ("consume + ack, header read", ASYNCIO, 6.0),
    ("fetch(100) + ack, 128 B", ASYNCIO, 9.0),
    ("fetch(500) + ack, 128 B", ASYNCIO, 11.0),
    ("consume + ack, 16 KiB", ASYNCIO, 3.5),
    ("window 1000, 128 B", ASYNCIO, 4.5),
    ("push + ack, 128 B", ASYNCIO, 6.0),
    ("request 16 B", ASYNCIO, 2.4),
    ("request 16 B", UVLOOP, 3.0),
    ("request 16 B", TRIO, 1.8),
    ("JetStream publish 128 B", ASYNCIO, 2.4),
    ("JetStream publish 128 B", UVLOOP, 3.0),
    ("JetStream publish 128 B", TRIO, 1.8),
    ("KV get 128 B", ASYNCIO, 2.4),
    ("KV watch, 10,000 keys", ASYNCIO, 3.0),
    ("connect, publish, first ack", BLOCKING, 1 / 0.55),
]
# Row, the row with one of them, and how many times as much CPU per message it may take.
SCALING = [
    ("10,000 subscriptions", "1 subscription", 2.5),
    ("1,000 consumers", "1 consumer", 2.0),
]
# Statement, and the milliseconds that it may take.
IMPORTS = [("from jetstream import JetStream", 8.0)]


class Ratio(NamedTuple):
    """How many times less CPU a client takes than the row's base; higher is better."""

    median: float  # of the ratios in the same round
    minima: float  # of the least CPU in any round


class Row:
    """One row of the results. A round in which a client failed has None."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.name: str = data["name"]
        self.base: str = data["base"]
        self._clients: dict[str, dict[str, list[float | None]]] = data["clients"]

    @property
    def clients(self) -> list[str]:
        return list(self._clients)

    def values(self, client: str, field: str = "cpu") -> list[float]:
        """Return the figures of a client, without the rounds in which it failed."""
        return [each for each in self._clients.get(client, {}).get(field, []) if each is not None]

    def cpu(self, client: str) -> tuple[float, float] | None:
        """Return the median and the minimum of the microseconds of CPU."""
        found = self.values(client)
        return (median(found), min(found)) if found else None

    def ratio(self, client: str, to: str = "") -> Ratio | None:
        """Return how many times less CPU a client takes; None if there is nothing to compare."""
        mine, theirs = (
            self._clients.get(each, {}).get("cpu", []) for each in (client, to or self.base)
        )
        pairs = [(a, b) for a, b in zip(mine, theirs) if a is not None and b is not None]
        if not pairs:
            return None
        least = [min(column) for column in zip(*pairs)]
        return Ratio(median([b / a for a, b in pairs]), least[1] / least[0])

    def rate(self, client: str) -> float | None:
        """Return the rate relative to the base, the median of the ratios in the same round."""
        mine, theirs = (self._clients.get(each, {}).get("rate", []) for each in (client, self.base))
        found = [a / b for a, b in zip(mine, theirs) if a is not None and b is not None]
        return median(found) if found else None

    def faults(self, client: str) -> int:
        """Return the number of messages that were lost or duplicated."""
        return sum(abs(int(each)) for each in self.values(client, "lost"))


def read(path: Path = RESULTS) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def rows_of(results: dict[str, Any]) -> dict[str, Row]:
    return {each["name"]: Row(each) for each in results["rows"]}


class Fall(NamedTuple):
    """A ratio that is lower than the stored one by more than is allowed."""

    row: str
    client: str
    stored: float
    now: float


def fallen(stored: dict[str, Row], now: dict[str, Row], clients: list[str]) -> list[Fall]:
    """Return the ratios that fell, by their median and by their minima both.

    One of the two alone is noise: another process disturbs a round, or spares just one.
    """
    falls: list[Fall] = []
    for name, row in now.items():
        for client in clients:
            old = stored[name].ratio(client) if name in stored else None
            new = row.ratio(client)
            if old is None or new is None:
                continue
            if all(b < ALLOWED * a for a, b in zip(old, new)):
                falls.append(Fall(name, client, old.median, new.median))
    return falls


class Goal(NamedTuple):
    """A target and what was measured. The median counts, and for imports the minimum."""

    row: str
    client: str
    target: str
    measured: str
    met: bool


def goals(rows: dict[str, Row]) -> list[Goal]:
    """Return the targets whose rows were measured."""
    found: list[Goal] = []
    for name, client, target in TARGETS:
        ratio = rows[name].ratio(client) if name in rows else None
        if ratio:
            text = f"{ratio.median:.2f} x ({ratio.minima:.2f} x)"
            found.append(Goal(name, client, f"{target:.3g} x", text, ratio.median >= target))
    for name, single, target in SCALING:
        many, one = (rows[each].cpu(ASYNCIO) if each in rows else None for each in (name, single))
        if many and one:
            times = [a / b for a, b in zip(many, one)]
            text = f"{times[0]:.2f} ({times[1]:.2f})"
            limit = f"at most {target:g} times the CPU of {single}"
            found.append(Goal(name, ASYNCIO, limit, text, times[0] <= target))
    for statement, target in IMPORTS:
        cost = rows["import"].cpu(statement) if "import" in rows else None
        if cost:
            text = f"{cost[0] / 1000:.1f} ms ({cost[1] / 1000:.1f} ms)"
            limit = f"at most {target:g} ms"
            found.append(Goal("import", statement, limit, text, cost[1] / 1000 <= target))
    return found


def ahead_of_ours(rows: dict[str, Row]) -> list[tuple[str, str, str]]:
    """Return row, runtime of natsproto, and the Python client that takes less CPU than it."""
    found: list[tuple[str, str, str]] = []
    for name, row in rows.items():
        for ours in OURS:
            mine = row.cpu(ours)
            for peer in PYTHON_PEERS if mine else []:
                ratio = row.ratio(peer, ours)
                if ratio and min(ratio) > 1:
                    found.append((name, ours, peer))
    return found
