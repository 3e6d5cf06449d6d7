"""Many subscriptions and consumers in one client, with a task for each.

    python bench/scaling.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. The clients are those with an event loop.

subscriptions: messages arrive for each of them in turn, so that nearly every message wakes a task.
consumers: each has its own share of the messages of a stream, and acknowledges them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from _compare import NODE, Program, Scenario, command, compare, is_missing, run_client
from _scaling import CONTENDERS, STREAM, ahead_of
from core import CONFIG, OtherSide, converse

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

RATE = ["msgs/s", "x", "CPU us", "CPU x"]
COUNT = 30_000
SCENARIOS = [
    Scenario("1 subscription", "tasks", COUNT, 1, RATE, even=True, check=True),
    Scenario("10 subscriptions", "tasks", COUNT, 10, RATE, even=True),
    Scenario("100 subscriptions", "tasks", COUNT, 100, RATE, even=True, quick=True),
    Scenario("1,000 subscriptions", "tasks", COUNT, 1_000, RATE, even=True),
    Scenario("10,000 subscriptions", "tasks", COUNT, 10_000, RATE, even=True, check=True),
    Scenario("1 consumer", "consumers", COUNT, 1, RATE, even=True),
    Scenario("1,000 consumers", "consumers", COUNT, 1_000, RATE, even=True),
]


def subject_of(number: int, each: int) -> str:
    return f"many.{number}.{each}"


def fill(js: JetStream, scenarios: list[Scenario], share: float) -> None:
    """Store the messages: the same number for each consumer of a scenario."""
    js.create_stream(name=STREAM, subjects=["many.>"], storage="memory")
    with js.publisher() as window:
        for scenario in scenarios:
            if scenario.kind == "consumers":
                for count in range(rounded(int(scenario.count * share), scenario.size)):
                    window.publish(subject_of(scenario.size, count % scenario.size), bytes(128))


def rounded(count: int, number: int) -> int:
    return max(1, count // number) * number


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    with Server(jetstream=True, config=CONFIG) as server, connect(server.url) as client:
        js = JetStream(client)
        other = OtherSide(server)
        fill(js, scenarios, share)

        def measure(name: str, scenario: Scenario, count: int) -> Result:
            number = scenario.size
            count = rounded(count, number)
            if is_missing(name):
                return {}
            if scenario.kind == "tasks":
                return converse(
                    command("_scaling.py", name, scenario, server.url, count, number),
                    f"{name}: {scenario.name}",
                    ready=lambda: other.publish_in_turn(number, ahead_of(count, number)),
                    go=lambda: other.publish_in_turn(number, count),
                    silence=lambda: None,
                )
            for each in range(number):
                js.create_consumer(
                    STREAM,
                    durable_name=f"c{each}",
                    filter_subject=subject_of(number, each),
                    max_ack_pending=2 * COUNT,
                    mem_storage=True,
                )
            result = run_client("_scaling.py", name, scenario, server.url, count, number)
            for each in range(number):
                js.delete_consumer(STREAM, f"c{each}")
            return result

        yield measure


PROGRAM = Program(__doc__, SCENARIOS, dict.fromkeys([*CONTENDERS, NODE], 1), session)

if __name__ == "__main__":
    compare(PROGRAM)
