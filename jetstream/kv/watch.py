"""KeyWatcher: what happens to keys, as it happens; KeyLister: which keys there are.

A watch is an ordered consumer of the bucket's stream, whose messages become entries. It is pulled
from (ordered/api.py), which tells soonest that it was lost. Only under the prefix of another
account it is a push consumer (ordered/push.py): an import lets one answer to a pull through, and no
more, unless its export says otherwise (KV-39).

First come the initial values: what was there when the watch began. A Snapshot (snapshot.py),
which is taken before the consumer is created, knows when they are complete. If something that is
missing may be gone, the stream is asked again: at once when an entry says so, and after a second
without any (KV-36).

Then each change comes, over lost connections and restarts as well.
"""

from __future__ import annotations

from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from jetstream.ordered.api import open_ordered, ordered_config
from jetstream.schema.info import ConsumerInfo
from jetstream.stream import INACTIVE
from natsproto.errors import RemoteError, TimeoutExpired
from natsproto.wire.text import shorten

from .entry import delivered_entry, stored_entry
from .options import WatchOptions as WatchOptions
from .snapshot import Lister

TYPE_CHECKING = False
if TYPE_CHECKING:
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

_PATIENCE = 1.0  # for the next of the initial values
_LOOKS = 3  # at the stream, until what is missing is read from it
_MOST_READ = 64  # keys at a time


async def open_watch(
    api: ApiClient,
    stream: str,
    bucket: str,
    prefix: str,
    history: int,
    options: WatchOptions,
    *,
    whole: bool = False,
    max_bytes: int | None = None,
    snapshot: Snapshot | None = None,
) -> KeyWatcher:
    """Return a watcher whose consumer exists; `prefix` is what subjects of keys start with.

    whole      all subjects of the stream start with the prefix
    max_bytes  no more wait to be taken, where the consumer is pulled from
    snapshot   what the initial values are, if that is known; else the stream is asked
    """
    config = ordered_config(
        filter_subjects=[prefix + each for each in options.filters],
        deliver_policy=options.policy,
        opt_start_seq=options.start,
        opt_start_time=None,
        replay_policy="instant",
        headers_only=options.meta_only,
        inactive_threshold=INACTIVE,
        metadata=None,
    )
    api.check_since(config)
    lister = Lister(api, stream, prefix, options.filters, whole=whole)
    try:
        if snapshot is None:
            snapshot = await lister.take(options.policy, options.start or 0)  # KV-40
        messages, cursor = await _consume(api, stream, config, max_bytes)
    except StreamNotFound:
        raise BucketNotFound(bucket) from None
    # Where there is but one entry of each key, a consumer in the place of a lost one goes on.
    anew = options.policy == "last_per_subject" and history != 1
    return KeyWatcher(api, messages, cursor, Place(bucket, prefix, lister), options, snapshot, anew)


async def _consume(
    api: ApiClient, stream: str, config: ConsumerConfig, max_bytes: int | None
) -> tuple[Messages | PushMessages, Cursor]:
    if api.prefix.startswith("$JS."):
        consumer = await open_ordered(api, stream, "", config, None)  # KV-44: or nothing is left
        return consumer.consume(max_bytes=max_bytes), consumer.cursor
    from jetstream.ordered.subscribe import subscribe_ordered

    messages = await subscribe_ordered(api, stream, config.to_json())  # KV-39
    assert messages.cursor is not None
    return messages, messages.cursor


class Place:
    """What a watch is about: a bucket, what its subjects start with, and who lists its keys."""

    __slots__ = ("bucket", "lister", "prefix")

    def __init__(self, bucket: str, prefix: str, lister: Lister) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self.lister = lister


class KeyWatcher:
    """Entries as they come: iterate it. Made by KeyValue.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(
        self,
        api: ApiClient,
        messages: Messages | PushMessages,
        cursor: Cursor,
        place: Place,
        options: WatchOptions,
        snapshot: Snapshot,
        anew: bool,
    ) -> None:
        self._api = api
        self._messages = messages
        self._bucket = place.bucket
        self._prefix = place.prefix
        self._lister = place.lister
        self._options = options
        # The last revision. All up to it were taken, as far as they were sent.
        self._taken = (options.start or 1) - 1
        self._skipped: list[KeyValueEntry] = []  # by the consumer, and read from the stream
        self._cursor = cursor
        self._snapshot = snapshot
        info = cursor.info
        assert info is not None
        #: When it began, by the server's clock.
        self.began: Timestamp | None = info.created
        if anew:
            # ORDERED-26: older entries of a key must not come in the place of its latest.
            cursor.ahead = max(0, info.num_pending - cursor.consumer_seq)
        snapshot.doubtful = not (snapshot.done or info.num_pending)
        #: What happened: ConsumerReset, StreamRecreated. Iterate, or call next.
        self.events: MachineEvents = messages.events

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        return self._snapshot.done

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._messages.closed

    async def next(self, timeout: float | None = None) -> KeyValueEntry:
        """The next entry; TimeoutExpired, or InvalidState when it was stopped."""
        session = self._api.session
        deadline = None if timeout is None else session.deadline(timeout)
        if self._snapshot.doubtful and (timeout is None or timeout >= self._api.timeout):
            await self._resolve()
        while True:
            entry = self._pop_skipped()
            if entry is None:
                left = None
                if deadline is not None:
                    left = max(0.0, deadline - session.port.now())
                entry = self._read(await self._take(left))
            if entry is not None:
                return entry

    def initial(self) -> InitialEntries:
        """The initial values that were not taken yet: iterate it. It ends with the last one.

        TimeoutExpired if no message arrives for as long as a call of this JetStream may take; the
        watch goes on all the same.
        """
        return InitialEntries(self)

    async def next_initial(self) -> KeyValueEntry | None:
        """The next of the initial values; None if there are no more. TimeoutExpired as above."""
        session = self._api.session
        deadline: float | None = None
        while not self._snapshot.done:
            entry = self._pop_skipped() if self._skipped else None
            if entry is not None:
                return entry
            if self._snapshot.doubtful:
                await self._settle()
                continue
            msg = self._messages.poll()
            if msg is None:
                if deadline is None:
                    deadline = session.deadline(self._api.timeout)  # KV-45
                try:
                    msg = await self._take(min(_PATIENCE, max(0.0, deadline - session.port.now())))
                except TimeoutExpired:
                    if session.port.now() >= deadline:
                        raise self._too_long() from None
                    await self._settle()
                    continue
            entry = self._read(msg)
            if entry is not None:
                return entry
            deadline = None
        return None

    async def stop(self) -> None:
        """End now."""
        await self._messages.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> KeyValueEntry:
        if self._snapshot.doubtful:
            await self._resolve()
        while True:
            entry = self._pop_skipped() if self._skipped else None
            if entry is not None:
                return entry
            msg = self._messages.poll()
            if msg is None:
                try:
                    msg = await self._messages.__anext__()
                except StreamNotFound:
                    raise BucketNotFound(self._bucket) from None
            entry = self._read(msg)
            if entry is not None:
                return entry

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<KeyWatcher of %s>" % self._bucket

    async def _take(self, timeout: float | None) -> JsMsg:
        messages = self._messages
        try:
            if messages.pending:
                return await messages.__anext__()  # which lets others run now and then
            return await messages.next(timeout)
        except StreamNotFound:
            raise BucketNotFound(self._bucket) from None

    def _read(self, msg: JsMsg) -> KeyValueEntry | None:
        """The entry; None if it is not wanted."""
        entry = delivered_entry(msg, self._bucket, self._prefix)
        snapshot = self._snapshot
        if not snapshot.done:  # most are changes: no call for those
            self._taken = entry.revision
            snapshot.see(entry.key, entry.revision, entry.delta)
        return None if self._options.ignore_deletes and entry.deleted else entry

    async def _resolve(self) -> None:
        """For those who wait for any entry: settle a doubt, unless an entry is here."""
        if not self._messages.pending:
            try:
                await self._settle()
            except TimeoutExpired:
                pass  # KV-45 is about initial values

    async def _settle(self) -> None:
        """Find out whether what is missing of the initial values will ever come (KV-36)."""
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
            pass  # no leader now, for one: it is asked again after a while

    async def _recover(self) -> None:
        """Read what is missing from the stream, and take what the consumer has skipped (KV-43)."""
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

    def _pop_skipped(self) -> KeyValueEntry | None:
        while self._skipped:
            entry = self._skipped.pop(0)
            self._snapshot.see(entry.key, entry.revision, 1)
            if not (self._options.ignore_deletes and entry.deleted):
                return entry
        return None

    async def _delivered_up_to(self) -> int | None:
        """How far the consumer has come in the stream; None if some of that is still to be taken.

        ConsumerNotFound while it is replaced.
        """
        cursor = self._cursor
        path = "CONSUMER.INFO.%s.%s" % (cursor.stream, cursor.name)
        info = ConsumerInfo.from_json(await self._api.call(path))
        here = info.name == cursor.name and info.delivered.consumer_seq == cursor.consumer_seq
        return info.delivered.stream_seq if here and not self._messages.pending else None

    def _too_long(self) -> TimeoutExpired:
        text = "no initial value from bucket %s for %g s: the server does not answer"
        return TimeoutExpired(text % (shorten(self._bucket), self._api.timeout))


class InitialEntries:
    """The initial values of a watch: iterate it."""

    def __init__(self, watcher: KeyWatcher) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> KeyValueEntry:
        entry = await self._watcher.next_initial()
        if entry is None:
            raise StopAsyncIteration
        return entry


class KeyLister:
    """The keys of a bucket, as they come: iterate it. Made by KeyValue.list_keys.

    Nothing is collected, so a key that changes meanwhile may come twice.
    """

    def __init__(self, watcher: KeyWatcher) -> None:
        self._watcher = watcher

    async def stop(self) -> None:
        """End now; at the end of the keys it does so by itself."""
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
