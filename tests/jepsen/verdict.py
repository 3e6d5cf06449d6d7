"""The verdict on a recorded history: what clients were told against what the streams contain.

The payload or a header of a message is the number of its operation, so the streams tell which of
the operations in doubt took effect, and in which order all of them did. The history of each key is
checked with this order: see checker.py.

Two kinds of refusals prove nothing, so these are in doubt: those by a leader that may not have
known of its successor (faults.py), and those during another write to the same key that was lost
with its leader.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from typing import TYPE_CHECKING, Any

from .checker import REFUSED, Appends, Operation, Revisions, Totals, check

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from .checker import Model
    from .faults import Doubt

ACTIVE = 12  # keys of each kind at a time
USES = 36  # of a key, below the history of a bucket
ATOMIC = 3
FAST = 5
STREAMS = {"kv": "KV_jepsen", "atomic": "ATOMIC", "counter": "COUNTERS", "fast": "FAST"}


class Record:
    """What is known of an operation before the streams are read."""

    __slots__ = ("argument", "ended", "invoked", "number", "outcome", "result", "returned")

    def __init__(self, number: int, argument: Any) -> None:
        self.number = number
        self.argument = argument
        self.invoked = time.monotonic()
        #: When the call ended; `returned` is None if it ended in doubt.
        self.ended = float("inf")
        self.returned: float | None = None
        self.outcome = "doubt"
        self.result: Any = None

    def end(self, outcome: str, result: Any = None) -> None:
        """Note how it ended: stored, refused (by a comparison), rejected (otherwise), in doubt.

        A fast batch may also be stored in part. Its result is then, and in doubt, the number of
        messages that are known to be stored.
        """
        self.outcome = outcome
        self.result = result
        self.ended = time.monotonic()
        self.returned = None if outcome == "doubt" else self.ended


class Keys:
    """The keys of one kind that are in use; each is replaced after a number of uses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._count = 0
        self.forget()

    def forget(self) -> None:
        """Begin with other keys, and no records."""
        self.active: list[str] = [self._new() for _ in range(ACTIVE)]
        self._uses: Tally[str] = Tally()
        #: The last revision of a key that any client has seen.
        self.known: dict[str, int] = {}
        self.records: dict[str, list[Record]] = {}

    def _new(self) -> str:
        self._count += 1
        return f"{self._kind}-{self._count}"

    def choose(self, rng: Random) -> str:
        """Return a key to use."""
        place = rng.randrange(ACTIVE)
        key = self.active[place]
        self._uses[key] += 1
        if self._uses[key] >= USES:
            self.active[place] = self._new()
            del self._uses[key]
        return key

    def note(self, key: str, record: Record) -> None:
        """Add a record to the history of a key."""
        self.records.setdefault(key, []).append(record)

    def learn(self, key: str, revision: int) -> None:
        """Remember the newest revision of a key."""
        self.known[key] = max(revision, self.known.get(key, 0))


class History:
    """Everything that was recorded since the last verdict."""

    def __init__(self) -> None:
        self.keys = {kind: Keys(kind) for kind in STREAMS}
        #: The key, the revision, the number of the operation, and the times of each read.
        self.reads: list[tuple[str, int, int, float, float]] = []
        self.doubts: list[Doubt] = []
        self.tally: Tally[str] = Tally()
        self.problems: list[str] = []

    def forget(self) -> None:
        """Forget all records; tallies and problems stay."""
        for keys in self.keys.values():
            keys.forget()
        self.reads.clear()
        self.doubts.clear()

    def check_duplicates(self, name: str, stored: dict[bytes, list[int]]) -> None:
        """Report messages that are stored more than once."""
        self.problems += [
            f"{name}: message {data.decode()} is stored {len(seqs)} times"
            for data, seqs in stored.items()
            if len(seqs) > 1
        ]

    def judge_kv(self, stored: dict[bytes, list[int]]) -> None:
        """Check the writes of the bucket."""
        for key, records in self.keys["kv"].records.items():
            found = {each.number: stored.get(b"%d" % each.number, [0])[0] for each in records}
            self._judge_revisions("kv", key, records, found)

    def judge_atomic(self, stored: dict[bytes, list[int]]) -> None:
        """Check the atomic batches."""
        for key, records in self.keys["atomic"].records.items():
            found: dict[int, int] = {}
            for each in records:
                parts = [stored.get(b"%d.%d" % (each.number, n), [0])[0] for n in range(ATOMIC)]
                found[each.number] = parts[-1]
                whole = list(range(parts[0], parts[0] + ATOMIC))
                if any(parts) and parts != whole:
                    self.problems.append(f"{key}: batch {each.number} is stored as {parts}")
            self._judge_revisions("atomic", key, records, found)

    def _judge_revisions(
        self, kind: str, key: str, records: list[Record], found: dict[int, int]
    ) -> None:
        """Check the writes of a key; `found` is the revision of those that are stored, else 0."""
        operations: list[Operation] = []
        lost = [each for each in records if each.outcome == "doubt" and not found[each.number]]
        for each in records:
            revision = found[each.number]
            if each.outcome == "refused":
                if self._may_be_stale(STREAMS[kind], each):
                    self._doubt(each, f"{kind}: refused in doubt")
                elif _may_be_due_to(lost, each):
                    self._doubt(each, f"{kind}: refused during a lost write")
            if not self._agrees(key, each, revision):
                continue
            if revision or each.outcome == "refused":
                result = revision or REFUSED
                operation = Operation("write", each.argument, result, each.invoked, each.returned)
                operations.append(operation)
        order = _order(each.result for each in operations if each.result != REFUSED)
        self._check(kind, key, operations, Revisions(order))

    def _doubt(self, record: Record, why: str) -> None:
        record.outcome, record.result, record.returned = "doubt", None, None
        self.tally[why] += 1

    def _may_be_stale(self, stream: str, record: Record) -> bool:
        """Return whether a member that did not know of its successor may have refused a write."""
        returned = record.returned
        assert returned is not None
        return any(
            each.stream == stream and each.start <= returned and record.invoked <= each.end
            for each in self.doubts
        )

    def _agrees(self, key: str, record: Record, revision: int) -> bool:
        """Compare what the client was told with what is stored."""
        if record.outcome == "doubt" or (record.outcome == "stored" and revision == record.result):
            return True
        if record.outcome in ("refused", "rejected") and not revision:
            return True
        self.problems.append(
            f"{key}: operation {record.number} was {record.outcome} ({record.result}), but the"
            f" stream has it at {revision}"
        )
        return False

    def judge_reads(self, stored: dict[bytes, list[int]]) -> None:
        """Check that what was read had been written; count the stale ones."""
        written: dict[str, list[tuple[float, int]]] = {}
        numbers: dict[tuple[str, int], Record] = {}
        for key, records in self.keys["kv"].records.items():
            for each in records:
                revision = stored.get(b"%d" % each.number, [0])[0]
                numbers[key, revision] = each
                if each.returned is not None and revision:
                    written.setdefault(key, []).append((each.returned, revision))
        for key, revision, number, invoked, returned in self.reads:
            record = numbers.get((key, revision))
            if revision and (
                record is None or record.number != number or record.invoked > returned
            ):
                self.problems.append(f"{key}: a read returned {number} at {revision}")
            newest = max([each for at, each in written.get(key, []) if at < invoked], default=0)
            self.tally["read: stale" if newest > revision else "read: current"] += 1

    def judge_counters(self, stored: dict[bytes, list[int]]) -> None:
        """Check the increments; `stored` has the totals after each operation, by its number."""
        for key, records in self.keys["counter"].records.items():
            operations: list[Operation] = []
            for each in records:
                total = stored.get(b"%d" % each.number, [0])[0]
                if self._agrees(key, each, total) and total:
                    operations.append(
                        Operation("add", each.argument, total, each.invoked, each.returned)
                    )
            order = _order(each.result for each in operations)
            self._check("counter", key, operations, Totals(order))

    def judge_fast(self, stored: dict[bytes, list[int]]) -> None:
        """Check the fast batches."""
        for key, records in self.keys["fast"].records.items():
            operations: list[Operation] = []
            for each in records:
                parts = [stored.get(b"%d.%d" % (each.number, n), [0])[0] for n in range(FAST)]
                there = [part for part in parts if part]
                if there != parts[: len(there)] or there != sorted(there):
                    self.problems.append(f"{key}: fast batch {each.number} is stored as {parts}")
                if not _may_have_stored(each, len(there), parts[-1]):
                    self.problems.append(
                        f"{key}: fast batch {each.number} was {each.outcome} ({each.result}), but"
                        f" the stream has it as {parts}"
                    )
                operations += [
                    Operation("append", each.number, (part, part), each.invoked, each.returned)
                    for part in there
                ]
            order = _order(each.result[0] for each in operations)
            self._check("fast", key, operations, Appends(order))

    def _check(self, kind: str, key: str, operations: list[Operation], model: Model) -> None:
        stuck = check(operations, model)
        self.tally[f"{kind}: keys"] += 1
        if stuck is not None:
            self.problems.append(f"{key}: {stuck}")


def _may_have_stored(batch: Record, count: int, last: int) -> bool:
    """Return whether a fast batch may have stored that many messages, the last one there."""
    known = batch.result or 0
    if batch.outcome == "stored":
        return bool(last == known)
    if batch.outcome == "doubt":
        return count >= int(known)
    return count == int(known)  # rejected, or stored in part: FAST-2, FAST-5


def _may_be_due_to(lost: list[Record], refused: Record) -> bool:
    """Return whether a write that was lost in the end may be why another one was refused.

    A leader refuses a write with an expectation while it has another one of the key in progress.
    If the leader fails before that one is committed, nothing of it is left.
    """
    returned = refused.returned
    assert returned is not None
    return any(
        each.argument is not None and each.invoked <= returned and refused.invoked <= each.ended
        for each in lost
    )


def _order(results: Iterable[int]) -> dict[int, int]:
    """Return which result follows each, the first one after 0."""
    every = sorted(results)
    return dict(zip([0, *every], every))
