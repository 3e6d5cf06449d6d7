# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from typing_extensions import Self

from jetstream.blocking.pull import PullEvents
from jetstream.kv import store as _kv
from jetstream.kv import watch as _watch
from jetstream.kv.config import KeyValueConfig, KeyValueStatus
from jetstream.kv.entry import KeyValueEntry
from jetstream.machine.iteration import MachineEvents
from jetstream.schema.timestamp import Timestamp
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

class Watcher:
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

    def __iter__(self) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

class InitialEntries:
    """The initial entries of a watch: iterate it."""

    inner: _watch.InitialEntries
    port: BlockingPort

    def __init__(self, inner: _watch.InitialEntries, port: BlockingPort) -> None: ...
    def __next__(self) -> KeyValueEntry: ...
    def __iter__(self) -> Self: ...

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

    def next(self, timeout: float | None = None) -> KeyValueEntry:
        """The next entry; TimeoutExpired, or InvalidState when it was stopped."""
        ...

    def next_initial(self) -> KeyValueEntry | None:
        """The next of the initial values; None if there are no more. TimeoutExpired as above."""
        ...

    def initial(self) -> InitialEntries:
        """The initial values that were not taken yet: iterate it. It ends with the last one.

        TimeoutExpired if no message arrives for as long as a call of this JetStream may take; the
        watch goes on all the same.
        """
        ...

    def __next__(self) -> KeyValueEntry: ...

class KeyLister:
    """The keys of a bucket as they arrive: iterate it. Returned by KeyValue.list_keys.

    Nothing is collected, so a key that changes meanwhile may occur twice.
    """

    inner: _watch.KeyLister
    port: BlockingPort

    def __init__(self, inner: _watch.KeyLister, port: BlockingPort) -> None: ...
    def stop(self) -> None:
        """End now; at the end of the keys it does so by itself."""
        ...

    def __next__(self) -> str: ...
    def __iter__(self) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

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

    def get(self, key: str, revision: int | None = None) -> KeyValueEntry:
        """The latest value of the key, or the one of this revision.

        KeyNotFound; KeyDeleted, which is one, if there is but a marker.
        """
        ...

    def history(self, key: str) -> list[KeyValueEntry]:
        """All values and markers that there are of the key, oldest first; KeyNotFound.

        While others write, as many as there were when the call began. TimeoutExpired as for `keys`.
        """
        ...

    def keys(self, filters: str | Sequence[str] = ...) -> list[str]:
        """All keys, or those that match, sorted; an empty list if there are none.

        While others write, every key that was there when the call began and still is. If no
        message arrives for as long as a call of this JetStream may take: TimeoutExpired.
        """
        ...

    def list_keys(self, filters: str | Sequence[str] = ...) -> KeyLister:
        """The same one by one, whatever their number: `async with` it, and iterate."""
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
        """What is there of these keys, and what happens to them: `async with` it, and iterate.

        keys             a key, a filter such as `a.*.>`, or several of them (since 2.10)
        include_history  begin with all values that there are, not with the latest of each key
        updates_only     begin with what happens from now on
        resume_from_revision
                         begin with this revision, such as the one behind the last that was seen
        ignore_deletes   no markers of deleted keys
        meta_only        no values
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
        """`watch` of all keys."""
        ...

    def put(self, key: str, value: BytesLike) -> int:
        """Give the key this value; returns the revision."""
        ...

    def create(self, key: str, value: BytesLike, *, ttl: float | str | None = None) -> int:
        """The same if the key is not there, or was deleted; else KeyExists.

        With a `ttl` in seconds it goes by itself; the bucket needs a limit_marker_ttl.
        """
        ...

    def update(self, key: str, value: BytesLike, last: int) -> int:
        """The same if its latest revision is `last` (0: it never was there): WrongLastRevision."""
        ...

    def delete(self, key: str, *, last: int | None = None) -> int:
        """Mark the key as deleted; its history stays. Returns the revision of the marker.

        With `last` only if that is its latest revision: WrongLastRevision.
        """
        ...

    def purge(self, key: str, *, last: int | None = None, ttl: float | str | None = None) -> int:
        """The same, and its history goes. With a `ttl` in seconds the marker goes as well."""
        ...

    def purge_deletes(self, older_than: float = ...) -> int:
        """Remove markers that are older, in seconds, and whatever is before any marker.

        Returns how many messages were removed. What happens to a key meanwhile stays.
        """
        ...

    def status(self) -> KeyValueStatus:
        """Its configuration and what it holds; BucketNotFound."""
        ...

    def info(self) -> KeyValueConfig:
        """Its configuration, as the server has it now; BucketNotFound."""
        ...

    def __repr__(self) -> str: ...
