"""KeyWatcher and KeyLister: the entries and the keys of a bucket; open_watch begins a watch.

A watch is an ordered consumer of the bucket's stream, whose messages become entries. It is a pull
consumer (ordered/api.py), which notices its loss soonest. Only under the prefix of another account
is it a push consumer (ordered/subscribe.py): by default an import lets only one response to a pull
through (KV-39).
"""

from __future__ import annotations

from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from jetstream.ordered.api import open_ordered
from jetstream.ordered.config import ordered_config
from jetstream.streams.stream import INACTIVE

from .snapshot import Lister
from .watcher import Initial, Watcher

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from typing_extensions import Self

    from jetstream.api.client import ApiClient
    from jetstream.config import ConsumerConfig
    from jetstream.ordered.cursor import Cursor
    from jetstream.pull.messages import Messages
    from jetstream.push.api import PushMessages

    from .entry import KeyValueEntry
    from .options import WatchOptions, WatchTarget
    from .snapshot import Snapshot

    Made = TypeVar("Made", bound=Watcher[Any])
    _KeyWatcher = Watcher[KeyValueEntry]
    _InitialEntries = Initial[KeyValueEntry]
else:
    _KeyWatcher = Watcher
    _InitialEntries = Initial


# How many messages a watch requests: twice the usual number, since initial values come in masses.
_BUFFER = 1000


async def open_watch(
    make: type[Made],
    target: WatchTarget,
    options: WatchOptions,
    *,
    max_bytes: int | None = None,
    snapshot: Snapshot | None = None,
    calls: ApiClient | None = None,
) -> Made:
    """Create the consumer of a watch, and return its watcher, which is of the class `make`.

    max_bytes  how much may wait to be read, if the consumer is a pull consumer
    snapshot   the initial values, if they are known; by default the stream is asked
    calls      creates the consumer, within the timeout of another call
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
        messages, cursor = await _consume(api, calls or api, stream, config, max_bytes)
    except StreamNotFound:
        raise BucketNotFound(target.bucket) from None
    if options.policy == "last_per_subject" and target.history != 1:
        # D-ORDERED-26: a recreated consumer must not deliver older entries of a key instead of its
        # latest. With one entry of each key it simply continues.
        cursor.expect_latest(snapshot.left, snapshot.fence)
    return make(target, options, messages, cursor, lister, snapshot)


async def _consume(
    api: ApiClient, calls: ApiClient, stream: str, config: ConsumerConfig, max_bytes: int | None
) -> tuple[Messages | PushMessages, Cursor]:
    if api.prefix.startswith("$JS."):
        # KV-37
        # D-KV-44: or nothing is left
        consumer = await open_ordered(api, stream, "", config, None, calls)
        most = None if max_bytes else _BUFFER
        return consumer.consume(max_messages=most, max_bytes=max_bytes), consumer.cursor
    from jetstream.ordered.subscribe import subscribe_ordered

    end = calls.deadline()
    messages = await subscribe_ordered(api, stream, config.to_json(), deadline=end)  # KV-39
    assert messages.cursor is not None
    return messages, messages.cursor


class InitialEntries(_InitialEntries):
    """Iterate the initial values of a watch. Returned by KeyWatcher.initial."""


class KeyWatcher(_KeyWatcher):
    """Watch entries: iterate over them. Returned by KeyValue.watch; end it with `stop`.

    `initial` returns the values that exist now, and ends. Iterating the watcher returns the rest of
    them and then each change, without end. It raises BucketNotFound if the bucket is deleted; other
    failures are recovered from, and reported by `events`.
    """

    def initial(self) -> InitialEntries:
        """Return an iterator over the initial values that were not read yet.

        It raises TimeoutExpired if no message arrives within the timeout of this JetStream; the
        watch itself continues.
        """
        return InitialEntries(self)

    def _read(self, entry: KeyValueEntry) -> KeyValueEntry | None:
        options = self._options
        if options.ignore_deletes and entry.deleted:
            return None  # KV-34
        return self._coding.entry(entry, has_value=not options.meta_only)


class KeyLister:
    """List the keys of a bucket, one by one: iterate over it. Returned by KeyValue.list_keys.

    Keys are not collected first, so a key that changes in the meantime may be returned twice.
    """

    def __init__(self, watcher: KeyWatcher) -> None:
        self._watcher = watcher

    async def stop(self) -> None:
        """End now; after the last key this happens automatically."""
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
