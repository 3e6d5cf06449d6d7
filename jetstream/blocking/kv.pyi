# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from typing_extensions import Self

from jetstream.blocking.loops import StoppableLoop
from jetstream.blocking.pull import PullEvents
from jetstream.kv import store as _kv
from jetstream.kv import watch as _watch
from jetstream.kv.codecs import KeyCodec, ValueCodec
from jetstream.kv.config import KeyValueConfig, KeyValueStatus
from jetstream.kv.entry import KeyValueEntry
from jetstream.machine.iteration import MachineEvents
from jetstream.schema.timestamp import Timestamp
from natsproto.durations import Seconds
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike

class Watching(Protocol):
    """A watcher of keys or of objects."""

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        ...
    events: MachineEvents

    def stop(self) -> Coroutine[Any, Any, None]:
        """End the watch."""
        ...

class Watcher(StoppableLoop):
    """The common part of the watchers of keys and of objects."""

    port: BlockingPort
    events: PullEvents

    def __init__(self, watching: Watching, port: BlockingPort) -> None: ...
    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        ...

    def stop(self) -> None:
        """End the watch now."""
        ...

    def __repr__(self) -> str: ...

class InitialEntries:
    """The initial entries of a watch: iterate it."""

    inner: _watch.InitialEntries
    port: BlockingPort

    def __init__(self, inner: _watch.InitialEntries, port: BlockingPort) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> KeyValueEntry: ...

class KeyWatcher(Watcher):
    """A watch of keys: iterate it. Returned by KeyValue.watch; end it with `stop`.

    `initial` yields the current entries and ends. Iterating the watcher yields the entries that
    were not taken before, and then each change. It raises if the bucket was deleted. It survives
    all other errors, and reports them as `events`.
    """

    inner: _watch.KeyWatcher

    def __init__(self, inner: _watch.KeyWatcher, port: BlockingPort) -> None: ...
    @property
    def began(self) -> Timestamp | None:
        """The start of the watch, by the server's clock."""
        ...

    def next(self, timeout: Seconds | None = None) -> KeyValueEntry:
        """Return the next item; raise TimeoutExpired, or InvalidState after `stop`."""
        ...

    def next_initial(self) -> KeyValueEntry | None:
        """Return the next initial value, or None if there are no more.

        TimeoutExpired: no message arrived within the timeout of this JetStream. The watch itself
        continues.
        """
        ...

    def initial(self) -> InitialEntries:
        """Return an iterator over the initial values that were not read yet.

        It raises TimeoutExpired if no message arrives within the timeout of this JetStream; the
        watch itself continues.
        """
        ...

    def __next__(self) -> KeyValueEntry: ...

class KeyLister(StoppableLoop):
    """The keys of a bucket as they arrive: iterate it. Returned by KeyValue.list_keys.

    Keys are not collected first, so a key that changes in the meantime may be returned twice.
    """

    inner: _watch.KeyLister
    port: BlockingPort

    def __init__(self, inner: _watch.KeyLister, port: BlockingPort) -> None: ...
    def stop(self) -> None:
        """End now; after the last key this happens automatically."""
        ...

    def __next__(self) -> str: ...

class KeyValue:
    """A key-value bucket. Returned by methods of JetStream.

    Any replica or mirror may serve a read, so it may return the previous value shortly after a
    write. The leader checks the expectations of writes.
    """

    inner: _kv.KeyValue
    port: BlockingPort

    def __init__(self, inner: _kv.KeyValue, port: BlockingPort) -> None: ...
    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        ...

    def with_codecs(
        self,
        *,
        keys: KeyCodec | Sequence[KeyCodec] | None = None,
        values: ValueCodec | Sequence[ValueCodec] | None = None,
    ) -> KeyValue:
        """Return the same bucket with codecs of its keys and values (ADR-54).

        keys    one codec of keys or several, such as [PathCodec(), Base64Codec()]: the first one
                gets the key, and the last one returns the key that is stored
        values  one codec of values or several, such as AesGcmCodec(secret)

        They replace those that this object has. All calls take and return decoded keys and values;
        CodecError: a stored key or value cannot be decoded.
        """
        ...

    def get(self, key: str, revision: int | None = None) -> KeyValueEntry:
        """Return the latest value of a key, or the one of this revision.

        KeyNotFound: the key does not exist. KeyDeleted, a KeyNotFound: it was deleted.
        """
        ...

    def history(self, key: str) -> list[KeyValueEntry]:
        """Return all values and markers of a key, oldest first; raise KeyNotFound.

        If others write in the meantime, it returns as many entries as existed when the call began.
        Raises TimeoutExpired as `keys` does.
        """
        ...

    def keys(self, filters: str | Sequence[str] = ...) -> list[str]:
        """Return all keys, or those that match, sorted; an empty list if there are none.

        Even if others write in the meantime, the list contains every key that existed when the call
        began and that still exists.

        TimeoutExpired: no message arrived within the timeout of this JetStream.
        """
        ...

    def list_keys(self, filters: str | Sequence[str] = ...) -> KeyLister:
        """List keys one by one, for very many of them: `async with` the result, and iterate."""
        ...

    def watch(
        self,
        keys: str | Sequence[str] = ...,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> KeyWatcher:
        """Watch keys: `async with` the result, and iterate over their values and changes.

        keys             a key, a filter such as `a.*.>`, or several of them (since 2.10)
        include_history  start with all values that exist, not with the latest of each key
        ignore_deletes   leave out the markers of deleted keys
        meta_only        leave out the values
        updates_only     start with the next change
        resume_from_revision
                         start with this revision, such as the one after the last that was read

        Only one of include_history, updates_only and resume_from_revision can be given.
        """
        ...

    def watch_all(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> KeyWatcher:
        """Watch all keys: `watch` without `keys`, with the same options.

        include_history  start with all values that exist, not with the latest of each key
        ignore_deletes   leave out the markers of deleted keys
        meta_only        leave out the values
        updates_only     start with the next change
        resume_from_revision
                         start with this revision, such as the one after the last that was read
        """
        ...

    def put(self, key: str, value: BytesLike) -> int:
        """Set the value of a key, and return the revision."""
        ...

    def create(self, key: str, value: BytesLike, *, ttl: Seconds | str | None = None) -> int:
        """Set the value of a key that does not exist or was deleted; otherwise raise KeyExists.

        After `ttl` seconds the key expires; the bucket needs a limit_marker_ttl.
        """
        ...

    def update(self, key: str, value: BytesLike, last: int) -> int:
        """Update a key if its latest revision is `last` (0: the key must not exist).

        WrongLastRevision: the latest revision is different, and nothing was written.
        """
        ...

    def delete(self, key: str, *, last: int | None = None) -> int:
        """Mark a key as deleted, and return the revision of the marker; its history stays.

        With `last`, raise WrongLastRevision unless that is the latest revision of the key.
        """
        ...

    def purge(self, key: str, *, last: int | None = None, ttl: Seconds | str | None = None) -> int:
        """Delete a key and its history; after `ttl` seconds the marker is removed as well."""
        ...

    def purge_deletes(self, older_than: Seconds = ...) -> int:
        """Remove markers older than `older_than` seconds, and the values before any marker.

        Return the number of removed messages. Values that are written in the meantime stay.
        """
        ...

    def status(self) -> KeyValueStatus:
        """Return the configuration and the state of the bucket; raise BucketNotFound."""
        ...

    def info(self) -> KeyValueConfig:
        """Return the current configuration of the bucket; raise BucketNotFound."""
        ...

    def __repr__(self) -> str: ...
