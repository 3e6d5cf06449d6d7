"""Snapshot: knows when the initial values of a watch are complete, even during writes.

The server counts the messages that are pending after each one, and while others write that count is
often too low: a watch that ended at the first zero missed keys (D-KV-40). So the watch queries the
stream before it creates its consumer, and then compares messages with the result. Every key that
the stream had at that moment is delivered sooner or later, at the sequence that it had then or, if
it was changed in the meantime, at a higher one. The end is found in one of three ways:

    COUNTING   the whole bucket, the last entry of each key. The stream reported its number of keys
               and its last sequence, the fence. Each key that arrives at or below the fence counts.
               Without concurrent writes the count is exact, at the cost of one small call.
    LISTED     all other watches with initial values. The stream listed its keys, and the number of
               entries of each. A key is complete after that many entries, old or new: an entry is
               removed only when a newer one replaces it.
    PASSING    a watch that starts at a revision. It is complete at the first entry at or after the
               fence; in doubt the stream is asked whether there is another entry before it.

A key may also be removed: purged, or expired. The snapshot is in doubt when an entry after the
fence, or one with none pending, arrives while keys are missing. Then the stream is asked again, and
the watch does not wait for keys that no longer exist. COUNTING turns into LISTED, without the keys
that have arrived.

Some servers let a consumer skip messages: 2.9.10 moves all consumers to the end of the stream when
a key is purged. So entries that are still missing after a few listings are read from the leader,
and returned if the consumer has gone past them (D-KV-43).
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors.api import MessageNotFound
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.wire.subjects import matches

from .names import ALL_KEYS

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg

    from .entry import KeyValueEntry

COUNTING = "counting"
LISTED = "listed"
PASSING = "passing"
DONE = "done"

_MOST_CALLS = 8  # filters that are listed one by one
_DETOURS = 3  # how often a listing is restarted if pages do not overlap or are empty


class Snapshot:
    """Track the missing initial values. If it is `doubtful`, ask the stream and call `listed`."""

    __slots__ = (
        "_missing",
        "_seen",
        "_trusting",
        "done",
        "doubtful",
        "fence",
        "left",
        "looks",
        "state",
    )

    def __init__(self, state: str = DONE, fence: int = 0, left: int = 0) -> None:
        self.state: str = state if left else DONE
        #: Whether nothing is missing. Not a property: it is read three times for each entry.
        self.done: bool = self.state == DONE  # KV-35
        self.doubtful: bool = False
        #: Number of times the stream was asked again.
        self.looks: int = 0
        #: The last sequence that the stream had when it was asked.
        self.fence: int = fence
        #: How many keys are missing; with a listing, how many it had at first.
        self.left: int = left
        self._seen: set[str] = set()  # while COUNTING: the keys that have arrived
        # While LISTED: for each key how many entries are wanted, how many have arrived, and the
        # sequence of the last of them.
        self._missing: dict[str, tuple[int, int, int]] = {}
        self._trusting = True  # "none pending" has been right so far

    @classmethod
    def of(cls, counts: dict[str, int], fence: int) -> Snapshot:
        """Return a LISTED snapshot that expects this many entries of each key."""
        made = cls(LISTED, fence, len(counts))
        made._missing = {key: (counts[key], 0, 0) for key in counts}
        return made

    def see(self, key: str, seq: int, pending: int) -> None:
        """Record an entry that the watch has delivered."""
        state = self.state
        if state == COUNTING:
            if key not in self._seen:
                self._seen.add(key)
                if seq <= self.fence:
                    self.left -= 1
            complete = not self.left
        elif state == DONE:
            return
        elif state == LISTED:
            known = self._missing.get(key)
            if known is not None:
                wanted, arrived, _ = known
                if arrived + 1 >= wanted:
                    self._missing.pop(key)
                else:
                    self._missing[key] = (wanted, arrived + 1, seq)
            complete = not self._missing
        else:
            complete = seq >= self.fence
        if complete:
            self.end()
        elif seq > self.fence or (self._trusting and not pending):
            self.doubtful = True

    def see_all(self, entries: list[KeyValueEntry]) -> int:
        """Record entries together, and return their number.

        0: none was recorded, because one of them may be the last, or raise a doubt.
        """
        seen = self._seen
        keys = {entry.key for entry in entries if entry.revision <= self.fence and entry.delta}
        if self.state != COUNTING or not len(entries) == len(keys) < self.left:
            return 0
        keys -= seen
        self.left -= len(keys)
        seen |= keys
        return len(entries)

    def listed(self, counts: dict[str, int], fence: int) -> None:
        """Record the keys that the stream has now, and the number of entries of each."""
        if self.state == COUNTING:
            self.state = LISTED
            self._missing = {key: (1, 0, 0) for key in counts if key not in self._seen}
            self._seen = set()
        else:
            # D-KV-42: at most as many as the stream still has, including those that have arrived.
            missing: dict[str, tuple[int, int, int]] = {}
            for key in self._missing:
                wanted, arrived, seq = self._missing[key]
                wanted = min(wanted, counts.get(key, 0))
                if wanted > arrived:
                    missing[key] = (wanted, arrived, seq)
            self._missing = missing
        self.fence = fence
        # A count that was wrong once stays wrong for long: asking at each zero would cost too much.
        self._trusting = False
        self.doubtful = False
        self.looks += 1
        if not self._missing:
            self.end()

    def missing(self, most: int) -> list[tuple[str, int]]:
        """Return up to `most` missing keys, each with the sequence of its last entry so far."""
        keys = list(self._missing)[:most]
        return [(key, self._missing[key][2]) for key in keys]

    def forget(self, key: str) -> None:
        """Stop waiting for this key, which has no more entries."""
        self._missing.pop(key, None)
        if not self._missing:
            self.end()

    def settled(self, more: bool) -> None:  # D-KV-41
        """Record whether there are more entries up to the fence, while PASSING."""
        self._trusting = False
        if not more:
            self.end()

    def end(self) -> None:
        """Mark the initial values as complete."""
        self.state = DONE
        self.done = True
        self.doubtful = False
        self._missing = {}
        self._seen = set()


def chunks_wanted(key: str, count: int) -> Snapshot:
    """Return a snapshot that is complete after `count` entries of one key; 0: after all."""
    return Snapshot.of({key: count or MOST_SEQUENCE}, MOST_SEQUENCE)


class Lister:
    """Ask a stream for its keys, and for entries that the consumer of a watch has skipped."""

    __slots__ = ("_filters", "_prefix", "_stream", "_whole", "api")

    def __init__(
        self, api: ApiClient, stream: str, prefix: str, filters: Sequence[str], *, whole: bool
    ) -> None:
        self.api: ApiClient = api
        self._stream = stream
        self._prefix = prefix
        self._filters = filters
        self._whole = whole and list(filters) == [ALL_KEYS]  # no other subjects are in the stream

    def paced(self, deadline: float) -> Lister:
        """Return a lister that expects its first response by this time."""
        api = self.api.paced(deadline)
        return Lister(api, self._stream, self._prefix, self._filters, whole=self._whole)

    async def take(self, policy: str, start: int) -> Snapshot:
        """Query the stream before the consumer with this policy is created."""
        if policy == "new":
            return Snapshot()
        if policy == "by_start_sequence":
            last = (await self._page({})).state.last_seq
            return Snapshot(PASSING, last, 1 if start <= last else 0)
        if policy == "last_per_subject" and self._whole:
            state = (await self._page({})).state
            return Snapshot(COUNTING, state.last_seq, state.num_subjects)
        counts, fence = await self.look()
        if policy == "last_per_subject":
            counts = dict.fromkeys(counts, 1)
        return Snapshot.of(counts, fence)

    async def look(self) -> tuple[dict[str, int], int]:
        """Return how many entries each key has, and the last sequence of the stream before that."""
        filters = self._filters
        if len(filters) > _MOST_CALLS:
            filters = [ALL_KEYS]
        found: dict[str, int] = {}
        fence = 0
        for each in filters:
            subjects, last = await self._subjects(self._prefix + each)
            fence = min(fence, last) if fence else last
            for subject in subjects:
                key = subject[len(self._prefix) :]
                if subjects[subject] and self._wants(key):
                    found[key] = subjects[subject]
        return found, fence

    async def entries(self, key: str, after: int, *, all: bool) -> list[StoredMsg]:
        """Read from the leader the last entry of a key, or all of them after a sequence."""
        subject = self._prefix + key
        found: list[StoredMsg] = []
        try:
            if not all:
                body: dict[str, object] = {"last_by_subj": subject}
                return [await get_by_api(self.api, self._stream, body)]
            while True:
                body = {"seq": after + 1, "next_by_subj": subject}
                found.append(await get_by_api(self.api, self._stream, body))
                after = found[-1].seq
        except MessageNotFound:
            return found

    async def has_more(self, after: int, fence: int) -> bool:
        """Return whether the stream has an entry after `after` and at or before `fence`."""
        for each in self._filters:
            body = {"seq": after + 1, "next_by_subj": self._prefix + each}
            try:
                if (await get_by_api(self.api, self._stream, body)).seq <= fence:
                    return True
            except MessageNotFound:
                pass
        return False

    def _wants(self, key: str) -> bool:
        if len(self._filters) <= _MOST_CALLS:
            return True
        return any(matches(each, key) for each in self._filters)

    async def _subjects(self, subject: str) -> tuple[dict[str, int], int]:
        """Return all subjects, and the last sequence before they were listed.

        Pages are sorted, and each begins with the last subject of the previous page. If it does
        not, subjects were removed in the meantime and others may have been skipped (D-KV-43).
        """
        found: dict[str, int] = {}
        fence = offset = detours = 0
        last = ""
        while True:
            info = await self._page({"subjects_filter": subject, "offset": offset})
            page = info.state.subjects
            fence = fence or info.state.last_seq
            known = len(found)
            found.update(page)
            if offset and (not page or min(page) > last) and detours < _DETOURS:
                detours += 1
                offset = 0
                continue
            if len(found) == known:
                detours += 1  # new subjects have moved these to a later page
            if offset + len(page) >= info.total or detours > _DETOURS:
                return found, fence
            last = max(page)
            offset += max(1, len(page) - 1)

    async def _page(self, body: dict[str, object]) -> StreamInfo:
        return StreamInfo.from_json(await self.api.call("STREAM.INFO.%s" % self._stream, body))
