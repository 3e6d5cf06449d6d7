"""Watcher: the changes of a bucket as they happen, for keys (KeyWatcher) and for objects.

A watch is an ordered consumer of the bucket's stream, whose messages become entries. It is a pull
consumer (ordered/api.py), which notices its loss soonest. Only under the prefix of another account
it is a push consumer (ordered/push.py): an import lets a single answer to a pull through, unless
its export says otherwise (KV-39).

The initial values come first: those that the bucket had when the watch began. A Snapshot
(snapshot.py), which is taken before the consumer is created, knows when they are complete. If a
missing value may be gone, the stream is asked again: at once when an entry suggests it, and after a
second without any entry (D-KV-36).

Then each change follows, also across lost connections and restarts.
"""

from __future__ import annotations

from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from jetstream.ordered.api import open_ordered
from jetstream.ordered.config import ordered_config
from jetstream.schema.info import ConsumerInfo
from jetstream.stream import INACTIVE
from natsproto.errors import RemoteError, TimeoutExpired
from natsproto.wire.text import shorten

from .entry import delivered_entry, stored_entry
from .generic import Generic
from .options import WatchOptions as WatchOptions
from .snapshot import Lister

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from typing_extensions import Self

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.config import ConsumerConfig
    from jetstream.machine.iteration import MachineEvents
    from jetstream.message import JsMsg
    from jetstream.ordered.cursor import Cursor
    from jetstream.pull.messages import Messages
    from jetstream.push.api import PushMessages
    from jetstream.schema.timestamp import Timestamp

    from .entry import KeyValueEntry
    from .snapshot import Snapshot

    Item = TypeVar("Item")
    Made = TypeVar("Made", bound="Watcher[Any]")
else:
    Item = None

_PATIENCE = 1.0  # without an initial value, until the stream is asked again
_LOOKS = 3  # after so many, missing values are read from the stream
_MOST_READ = 64  # keys at a time


class WatchTarget:
    """The part of a stream that is watched: the subjects that start with `prefix`.

    history    how many entries of a key the stream keeps
    whole      whether all subjects of the stream start with the prefix
    """

    __slots__ = ("api", "bucket", "history", "prefix", "stream", "whole")

    def __init__(
        self,
        api: ApiClient,
        stream: str,
        bucket: str,
        prefix: str,
        *,
        history: int = 1,
        whole: bool = False,
    ) -> None:
        self.api: ApiClient = api
        self.stream: str = stream
        self.bucket: str = bucket
        self.prefix: str = prefix
        self.history: int = history
        self.whole: bool = whole


async def open_watch(
    make: type[Made],
    target: WatchTarget,
    options: WatchOptions,
    *,
    max_bytes: int | None = None,
    snapshot: Snapshot | None = None,
) -> Made:
    """Create the consumer of a watch, and return its watcher, which is of the class `make`.

    max_bytes  how much may wait to be read, if the consumer is a pull consumer
    snapshot   the initial values, if they are known; by default the stream is asked
    """
    api, stream = target.api, target.stream
    config = ordered_config(
        filter_subjects=[target.prefix + each for each in options.filters],
        deliver_policy=options.policy,
        opt_start_seq=options.start,
        opt_start_time=None,
        replay_policy="instant",
        headers_only=options.meta_only,
        inactive_threshold=INACTIVE,
        metadata=None,
    )
    api.check_since(config)
    lister = Lister(api, stream, target.prefix, options.filters, whole=target.whole)
    try:
        if snapshot is None:
            snapshot = await lister.take(options.policy, options.start or 0)  # D-KV-40
        messages, cursor = await _consume(api, stream, config, max_bytes)
    except StreamNotFound:
        raise BucketNotFound(target.bucket) from None
    if options.policy == "last_per_subject" and target.history != 1:
        # D-ORDERED-26: a recreated consumer must not deliver older entries of a key instead of its
        # latest. With one entry of each key it simply continues.
        info = cursor.info
        assert info is not None
        cursor.ahead = max(0, info.num_pending - cursor.consumer_seq)
    return make(target, options, messages, cursor, lister, snapshot)


async def _consume(
    api: ApiClient, stream: str, config: ConsumerConfig, max_bytes: int | None
) -> tuple[Messages | PushMessages, Cursor]:
    if api.prefix.startswith("$JS."):
        # KV-37
        consumer = await open_ordered(api, stream, "", config, None)  # D-KV-44: or nothing is left
        return consumer.consume(max_bytes=max_bytes), consumer.cursor
    from jetstream.ordered.subscribe import subscribe_ordered

    messages = await subscribe_ordered(api, stream, config.to_json())  # KV-39
    assert messages.cursor is not None
    return messages, messages.cursor


class Watcher(Generic[Item]):
    """Base of the watchers: iterate it for the initial values, and then for each change.

    A subclass says what an entry of the stream is to its users (`_read`).
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
        self._lister = lister
        self._options = options
        # The last revision: all entries up to it were taken, as far as they were sent.
        self._taken = (options.start or 1) - 1
        self._skipped: list[KeyValueEntry] = []  # by the consumer, and read from the stream
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
        """Return the item for this entry; None: it is not wanted."""
        raise NotImplementedError

    @property
    def initialized(self) -> bool:
        """Whether all initial values have been read, or there were none."""
        return self._snapshot.done

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        return self._messages.closed

    async def next(self, timeout: float | None = None) -> Item:
        """Return the next item; raise TimeoutExpired, or InvalidState after `stop`."""
        session = self._api.session
        deadline = None if timeout is None else session.deadline(timeout)
        patient = timeout is None or timeout >= self._api.timeout
        while True:
            if patient and self._snapshot.doubtful:
                await self._resolve()
            item = self._pop_skipped()
            if item is None:
                left = None
                if deadline is not None:
                    left = max(0.0, deadline - session.port.now())
                item = self._accept(await self._take(left))
            if item is not None:
                return item

    async def next_initial(self) -> Item | None:
        """Return the next initial value, or None if there are no more.

        TimeoutExpired: no message arrived within the timeout of this JetStream. The watch
        continues all the same.
        """
        session = self._api.session
        deadline: float | None = None
        while not self._snapshot.done:
            item = self._pop_skipped() if self._skipped else None
            if item is not None:
                return item
            if self._snapshot.doubtful:
                await self._settle()
                continue
            msg = self._messages.poll()
            if msg is None:
                if deadline is None:
                    deadline = session.deadline(self._api.timeout)  # D-KV-45
                try:
                    msg = await self._take(min(_PATIENCE, max(0.0, deadline - session.port.now())))
                except TimeoutExpired:
                    if session.port.now() >= deadline:
                        raise self._too_long() from None
                    await self._settle()
                    continue
            item = self._accept(msg)
            if item is not None:
                return item
            deadline = None
        return None

    async def stop(self) -> None:
        """End the watch now."""
        await self._messages.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while True:
            if self._snapshot.doubtful:
                await self._resolve()
            item = self._pop_skipped() if self._skipped else None
            if item is not None:
                return item
            msg = self._messages.poll()
            if msg is None:
                try:
                    msg = await self._messages.__anext__()
                except StreamNotFound:
                    raise BucketNotFound(self._bucket) from None
            item = self._accept(msg)
            if item is not None:
                return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<%s of %s>" % (type(self).__name__, self._bucket)

    async def _take(self, timeout: float | None) -> JsMsg:
        messages = self._messages
        try:
            if messages.pending:
                return await messages.__anext__()  # which lets other tasks run now and then
            return await messages.next(timeout)
        except StreamNotFound:
            raise BucketNotFound(self._bucket) from None

    def _accept(self, msg: JsMsg) -> Item | None:
        """Return the item in this message; None: it is not wanted."""
        entry = delivered_entry(msg, self._bucket, self._prefix)
        snapshot = self._snapshot
        if not snapshot.done:  # most entries are changes: avoid a call for those
            self._taken = entry.revision
            snapshot.see(entry.key, entry.revision, entry.delta)
        return self._read(entry)

    async def _resolve(self) -> None:
        """Settle a doubt for a caller that waits for any entry, unless an entry is here."""
        if not self._messages.pending:
            try:
                await self._settle()
            except TimeoutExpired:
                pass  # D-KV-45 is only about initial values

    async def _settle(self) -> None:
        """Find out whether the missing initial values still exist (D-KV-36)."""
        self._snapshot.doubtful = False
        try:
            if self._snapshot.passing:
                self._snapshot.settled(
                    await self._lister.has_more(self._taken, self._snapshot.fence)
                )
            else:
                self._snapshot.listed(*await self._lister.look())
                if self._snapshot.looks >= _LOOKS:
                    await self._recover()
        except StreamNotFound:
            raise BucketNotFound(self._bucket) from None
        except TimeoutExpired:
            if not self._messages.pending:
                raise self._too_long() from None
        except RemoteError:
            pass  # for example no leader at the moment: asked again after a while

    async def _recover(self) -> None:
        """Read missing values from the stream, and keep those that the consumer skipped.

        D-KV-43.
        """
        all = self._options.policy == "all"
        found: list[StoredMsg] = []
        for key, after in self._snapshot.missing(_MOST_READ):
            entries = await self._lister.entries(key, after, all=all)
            if not entries:
                self._snapshot.forget(key)
            found += entries
        known = self._taken
        if [msg for msg in found if msg.seq > known] and not self._messages.pending:
            known = max(known, await self._delivered_up_to() or 0)
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

    async def _delivered_up_to(self) -> int | None:
        """Return the last stream sequence that was delivered; None if messages are still queued.

        ConsumerNotFound: the consumer is being recreated.
        """
        cursor = self._cursor
        path = "CONSUMER.INFO.%s.%s" % (cursor.stream, cursor.name)
        info = ConsumerInfo.from_json(await self._api.call(path))
        here = info.name == cursor.name and info.delivered.consumer_seq == cursor.consumer_seq
        return info.delivered.stream_seq if here and not self._messages.pending else None

    def _too_long(self) -> TimeoutExpired:
        text = "no initial value from bucket %s for %g s: the server does not answer"
        return TimeoutExpired(text % (shorten(self._bucket), self._api.timeout))


class Initial(Generic[Item]):
    """Iterate the initial values of a watch."""

    def __init__(self, watcher: Watcher[Item]) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        item = await self._watcher.next_initial()
        if item is None:
            raise StopAsyncIteration
        return item


if TYPE_CHECKING:
    _KeyWatcher = Watcher[KeyValueEntry]
    _InitialEntries = Initial[KeyValueEntry]
else:
    _KeyWatcher = Watcher
    _InitialEntries = Initial


class InitialEntries(_InitialEntries):
    """Iterate the initial values of a watch. Made by KeyWatcher.initial."""


class KeyWatcher(_KeyWatcher):
    """Watch entries: iterate over them. Made by KeyValue.watch; end it with `stop`.

    `initial` returns the values that exist now, and ends. Iterating the watcher returns the rest of
    them and then each change, without end. It raises BucketNotFound if the bucket is deleted; other
    failures are recovered from, and reported by `events`.
    """

    def initial(self) -> InitialEntries:
        """Return an iterator over the initial values that were not read yet.

        It raises TimeoutExpired if no message arrives within the timeout of this JetStream; the
        watch continues all the same.
        """
        return InitialEntries(self)

    def _read(self, entry: KeyValueEntry) -> KeyValueEntry | None:
        return None if self._options.ignore_deletes and entry.deleted else entry  # KV-34


class KeyLister:
    """List the keys of a bucket, one by one: iterate over it. Made by KeyValue.list_keys.

    Nothing is collected, so a key that changes meanwhile may be returned twice.
    """

    def __init__(self, watcher: KeyWatcher) -> None:
        self._watcher = watcher

    async def stop(self) -> None:
        """End now; after the last key this happens by itself."""
        await self._watcher.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        entry = await self._watcher.next_initial()
        if entry is None:
            await self.stop()
            raise StopAsyncIteration
        return entry.key

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()
