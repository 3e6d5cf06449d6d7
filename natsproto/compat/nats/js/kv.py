"""KeyValue: a key-value store."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import datetime
import warnings
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jetstream.kv.entry import delivered_entry
from natsproto.compat.nats.errors import BadSubscriptionError
from natsproto.errors import InvalidState, NatsError

from . import api
from .constants import KV_DEL as KV_DEL
from .constants import KV_MARKER_REASON as KV_MARKER_REASON
from .constants import KV_OP as KV_OP
from .constants import KV_PURGE as KV_PURGE
from .constants import MSG_ROLLUP_SUBJECT as MSG_ROLLUP_SUBJECT
from .constants import VALID_KEY_RE as VALID_KEY_RE
from .errors import (
    APIError,
    KeyDeletedError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoKeysError,
    NotFoundError,
)
from .errors import InvalidKeyError as InvalidKeyError
from .failures import after_end, translate
from .publishing import publish_anywhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import JetStreamContext
    from .subscriptions import PushSubscription

_WRONG_LAST = (10071, 10164)  # the second without the sequence in its description
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MARKERS = {"MaxAge": KV_PURGE, "Purge": KV_PURGE, "Remove": KV_DEL}


def _is_key_valid(key: str) -> bool:
    return not key.startswith(".") and not key.endswith(".") and bool(VALID_KEY_RE.match(key))


def _operation(headers: Mapping[str, str] | None) -> str | None:
    """Return DEL or PURGE for a marker, None for a value."""
    if not headers:
        return None
    operation = headers.get(KV_OP) or _MARKERS.get(headers.get(KV_MARKER_REASON, ""))
    return operation if operation in (KV_DEL, KV_PURGE) else None


async def _initial(watcher: KeyValue.KeyWatcher) -> list[KeyValue.Entry]:
    """Return the initial values of a watch, and end it."""
    entries: list[KeyValue.Entry] = []
    try:
        while (entry := await watcher.updates(watcher._kv._js._timeout)) is not None:
            entries.append(entry)
    finally:
        await watcher.stop()
    return entries


class KeyValue:
    """A key-value store: a bucket of keys, each with its latest values."""

    @dataclass
    class Entry:
        """A value of a key, or the marker of its deletion, which has an `operation`."""

        bucket: str
        key: str
        value: bytes | None
        revision: int | None
        delta: int | None
        created: Any
        operation: str | None

    @dataclass(frozen=True)
    class BucketStatus:
        """The state of a bucket."""

        stream_info: api.StreamInfo
        bucket: str

        @property
        def values(self) -> int:
            """The number of values, markers included."""
            return self.stream_info.state.messages

        @property
        def history(self) -> int:
            """How many values of each key are kept."""
            return self.stream_info.config.max_msgs_per_subject

        @property
        def ttl(self) -> float | None:
            """How long values are kept, in seconds."""
            return self.stream_info.config.max_age

        @property
        def marker_ttl(self) -> float | None:
            """How long the markers of expired keys are kept, in seconds."""
            return self.stream_info.config.subject_delete_marker_ttl

    def __init__(
        self, name: str, stream: str, pre: str, js: JetStreamContext, direct: bool
    ) -> None:
        self._name = name
        self._stream = stream
        self._pre = pre
        self._js = js
        self._direct = direct

    # Reading

    async def get(
        self, key: str, revision: int | None = None, validate_keys: bool = True
    ) -> KeyValue.Entry:
        """Return the latest value of a key, or that of a revision; raise KeyNotFoundError."""
        self._check(key, validate_keys)
        try:
            return await self._get(key, revision)
        except KeyDeletedError as error:
            raise KeyNotFoundError(error.entry, error.op) from error

    async def _get(self, key: str, revision: int | None = None) -> KeyValue.Entry:
        subject = self._pre + key
        try:
            if revision:
                msg = await self._js.get_msg(self._stream, revision, direct=self._direct)
            else:
                msg = await self._js.get_last_msg(self._stream, subject, direct=self._direct)
        except NotFoundError as error:
            raise KeyNotFoundError from error
        if msg.subject != subject:
            raise KeyNotFoundError(message=f"expected '{subject}', but got '{msg.subject}'")
        operation = _operation(msg.headers)
        value = msg.data
        if operation is not None and not value:
            value = None
        entry = KeyValue.Entry(self._name, key, value, msg.seq, None, msg.time, operation)
        if operation is not None:
            raise KeyDeletedError(entry, operation)
        return entry

    # Writing

    async def put(self, key: str, value: bytes, validate_keys: bool = True) -> int:
        """Store a value, and return its revision."""
        self._check(key, validate_keys)
        return await self._publish(key, value, {})

    async def create(
        self, key: str, value: bytes, validate_keys: bool = True, msg_ttl: float | None = None
    ) -> int:
        """Store a value if the key does not exist; raise KeyWrongLastSequenceError if it does."""
        self._check(key, validate_keys)
        try:
            return await self._update(key, value, 0, validate_keys, msg_ttl)
        except KeyWrongLastSequenceError:
            try:
                await self._get(key)
            except KeyDeletedError as deleted:
                last = deleted.entry.revision
                return await self._update(key, value, last, validate_keys, msg_ttl)
            except KeyNotFoundError:
                pass
            raise

    async def update(
        self, key: str, value: bytes, last: int | None = None, validate_keys: bool = True
    ) -> int:
        """Store a value if `last` is the latest revision of the key; None or 0: if it is new."""
        return await self._update(key, value, last, validate_keys)

    async def _update(
        self,
        key: str,
        value: bytes,
        last: int | None = None,
        validate_keys: bool = True,
        msg_ttl: float | None = None,
    ) -> int:
        self._check(key, validate_keys)
        headers = {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last or 0)}
        try:
            return await self._publish(key, value, headers, msg_ttl)
        except APIError as error:
            if error.err_code in _WRONG_LAST:
                raise KeyWrongLastSequenceError(error.description) from error
            raise

    async def delete(
        self,
        key: str,
        last: int | None = None,
        validate_keys: bool = True,
        msg_ttl: float | None = None,
    ) -> bool:
        """Delete a key: its history is kept, followed by a marker. `msg_ttl` is ignored."""
        self._check(key, validate_keys)
        if msg_ttl is not None:
            warnings.warn(
                "msg_ttl on delete() is deprecated and ignored: use purge(), or limit_marker_ttl",
                DeprecationWarning,
                stacklevel=2,
            )
        headers = {KV_OP: KV_DEL}
        if last and last > 0:
            headers[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(last)
        await self._publish(key, b"", headers)
        return True

    async def purge(self, key: str, msg_ttl: float | None = None) -> bool:
        """Delete a key and its history."""
        headers = {KV_OP: KV_PURGE, api.Header.ROLLUP.value: MSG_ROLLUP_SUBJECT}
        await self._publish(key, b"", headers, msg_ttl)
        return True

    async def purge_deletes(self, olderthan: int = 30 * 60) -> bool:
        """Remove the markers that are older than this many seconds, and what they hide."""
        now = datetime.datetime.now(datetime.timezone.utc)
        for entry in await _initial(await self.watchall(meta_only=True)):
            if entry.operation is None:
                continue
            age = (now - entry.created).total_seconds()
            keep = 1 if olderthan > 0 and age < olderthan else 0
            await self._js.purge_stream(self._stream, subject=self._pre + entry.key, keep=keep)
        return True

    async def status(self) -> KeyValue.BucketStatus:
        """Return the state of the bucket."""
        info = await self._js.stream_info(self._stream)
        return KeyValue.BucketStatus(stream_info=info, bucket=self._name)

    # Watching

    async def watchall(self, **kwargs: Any) -> KeyValue.KeyWatcher:
        """Watch all keys; the options are those of `watch`."""
        return await self.watch(">", **kwargs)

    async def keys(self, filters: list[str] | None = None, **kwargs: Any) -> list[str]:
        """Return the keys that contain one of the filters, or all; raise NoKeysError."""
        entries = await _initial(await self.watchall(ignore_deletes=True, meta_only=True))
        found = [entry.key for entry in entries]
        if filters:
            found = [key for key in found if any(each in key for each in filters)]
        if not found:
            raise NoKeysError
        return found

    async def history(self, key: str) -> list[KeyValue.Entry]:
        """Return the values of a key that are kept; raise NoKeysError if there are none."""
        found = await _initial(await self.watch(key, include_history=True))
        if not found:
            raise NoKeysError
        return found

    async def watch(
        self,
        keys: str | list[str],
        headers_only: bool = False,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        inactive_threshold: float | None = None,
    ) -> KeyValue.KeyWatcher:
        """Watch keys, which may have wildcards: their values now, then None, then each change."""
        watched = [keys] if isinstance(keys, str) else keys
        filters = [self._pre + each for each in watched]
        policy = api.DeliverPolicy.ALL if include_history else api.DeliverPolicy.LAST_PER_SUBJECT
        sub = await self._js._subscribe_ordered(
            filters[0],
            self._stream,
            api.ConsumerConfig(
                deliver_policy=policy,
                headers_only=(headers_only or meta_only) or None,
                filter_subjects=filters if len(filters) > 1 else None,
                inactive_threshold=inactive_threshold or 5 * 60,
            ),
            None,
            (0, 0),
        )
        return KeyValue.KeyWatcher(self, sub, ignore_deletes)

    class KeyWatcher:
        """The values of a watch: iterate, or call `updates`. None ends the initial values."""

        def __init__(self, kv: KeyValue, sub: PushSubscription, ignore_deletes: bool) -> None:
            self._kv = kv
            self._sub = sub
            self._ignore_deletes = ignore_deletes
            cursor = sub._source.cursor
            assert cursor is not None
            assert cursor.info is not None
            self._ready: deque[KeyValue.Entry | None] = deque()
            self._initial = True
            if not cursor.info.num_pending + cursor.info.delivered.consumer_seq:
                self._end_initial()

        async def stop(self) -> None:
            """End the watch."""
            if not self._sub._closed and not self._kv._js._nc.is_closed:
                await self._sub.unsubscribe()

        async def updates(self, timeout: float | None = 5.0) -> KeyValue.Entry | None:
            """Return the next value, None after the initial ones; raise TimeoutError."""
            now = self._sub._session.port.now
            end = None if timeout is None else now() + timeout
            while not self._ready:  # entries that are ignored do not extend the timeout
                await self._next(None if end is None else max(0.0, end - now()))
            return self._ready.popleft()

        def __aiter__(self) -> KeyValue.KeyWatcher:
            return self

        async def __anext__(self) -> KeyValue.Entry | None:
            try:
                return await self.updates(None)
            except BadSubscriptionError:  # `stop` was called
                raise StopAsyncIteration from None

        async def _next(self, timeout: float | None) -> None:
            """Read one message. Its metadata is not made into objects first: 10 us less."""
            try:
                msg = await self._sub._source.next(timeout)
            except InvalidState:
                raise after_end(self._sub._conn) from None
            except NatsError as error:
                raise translate(error) from error
            kv = self._kv
            found = delivered_entry(msg, kv._name, kv._pre)
            operation = None if found.operation == "PUT" else found.operation
            if operation is None or not self._ignore_deletes:
                created = _EPOCH + datetime.timedelta(microseconds=found.created.ns // 1000)
                self._ready.append(
                    KeyValue.Entry(
                        kv._name,
                        found.key,
                        found.value,
                        found.revision,
                        found.delta,
                        created,
                        operation,
                    )
                )
            if self._initial and not found.delta:
                self._end_initial()

        def _end_initial(self) -> None:
            self._initial = False
            self._ready.append(None)

    # How it works

    def _check(self, key: str, validate: bool) -> None:
        if validate and not _is_key_valid(key):
            raise InvalidKeyError(key)

    async def _publish(
        self, key: str, value: bytes, headers: dict[str, str], msg_ttl: float | None = None
    ) -> int:
        subject = self._pre + key
        if not {"*", ">"} & set(key):
            ack = await self._js.publish(subject, value, headers=headers or None, msg_ttl=msg_ttl)
        else:
            if msg_ttl is not None:
                headers = {**headers, api.Header.MSG_TTL.value: str(int(msg_ttl))}
            ack = await publish_anywhere(self._js, subject, value, headers)
        return ack.seq
