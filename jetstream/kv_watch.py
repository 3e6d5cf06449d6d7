"""KeyWatcher: what happens to keys, as it happens; KeyLister: which keys there are.

A watch is an ordered consumer of the bucket's stream, whose messages become entries. It is pulled
from (ordered_consumer.py), which tells soonest that it was lost. Only under the prefix of another
account it is a push consumer (ordered_push.py): an import lets one answer to a pull through, and no
more, unless its export says otherwise (KV-39).

First come the initial values: what was there when the watch began. They end

    at once                               if there were none, or none are wanted
    with a message that says so           none is pending behind it
    after as many as there were           though others came meanwhile; a consumer that takes the
                                          place of a lost one counts anew
    after a second without any            if the consumer, when asked, has nothing left: values that
                                          went meanwhile, by their age for one, never come (KV-36)

Then each change comes, over lost connections and restarts as well.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue, RemoteError, TimeoutExpired
from natsproto.session import check_count, check_flag

from .api_errors import StreamNotFound
from .info import ConsumerInfo
from .iteration import at_hand
from .kinds import MOST_SEQUENCE
from .kv_entry import delivered_entry
from .kv_errors import BucketNotFound
from .kv_names import ALL_KEYS, check_filters
from .ordered_consumer import open_ordered, ordered_config
from .stream import INACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from .call import Api
    from .config import ConsumerConfig
    from .consumer_config import DeliverPolicy
    from .consuming import Messages
    from .iteration import MachineEvents
    from .kv_entry import KeyValueEntry
    from .lineage import Lineage
    from .messages import JsMsg
    from .pushing import PushMessages
    from .timestamp import Timestamp

_PATIENCE = 1.0  # for the next of the initial values


class WatchOptions:
    """What is to be watched, checked before anything is sent."""

    __slots__ = ("filters", "ignore_deletes", "meta_only", "policy", "start")

    def __init__(
        self,
        keys: str | Sequence[str] = ALL_KEYS,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> None:
        self.filters = check_filters(keys)
        check_flag("include_history", include_history)
        check_flag("updates_only", updates_only)
        self.ignore_deletes = check_flag("ignore_deletes", ignore_deletes)
        self.meta_only = check_flag("meta_only", meta_only)
        resumed = resume_from_revision is not None
        wanted: list[tuple[str, DeliverPolicy, bool]] = [
            ("include_history", "all", include_history),
            ("updates_only", "new", updates_only),
            ("resume_from_revision", "by_start_sequence", resumed),
        ]
        wanted = [each for each in wanted if each[2]]
        if len(wanted) > 1:
            names = " and ".join([name for name, _, _ in wanted])
            raise InvalidValue("%s: only one of them can be given" % names, "KV-33")
        if resume_from_revision is not None:
            check_count("resume_from_revision", resume_from_revision, 1, MOST_SEQUENCE, "KV-33")
        self.policy: DeliverPolicy = wanted[0][1] if wanted else "last_per_subject"
        self.start = resume_from_revision


async def open_watch(
    api: Api,
    stream: str,
    bucket: str,
    prefix: str,
    history: int,
    options: WatchOptions,
    max_bytes: int | None = None,
) -> KeyWatcher:
    """The watcher, whose consumer is there; `prefix` is what subjects of keys start with.

    With `max_bytes` no more wait to be taken, where it is pulled from.
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
    try:
        messages, lineage = await _consume(api, stream, config, max_bytes)
    except StreamNotFound:
        raise BucketNotFound(bucket) from None
    # Where there is but one entry of each key, a consumer in the place of a lost one goes on.
    anew = options.policy == "last_per_subject" and history != 1
    return KeyWatcher(api, messages, lineage, bucket, prefix, options, anew)


async def _consume(
    api: Api, stream: str, config: ConsumerConfig, max_bytes: int | None
) -> tuple[Messages | PushMessages, Lineage]:
    if api.prefix.startswith("$JS."):
        consumer = await open_ordered(api, stream, "", config, None)
        return consumer.consume(max_bytes=max_bytes), consumer.lineage
    from .pushing import subscribe_ordered

    api.check_since(config)
    messages = await subscribe_ordered(api, stream, config.to_json())  # KV-39
    assert messages.lineage is not None
    return messages, messages.lineage


class KeyWatcher:
    """Entries as they come: iterate it. Made by KeyValue.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(
        self,
        api: Api,
        messages: Messages | PushMessages,
        lineage: Lineage,
        bucket: str,
        prefix: str,
        options: WatchOptions,
        anew: bool,
    ) -> None:
        self._api = api
        self._messages = messages
        self._bucket = bucket
        self._prefix = prefix
        self._ignore_deletes = options.ignore_deletes
        self._lineage = lineage
        info = lineage.info
        assert info is not None
        #: When it began, by the server's clock.
        self.began: Timestamp | None = info.created
        self._left = 0 if options.policy == "new" else info.num_pending
        if anew:
            # ORDERED-26: older entries of a key must not come in the place of its latest.
            lineage.ahead = max(0, self._left - lineage.consumer_seq)
        # The consumer that the initial values come from.
        self._name = lineage.name.encode()
        #: What happened to its consumer: ConsumerReset. Iterate, or ask for next.
        self.events: MachineEvents = messages.events

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        return self._left <= 0

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._messages.closed

    async def next(self, timeout: float | None = None) -> KeyValueEntry:
        """The next entry; TimeoutExpired, or InvalidState when it was stopped."""
        deadline = None if timeout is None else self._api.session.deadline(timeout)
        while True:
            left = None
            if deadline is not None:
                left = max(0.0, deadline - self._api.session.port.now())
            entry = self._read(await self._take(left))
            if entry is not None:
                return entry

    def initial(self) -> InitialEntries:
        """The initial values that were not taken yet: iterate it. It ends with the last one."""
        return InitialEntries(self)

    async def next_initial(self) -> KeyValueEntry | None:
        """The next of the initial values; None if there are no more."""
        while not self.initialized:
            msg = at_hand(self._messages)
            if msg is None:
                try:
                    msg = await self._take(_PATIENCE)
                except TimeoutExpired:
                    await self._look()
                    continue
            entry = self._read(msg)
            if entry is not None:
                return entry
        return None

    async def stop(self) -> None:
        """End now."""
        await self._messages.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> KeyValueEntry:
        while True:
            msg = at_hand(self._messages)
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
        entry, name = delivered_entry(msg, self._bucket, self._prefix)
        if self._left > 0:
            if name != self._name:
                self._name = name
                self._left = entry.delta + 1
            self._left = self._left - 1 if entry.delta else 0
        return None if self._ignore_deletes and entry.deleted else entry

    async def _look(self) -> None:
        """Whether what is missing of the initial values will ever come."""
        lineage = self._lineage
        path = "CONSUMER.INFO.%s.%s" % (lineage.stream, lineage.name)
        try:
            info = ConsumerInfo.from_json(await self._api.call(path))
        except RemoteError:
            return  # it is being made anew, or nobody answers now: the next look may tell
        # All that this consumer has sent has come, and was taken.
        here = info.name == lineage.name and info.delivered.consumer_seq == lineage.consumer_seq
        if here and not info.num_pending and not self._messages.pending:
            self._left = 0


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
