"""Mistakes that somebody might make, each made on purpose: a table or a few hundred seeds find it.

A mutant is a change to the text of one module, applied while a fresh copy of the package is
imported. Nothing on disk is touched.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import ParameterSet

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
FRESH = ("jetstream", "tests.sim", "tests.machines")
SEEDS = 300

# name, module, what is replaced, by what, and who finds it: a mode of the simulation, or a table
MUTANTS = [
    (
        "asks for the whole limit",
        "consume",
        "missing = self._limit - level",
        "missing = self._limit",
        "consume",
    ),
    (
        "pulls survive the connection",
        "consume",
        "        self._waiting = False\n        self.ledger.clear()\n",
        "        self._waiting = False\n",
        "consume",
    ),
    (
        "pulls survive silence",
        "consume",
        "            self.ledger.clear()\n            self._missed(",
        "            self._missed(",
        "consume",
    ),
    (
        "nothing resets the silence",
        "consume",
        "        self._silent_at = now + self._silence\n        self._excused = False\n",
        "",
        "consume",
    ),
    (
        "silence after one heartbeat",
        "consume",
        "self._silence = 2 * template",
        "self._silence = template",
        "consume",
    ),
    (
        "no pause",
        "consume",
        "self._resume_at = now + self._pause",
        "self._resume_at = now",
        "consume",
    ),
    ("a pause without an end", "consume", "            self._waiting = True\n", "", "consume"),
    ("one token for all pulls", "consume", "        self._count += 1\n", "", "consume"),
    (
        "half of the buffer is lost",
        "iteration",
        "rest = self._batch + self._fresh",
        "rest = self._batch",
        "test_consume",
    ),
    (
        "no pull when back",
        "consume",
        "        self._refusals = []\n        self._refill(now)\n",
        "        self._refusals = []\n",
        "consume",
    ),
    (
        "no pull after a status",
        "consume",
        "        self._ended(pull, status, now)\n        self._refill(now)\n",
        "        self._ended(pull, status, now)\n",
        "consume",
    ),
    (
        "no pull after silence",
        "consume",
        "            self._look_at_the_time(now)\n        self._refill(now)\n",
        "            self._look_at_the_time(now)\n",
        "consume",
    ),
    (
        "pulls after the end of a drain",
        "consume",
        "if not self._online or not self._active:",
        "if not self._online:",
        "test_consume",
    ),
    (
        "refills one too late",
        "consume",
        "level >= self._threshold or",
        "level >= self._threshold - 1 or",
        "test_consume",
    ),
    ("late timers are believed", "consume", "now - due > LATE", "now - due > 1e9", "test_consume"),
    (
        "overdue pulls stay",
        "consume",
        "elif self.ledger.give_up(now):",
        "elif False:",
        "test_consume",
    ),
    (
        "warnings without end",
        "consume",
        "            if text in self._refusals:\n                return\n",
        "",
        "test_consume",
    ),
    (
        "too large, again and again",
        "consume",
        "self._too_small = status.bytes or 0",
        "self._too_small = 0",
        "test_consume",
    ),
    (
        "stop_after counts nothing",
        "consume",
        "self._stop_after - self._received - self.ledger.messages",
        "self._stop_after",
        "test_consume",
    ),
    (
        "the wrong pin is forgotten",
        "consume",
        'if pull.pin == self.pin != "":',
        "if self.pin:",
        "test_consume",
    ),
    ("a status is booked twice", "pull", "                    pulls.remove(pull)\n", "", "consume"),
    (
        "statuses correct nothing",
        "pull",
        "self._correct(pull.messages - messages,",
        "self._correct(0,",
        "consume",
    ),
    (
        "bytes are lost between pulls",
        "pull",
        "            if rest:\n",
        "            if False:\n",
        "bytes",
    ),
    ("counted pulls are forgotten", "pull", "        self._counted.append(pull)\n", "", "consume"),
    (
        "sizes without the reply",
        "pull",
        "len(msg.raw_subject) + len(msg.raw_reply)",
        "len(msg.raw_subject)",
        "bytes",
    ),
    ("everybody's pin counts", "pull", "if pinned and read_pin(msg)", "if read_pin(msg)", "bytes"),
    ("no more than one message", "pull", "MANY = 1_000_000", "MANY = 0", "bytes"),
    ("503 is the end", "status", '(503, "", ABSENT', '(503, "", FAIL', "consume"),
    (
        "leaders never change",
        "status",
        '    (409, "leadership change", RETRY, ConsumerUnavailable),\n',
        "",
        "consume",
    ),
    (
        "headers make a status",
        "status",
        "not msg.data and not msg.raw_reply and msg.status != 0",
        "not msg.data",
        "test_status",
    ),
    ("a fetch without an end", "fetch", "now + patience + MARGIN", "now + 1000.0", "fetch"),
    (
        "a cancelled fetch loses",
        "fetch",
        "            self._mine = 0\n            self._finish(None, now)\n",
        "            self.messages = []\n            self._finish(None, now)\n",
        "fetch",
    ),
    (
        "late messages are dropped",
        "fetch",
        "self.messages = self.messages[self._mine :]",
        "self.messages = []",
        "fetch",
    ),
    (
        "a fetch takes what is another's",
        "fetch",
        "taken = self.messages[: self._mine]",
        "taken = list(self.messages)",
        "fetch",
    ),
    (
        "any status ends a fetch",
        "fetch",
        "token != self._token or not is_status(msg)",
        "not is_status(msg)",
        "test_fetch",
    ),
    (
        "next waits for ever",
        "iteration",
        "    session.connection.wake_at(alarm, deadline)\n",
        "",
        "test_consuming",
    ),
    (
        "acknowledged as it likes",
        "messages",
        "self.settled = True  # only now",
        "self.settled = False  # only now",
        "test_messages",
    ),
    (
        "sent again without an id",
        "publisher",
        'if on_its_way and _HAS_ID in (publication.order.block or b""):',
        "if on_its_way:",
        "publish",
    ),
    (
        "the pin is not named",
        "consume",
        "template.body(batch, size, self.pin)",
        'template.body(batch, size, "")',
        "pinned",
    ),
    (
        "a pin that is gone is named for ever",
        "consume",
        '                self.pin = ""\n',
        "",
        "pinned",
    ),
    (
        "the first header is the pin",
        "pull",
        "if block is None or block[-_PIN_LINE - 2 : -26] != _PIN_ID:\n        return",
        "if block is None or _PIN_ID not in block:\n        return",
        "test_pull",
    ),
    (
        "the pin counts as bytes",
        "pull",
        "size -= _PIN_BLOCK if len(block) == _PIN_BLOCK else _PIN_LINE",
        "pass",
        "pinned",
    ),
    (
        "the next one skips a message",
        "succession",
        'config["opt_start_seq"] = self.start',
        'config["opt_start_seq"] = self.start + 1',
        "ordered",
    ),
    (
        "the next one starts as the first did",
        "succession",
        "        if self.start:\n",
        "        if False:\n",
        "ordered",
    ),
    (
        "nobody knows where the first one started",
        "succession",
        "            self.start = info.delivered.stream_seq + 1  # ORDERED-6\n",
        "            pass\n",
        "ordered",
    ),
    (
        "messages of any consumer",
        "succession",
        "if _text.decode(name) != self.name:",
        "if False:",
        "test_succession",
    ),
    (
        "gaps are overlooked",
        "succession",
        "if consumer_seq != self.consumer_seq + 1:",
        "if False:",
        "ordered",
    ),
    (
        "an answer may take for ever",
        "succession",
        "        self.due = now + self._timeout\n",
        "        self.due = None\n",
        "ordered",
    ),
    (
        "no rest between tries",
        "succession",
        "self.due = now + min(pause, LONGEST_REST)",
        "self.due = now + 0.01",
        "ordered",
    ),
    (
        "of no use, and it does not count",
        "succession",
        "        self.failures += 1\n",
        "",
        "test_succession",
    ),
    (
        "nothing passes",
        "succession",
        "error.code < 500 and not isinstance(error, _PASSING)",
        "True",
        "ordered",
    ),
    (
        "the consumer survives the connection",
        "ordered",
        "        self._succession.disconnected()\n",
        "",
        "test_ordered",
    ),
    (
        "heartbeats tell of no gap",
        "ordered",
        "last > self._lineage.consumer_seq:",
        "last > 10**9:",
        "ordered",
    ),
    (
        "a consumer that is not there is pulled from",
        "ordered",
        "if shutdown or status.meaning == ABSENT:",
        "if shutdown:",
        "ordered",
    ),
    (
        "silence is no reason",
        "ordered",
        "        self._reset(error, now)\n\n    def _beat",
        "        pass\n\n    def _beat",
        "ordered",
    ),
    (
        "what was not taken is skipped",
        "ordered",
        "            self._lineage.start = place[1]\n",
        "            pass\n",
        "ordered",
    ),
    (
        "pulls survive their consumer",
        "ordered",
        "        self.ledger.clear()\n        self.tell",
        "        self.tell",
        "test_ordered",
    ),
    (
        "nothing is pulled from the next one",
        "ordered",
        "        self._refill(now)\n        self._set_deadline()\n        return failure",
        "        self._set_deadline()\n        return failure",
        "ordered",
    ),
    (
        "a fetch that misses the last message",
        "ordered_consumer",
        "gap = gap or pulling.lost > 0",
        "pass",
        "ordered_fetch",
    ),
    (
        "a fetch after a gap goes on",
        "ordered_consumer",
        "            if verdict == GAP:\n                return messages, True\n",
        "",
        "test_ordered_consumer",
    ),
]


class Mutation(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and gives it another text."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self._module = f"jetstream.{module}"
        self._path = ROOT / "jetstream" / f"{module}.py"
        text = self._path.read_text(encoding="utf-8")
        assert text.count(old) >= 1, f"{module} does not have {old!r} any more"
        self._text = text.replace(old, new, 1)

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self._module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._text, str(self._path), "exec"), module.__dict__)


def is_fresh(name: str) -> bool:
    return name.startswith(FRESH) and name != __name__


@pytest.fixture
def mutate() -> Iterator[Any]:
    """Import anew, with a mutation; afterwards everything is as before."""
    before = {name: module for name, module in sys.modules.items() if is_fresh(name)}
    finders: list[Mutation] = []

    def apply(mutation: Mutation) -> None:
        finders.append(mutation)
        sys.meta_path.insert(0, mutation)
        for name in before:
            del sys.modules[name]

    yield apply
    for finder in finders:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if is_fresh(name)]:
        del sys.modules[name]
    sys.modules.update(before)


def cases(test: Any) -> list[dict[str, Any]]:
    """The arguments of a test, one by one."""
    found: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
            rows = [row.values if isinstance(row, ParameterSet) else row for row in mark.args[1]]
            if isinstance(mark.args[0], str):
                rows = [row if isinstance(row, tuple) else (row,) for row in rows]
            found = [{**one, **dict(zip(names, row))} for one in found for row in rows]
    return found


def run_tables(name: str) -> None:
    module = importlib.import_module(f"tests.machines.{name}")
    for test in [each for key, each in vars(module).items() if key.startswith("test_")]:
        for arguments in cases(test):
            test(**arguments)


def run_seeds(mode: str) -> None:
    modes = importlib.import_module("tests.sim.modes").MODES
    for seed in range(SEEDS):
        modes[mode](seed).run()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("module", "old", "new", "finder"),
    [row[1:] for row in MUTANTS],
    ids=[row[0] for row in MUTANTS],
)
def test_mutant(module, old, new, finder, mutate):
    mutate(Mutation(module, old, new))
    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever it is, it was found
        run_tables(finder) if finder.startswith("test_") else run_seeds(finder)
    assert not isinstance(found.value, ImportError), found.value


def test_without_a_mutation_all_is_well(mutate):
    mutate(Mutation("consume", "SHORTEST_PAUSE = 0.05", "SHORTEST_PAUSE = 0.050"))
    for name in ("test_consume", "test_consuming", "test_fetch", "test_status"):
        run_tables(name)
    for name in ("test_succession", "test_ordered", "test_ordered_consumer"):
        run_tables(name)
