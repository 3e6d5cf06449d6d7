"""Mistakes that somebody might make in ordered consumers; see test_mutants.py."""

from __future__ import annotations

# name, module, what is replaced, by what, and who finds it: a mode of the simulation, or a table
MUTANTS = [
    (
        "a change of leader is the end of a fetch like any other",
        "ordered_consumer",
        "            self._forget()  # ORDERED-27\n",
        "            pass\n",
        "test_ordered_consumer_fetch",
    ),
    (
        "nobody asks what a fetch without waiting has lost",
        "ordered_consumer",
        "pulling.uncounted == _NO_MESSAGES",
        "pulling.uncounted == _NO_MESSAGES and False",
        "test_ordered_consumer_fetch",
    ),
    (
        "whatever was lost, the consumer is kept",
        "ordered_consumer",
        "if info.delivered.consumer_seq != self.lineage.consumer_seq:",
        "if False:",
        "test_ordered_consumer_fetch",
    ),
    (
        "a creation may take longer than the fetch",
        "ordered_consumer",
        "await api.call(endpoint, body, deadline=deadline)",
        "await api.call(endpoint, body)",
        "test_ordered_consumer_fetch",
    ),
    (
        "the server has to take any time",
        "ordered_consumer",
        "expires = max(left, _SHORTEST)",
        "expires = left",
        "test_ordered_consumer_fetch",
    ),
    (
        "what is passed over is no sign of life",
        "ordered",
        "        self._silent_at = now + self._silence\n        self._brought",
        "        self._brought",
        "test_ordered",
    ),
    (
        "a change of leader proves the consumer",
        "ordered",
        "        if status.meaning != RETRY:\n",
        "        if True:\n",
        "test_ordered",
    ),
    (
        "an answer is due without a connection",
        "succession",
        "            self.state = OFFLINE\n            self.due = None\n",
        "            self.state = OFFLINE\n",
        "test_succession",
    ),
    (
        "messages at once end no excuse",
        "fetch",
        "        self._excused = False\n        self.messages += msgs\n",
        "        self.messages += msgs\n",
        "test_fetch",
    ),
    (
        "a stream is the same whenever it was created",
        "lineage",
        "same = created == before if self._exact else created <= before",
        "same = True",
        "recreated",
    ),
    (
        "another stream is read from the old place",
        "lineage",
        "        self.start = 0\n        self._eldest",
        "        self._eldest",
        "recreated",
    ),
    (
        "what is left of a stream that is gone is the place to start",
        "lineage",
        'if int(place[0].rpartition(b"_")[2]) < self._eldest:',
        "if False:",
        "test_lineage",
    ),
    (
        "a consumer is used before its stream is known",
        "lineage",
        "self.there = self._oldest is None",
        "self.there = True",
        "recreated_fetch",
    ),
    (
        "a consumer of which nothing is known is forgotten",
        "succession",
        "            self._orphan = self._doomed\n",
        "            pass\n",
        "test_succession",
    ),
]
