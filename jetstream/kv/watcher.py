"""Watcher: the part that the watches of keys and of objects share.

The initial values come first: those that the bucket had when the watch began. A Snapshot
(snapshot.py), which is taken before the consumer is created, knows when they are complete. If a
missing value may be gone, the snapshot is in doubt, and the stream is asked again: as soon as an
entry suggests it, and after a second without any entry (D-KV-36).

Then each change follows, even across lost connections and restarts.

Messages that are at hand become entries in one go, up to 63 of them: fewer calls for each.
"""

from __future__ import annotations

from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from jetstream.machine.iteration import peek_raw, take_raw
from jetstream.schema.consumer_info import ConsumerInfo
from natsproto.durations import to_seconds
from natsproto.errors import RemoteError, TimeoutExpired
from natsproto.wire.text import shorten

from .coding import PLAIN
from .entry import delivered_entries, stored_entry
from .generic import Generic
from .snapshot import PASSING

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from typing_extensions import Self

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.machine.iteration import MachineEvents
    from jetstream.message import JsMsg
    from jetstream.ordered.cursor import Cursor
    from jetstream.pull.messages import Messages
    from jetstream.push.api import PushMessages
    from jetstream.schema.timestamp import Timestamp
    from natsproto.durations import Seconds

    from .entry import KeyValueEntry
    from .options import WatchOptions, WatchTarget
    from .snapshot import Lister, Snapshot

    Item = TypeVar("Item")
else:
    Item = None

_PATIENCE = 1.0  # seconds without an initial value until the stream is asked again
_LOOKS = 3  # listings of the stream until missing values are read from it
_MOST_READ = 64  # keys that are read at a time


class Watcher(Generic[Item]):
    """Base class of watchers: iterating yields the initial values, and then each change.

    A subclass decides which item an entry of the stream becomes (`_read`).
    """

    def __init__(
        self,
        target: WatchTarget,
        options: WatchOptions,
        messages: Messages | PushMessages,
        cursor: Cursor,
        lister: Lister,
        snapshot: Snapshot,
    ) -> None:
        self._api = target.api
        self._messages = messages
        self._bucket = target.bucket
        self._prefix = target.prefix
        self._coding = target.coding
        self._lister = lister
        self._options = options
        # The revision of the last entry from the consumer that was accepted.
        self._taken = (options.start or 1) - 1
        self._ready: list[KeyValueEntry] = []  # taken from the consumer, last one first
        self._recorded = 0  # how many of them the snapshot has recorded: they are items already
        self._skipped: list[KeyValueEntry] = []  # skipped by the consumer, read by us
        self._cursor = cursor
        self._snapshot = snapshot
        info = cursor.info
        assert info is not None
        #: When the watch began, by the server's clock.
        self.began: Timestamp | None = info.created
        snapshot.doubtful = not (snapshot.done or info.num_pending)
        #: Events of the watch: ConsumerReset, StreamRecreated. Iterate, or call next.
        self.events: MachineEvents = messages.events

    def _read(self, entry: KeyValueEntry) -> Item | None:
        """Return the item for this entry; None if the entry is omitted."""
        raise NotImplementedError

    @property
    def initialized(self) -> bool:
        """Whether all initial values have been read, or there were none."""
        return self._snapshot.done

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        return not self._ready and self._messages.closed

    async def next(self, timeout: Seconds | None = None) -> Item:
        """Return the next item; raise TimeoutExpired, or InvalidState after `stop`."""
        session = self._api.session
        deadline = None if timeout is None else session.deadline(timeout)
        patient = timeout is None or to_seconds(timeout) >= self._api.timeout
        while True:
            if patient and self._snapshot.doubtful:  # D-KV-50: in the loop, not only at its start
                await self._resolve(deadline)
            item = self._pop_skipped()
            if item is None:
                left = None
                if deadline is not None:
                    left = max(0.0, deadline - session.port.now())
                if not self._ready:
                    await self._take(left)
                item = self._accept()
            if item is not None:
                return item

    async def next_initial(self) -> Item | None:
        """Return the next initial value, or None if there are no more.

        TimeoutExpired: no message arrived within the timeout of this JetStream. The watch itself
        continues.
        """
        session = self._api.session
        deadline: float | None = None
        while not self._snapshot.done:
            item = self._pop_skipped()
            if item is not None:
                return item
            if self._snapshot.doubtful:
                await self._settle(deadline)
                continue
            if not self._ready and not self._fill():
                if deadline is None:
                    deadline = session.deadline(self._api.timeout)  # D-KV-45
                try:
                    await self._take(min(_PATIENCE, max(0.0, deadline - session.port.now())))
                except TimeoutExpired:
                    if session.port.now() >= deadline:
                        raise self._too_long() from None
                    await self._settle(deadline)
                    continue
            item = self._accept()
            if item is not None:
                return item
            deadline = None
        return None

    async def stop(self) -> None:
        """End the watch now."""
        self._ready = []
        self._recorded = 0
        await self._messages.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while True:
            if self._snapshot.doubtful:  # D-KV-50, as in `next`
                await self._resolve()
            item = self._pop_skipped()
            if item is not None:
                return item
            if not self._ready and not self._fill():
                await self._receive(self._messages.__anext__())
            item = self._accept()
            if item is not None:
                return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<%s of %s>" % (type(self).__name__, self._bucket)

    def _fill(self) -> bool:
        """Take the messages that are at hand; return whether there were any."""
        msgs = peek_raw(self._messages)
        if not msgs:
            return False
        entries = delivered_entries(msgs, self._bucket, self._prefix)
        take_raw(self._messages, len(entries))
        entries.reverse()
        self._ready = entries
        # If there is nothing else to do for them, an entry takes 0.6 us less: four calls.
        if self._coding is PLAIN and not self._options.ignore_deletes:
            self._recorded = self._snapshot.see_all(entries)
        return True

    async def _take(self, timeout: float | None) -> None:
        """Take the next message; raise TimeoutExpired, or InvalidState at the end."""
        messages = self._messages
        if messages.pending:
            await self._receive(messages.__anext__())  # it lets other tasks run from time to time
        else:
            await self._receive(messages.next(timeout))

    async def _receive(self, message: Awaitable[JsMsg]) -> None:
        try:
            msg = await message
        except StreamNotFound:
            raise BucketNotFound(self._bucket) from None
        # After those that another task has taken meanwhile.
        self._ready[:0] = delivered_entries([msg], self._bucket, self._prefix)

    @property
    def _pending(self) -> bool:
        """Whether an entry has arrived and was not accepted yet."""
        return bool(self._ready) or self._messages.pending > 0

    def _poll_initial(self) -> Item | None:
        """Return the next initial value if it is at hand; None: `next_initial` has to look."""
        if not self._recorded:
            snapshot = self._snapshot
            if self._skipped or snapshot.doubtful or snapshot.done:
                return None
            if not self._ready and not self._fill():
                return None
        return self._accept()

    def _accept(self) -> Item | None:
        """Return the item for the next entry of the consumer; None: it is not wanted."""
        entry = self._ready.pop()
        if self._recorded:
            self._recorded -= 1
            return entry  # type: ignore[return-value]
        snapshot = self._snapshot
        if not snapshot.done:  # most entries are changes: avoid a call for those
            self._taken = entry.revision
            snapshot.see(entry.key, entry.revision, entry.delta)
            if snapshot.done:
                self._cursor.ahead = 0
        return self._read(entry)

    async def _resolve(self, deadline: float | None = None) -> None:
        """Resolve a doubt for a caller that waits for any entry, unless an entry has arrived."""
        if not self._pending:
            try:
                await self._settle(deadline)
            except TimeoutExpired:
                pass  # D-KV-45 is only about initial values

    async def _settle(self, deadline: float | None) -> None:
        """Find out whether the missing initial values still exist (D-KV-36)."""
        self._snapshot.doubtful = False
        lister = self._lister if deadline is None else self._lister.paced(deadline)
        try:
            if self._snapshot.state == PASSING:  # only the sequence in the stream counts
                self._snapshot.settled(await lister.has_more(self._taken, self._snapshot.fence))
            else:
                self._snapshot.listed(*await lister.look())
                if self._snapshot.looks >= _LOOKS:
                    await self._recover(lister)
        except StreamNotFound:
            raise BucketNotFound(self._bucket) from None
        except TimeoutExpired:
            if not self._pending:
                raise self._too_long() from None
        except RemoteError:
            pass  # for example no leader at the moment; the stream is asked again later
        if self._snapshot.done:
            self._cursor.ahead = 0

    async def _recover(self, lister: Lister) -> None:
        """Read missing values from the stream, and keep those that the consumer skipped.

        D-KV-43.
        """
        all = self._options.policy == "all"
        found: list[StoredMsg] = []
        for key, after in self._snapshot.missing(_MOST_READ):
            entries = await lister.entries(key, after, all=all)
            if not entries:
                self._snapshot.forget(key)
            found += entries
        known = self._taken
        if [msg for msg in found if msg.seq > known] and not self._pending:
            known = max(known, await self._delivered_up_to(lister.api) or 0)
        for msg in found:
            if msg.seq <= known:
                entry = stored_entry(msg, self._bucket, msg.subject[len(self._prefix) :])
                if self._options.meta_only:
                    entry.value = b""
                self._skipped.append(entry)

    def _pop_skipped(self) -> Item | None:
        while self._skipped:
            entry = self._skipped.pop(0)
            self._snapshot.see(entry.key, entry.revision, 1)
            item = self._read(entry)
            if item is not None:
                return item
        return None

    async def _delivered_up_to(self, api: ApiClient) -> int | None:
        """Return the last stream sequence that was delivered; None if messages are still queued.

        ConsumerNotFound: the consumer is being recreated.
        """
        cursor = self._cursor
        path = "CONSUMER.INFO.%s.%s" % (cursor.stream, cursor.name)
        info = ConsumerInfo.from_json(await api.call(path))
        here = info.name == cursor.name and info.delivered.consumer_seq == cursor.consumer_seq
        return info.delivered.stream_seq if here and not self._pending else None

    def _too_long(self) -> TimeoutExpired:
        text = "no initial value from bucket %s for %g s: the server does not respond"
        return TimeoutExpired(text % (shorten(self._bucket), self._api.timeout))


class Initial(Generic[Item]):
    """Iterate the initial values of a watch."""

    def __init__(self, watcher: Watcher[Item]) -> None:
        self._watcher = watcher
        #: Returns the next value if it is at hand; None: `__anext__` has to look.
        self.poll: Callable[[], Item | None] = watcher._poll_initial  # pyright: ignore[reportPrivateUsage]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        # Nearly every value is at hand: without another coroutine that takes 0.3 us less.
        item = self.poll()
        if item is None:
            item = await self._watcher.next_initial()
            if item is None:
                raise StopAsyncIteration
        return item
