"""Mistakes that somebody might make in push subscriptions, as in test_mutants.py."""

from __future__ import annotations

import pytest

from tests.sim.test_mutants import Mutation, mutate, run_seeds, run_tables

__all__ = ["mutate"]

# name, module, what is replaced, by what, and who finds it: a mode of the simulation, or a table
MUTANTS = [
    (
        "an alarm after one heartbeat",
        "push",
        "self._silence = alarm_after * heartbeat",
        "self._silence = heartbeat",
        "push",
    ),
    ("one alarm only", "push", "self._extra = now + self._heartbeat", "self._extra = 1e9", "push"),
    (
        "nothing resets the silence",
        "push",
        "        self._heard = now\n        if self._extra:\n",
        "        if self._extra:\n",
        "push",
    ),
    (
        "silence without a connection",
        "push",
        "        self._online = False\n        self._set_deadline()\n",
        "        self._set_deadline()\n",
        "test_push",
    ),
    ("late timers are believed", "push", "now - due > LATE", "now - due > 1e9", "test_push"),
    ("gaps are overlooked", "push", "self.tell(Gap(last + 1, expected))", "pass", "push"),
    ("gaps are told for ever", "push", "        self._last = number\n", "", "push"),
    ("going back is a gap", "push", "        if last < expected:\n", "        if True:\n", "push"),
    (
        "drops are not counted",
        "push",
        "            self.dropped += 1\n",
        "",
        "push",
    ),
    (
        "no limit",
        "push",
        "full = 0 < self._max_messages <= self.pending()",
        "full = False",
        "push",
    ),
    (
        "headers make a status",
        "push",
        "if msg.raw_headers is not None and not msg.data and msg.status:",
        "if msg.raw_headers is not None and not msg.data:",
        "push",
    ),
    ("bytes are never free again", "push", "        self._bytes -= msg.size\n", "", "push_fc"),
    (
        "flow control at once",
        "push",
        "while self._requests and self._requests[0][1] <= self._taken:",
        "while self._requests:",
        "push_fc",
    ),
    (
        "flow control one too late",
        "push",
        "self._requests[0][1] <= self._taken:",
        "self._requests[0][1] < self._taken:",
        "push_fc",
    ),
    (
        "stalled heartbeats mean nothing",
        "push",
        "if len(stalled.split()) == 1 and len(stalled) <= _LONGEST_SUBJECT:",
        "if False:",
        "push_fc",
    ),
    (
        "an answer is never repeated",
        "push",
        "if subject == self._answered and now - self._answered_at < self._heartbeat:",
        "if subject == self._answered:",
        "push_fc",
    ),
    (
        "answered as often as it is named",
        "push",
        "if subject == self._answered and now - self._answered_at < self._heartbeat:",
        "if False:",
        "test_push",
    ),
    (
        "the next connection knows the answer",
        "push",
        '        self._answered = b""  # it may be lost with the connection\n',
        "",
        "test_push",
    ),
    ("the end comes twice", "pushing", "        self.on_end = None\n", "", "push"),
    (
        "early messages are dropped",
        "ordered_push",
        "            self._early.append(msg)\n",
        "",
        "ordered_push",
    ),
    (
        "it stays where it is",
        "ordered_push",
        "            self.moving = True  # ORDPUSH-2\n",
        "",
        "ordered_push",
    ),
    (
        "statuses of any consumer",
        "ordered_push",
        "        if msg.raw_subject != self.subject:\n",
        "        if False:\n",
        "test_ordered_push",
    ),
    (
        "heartbeats show no gap",
        "ordered_push",
        "        if last == self._lineage.consumer_seq:\n",
        "        if True:\n",
        "ordered_push",
    ),
    (
        "silence is no loss",
        "ordered_push",
        "    def _alarm(self, error: NatsError, now: float) -> None:\n        self._reset(",
        "    def _alarm(self, error: NatsError, now: float) -> None:\n        print(",
        "ordered_push",
    ),
    (
        "flow control of the consumer before",
        "ordered_push",
        "        self._requests = []\n",
        "",
        "test_ordered_push",
    ),
    (
        "no deletion at the end",
        "ordered_push",
        "        if self.leaving or self.draining:\n            self._order_all()\n",
        "",
        "ordered_push",
    ),
]


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
    mutate(Mutation("push", "ALARM_AFTER = 3", "ALARM_AFTER = 3 + 0"))
    for name in ("test_push", "test_ordered_push"):
        run_tables(name)
