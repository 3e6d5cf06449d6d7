"""Possible mistakes in ordered consumers; see test_mutants.py."""

from __future__ import annotations

# name, module, what is replaced, by what, and who finds it: a mode of the simulation, or a table
MUTANTS = [
    (
        "a change of leader is the end of a fetch like any other",
        "ordered.api",
        "            self._forget()  # D-ORDERED-27\n",
        "            pass\n",
        "ordered.test_api_fetch",
    ),
    (
        "nobody asks what a fetch without waiting has lost",
        "ordered.api",
        "puller.uncounted == _NO_MESSAGES",
        "puller.uncounted == _NO_MESSAGES and False",
        "ordered.test_api_fetch",
    ),
    (
        "whatever was lost, the consumer is kept",
        "ordered.api",
        "if info.delivered.consumer_seq != self.cursor.consumer_seq:",
        "if False:",
        "ordered.test_api_fetch",
    ),
    (
        "a creation may take longer than the fetch",
        "ordered.api",
        "await api.call(endpoint, body, deadline=deadline)",
        "await api.call(endpoint, body)",
        "ordered.test_api_fetch",
    ),
    (
        "the server has to take any time",
        "ordered.api",
        "expires = max(left, _SHORTEST)",
        "expires = left",
        "ordered.test_api_fetch",
    ),
    (
        "what is passed over is no sign of life",
        "pull.consume",
        "            self._silence.heard(now)\n            self.refill.skipped",
        "            self.refill.skipped",
        "pull.test_consume_in_order",
    ),
    (
        "a change of leader proves the consumer",
        "pull.consume",
        "        if meaning != RETRY:\n",
        "        if True:\n",
        "pull.test_consume_in_order",
    ),
    (
        "an answer is due without a connection",
        "ordered.recreate",
        "            self.state = OFFLINE\n            self.due = None\n",
        "            self.state = OFFLINE\n",
        "ordered.test_recreate",
    ),
    (
        "messages at once end no excuse",
        "pull.fetch",
        "        self._grace_used = False\n        self.messages += msgs\n",
        "        self.messages += msgs\n",
        "pull.test_fetch",
    ),
    (
        "a stream is the same whenever it was created",
        "ordered.cursor",
        "same = created == before if self._exact else created <= before",
        "same = True",
        "recreated",
    ),
    (
        "another stream is read from the old place",
        "ordered.cursor",
        "        self.start = 0\n        self._fence",
        "        self._fence",
        "recreated",
    ),
    (
        "what is left of a stream that is gone is the place to start",
        "ordered.cursor",
        'if int(place[0].rpartition(b"_")[2]) < self._eldest:',
        "if False:",
        "ordered.test_cursor",
    ),
    (
        "a consumer is used before its stream is known",
        "ordered.cursor",
        "self.ready = self._oldest is None",
        "self.ready = True",
        "recreated_fetch",
    ),
    (
        "a consumer of which nothing is known is forgotten",
        "ordered.recreate",
        "            self._orphan = self._doomed\n",
        "            pass\n",
        "ordered.test_recreate",
    ),
]
