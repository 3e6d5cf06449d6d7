"""Requests of the planning side: the state of streams, and the sequences of times.

Only the leader of a stream responds to them. A replica, or a consumer on one, may lag behind, and
the messages that it does not have yet would look like a gap.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, Any

from jetstream.api.client import ApiClient, read_reply
from jetstream.api.stored import get_by_api
from jetstream.errors import ApiError, MessageNotFound, StreamNotFound
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue, RemoteError
from natsproto.port import run_sync
from natsproto.wire.text import shorten
from natsproto.wire.versions import has_version

from .connect import client, jetstream
from .retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jetstream.api.stored import StoredMsg
    from jetstream.blocking import Consumer
    from jetstream.schema.stream_config import StreamConfig

    from .offsets import Place
    from .options import Settings

# The server deletes the consumers of killed workers after this time.
INACTIVE = 60.0
_TOO_LONG = 10153  # it exceeds the limit of the stream for its consumers
_DELIVERED = 2**62  # from there on, nats-server 2.10 to 2.15 delivers nothing
_FIRST_WITH_METADATA = (2, 10)
_QUERY_ID = "sql.streaming.queryId"  # Spark's property of the tasks of a streaming query
_LATE = 3600.0  # how long the rows of a pull may wait


class StreamSnapshot:
    """The state of a stream at one moment: its sequences are `first` to `next` - 1."""

    def __init__(self, info: StreamInfo) -> None:
        state = info.state
        self.name: str = info.config.name
        self.created: str = str(info.created)
        self.first: int = max(state.first_seq, 1)
        self.next: int = state.last_seq + 1
        self.average: int = max(1, state.bytes // max(1, state.messages))
        #: Whether most sequences are gaps, as in a stream with one message per subject.
        self.sparse: bool = 2 * state.messages < self.next - self.first
        self.config: StreamConfig = info.config
        self.bytes: int = state.bytes
        self.messages: int = state.messages

    def has(self, place: Place) -> bool:
        """Return whether this is the stream of the place, and reaches up to it."""
        return self.created == place.created and self.next >= place.next

    @property
    def has_gaps(self) -> bool:
        """Whether there are fewer messages than sequences."""
        return self.messages < self.next - self.first

    @property
    def volatile(self) -> bool:
        """Whether limits remove the oldest messages, or consumers do."""
        config = self.config
        limits = (config.max_msgs, config.max_bytes, config.max_msgs_per_subject, config.max_age)
        ttl = config.allow_msg_ttl or config.retention != "limits"
        return ttl or any((limit or 0) > 0 for limit in limits)

    @property
    def limits_consumers(self) -> bool:
        """Whether the stream limits the number of its consumers."""
        return (self.config.max_consumers or 0) > 0


class SnapshotRequest:
    """A request for the state of a stream, whose response may be read much later."""

    def __init__(self, port: Any, api: ApiClient, stream: str) -> None:
        self._port = port
        self._session = api.session
        with port.lock:
            self._request = self._session.connection.start_request(
                "%s.STREAM.INFO.%s" % (api.prefix, stream),
                b"",
                deadline=self._session.deadline(_LATE),
            )
            port.flush_soon()

    def wait(self) -> StreamSnapshot:
        """Return the state of the stream at the time of the request."""
        with self._port.lock:
            reply = run_sync(self._session.settle(self._request))
        assert reply is not None
        return StreamSnapshot(StreamInfo.from_json(read_reply(reply.data)))


class StreamQueries:
    """Requests about one stream."""

    def __init__(self, settings: Settings, stream: str) -> None:
        self._settings = settings
        self.stream = stream

    def snapshot(self) -> StreamSnapshot:
        """Return the current state of the stream."""
        try:
            return StreamSnapshot(
                retry(lambda: jetstream(self._settings).stream(self.stream).cached_info)
            )
        except StreamNotFound as error:
            # A query may have several streams: name this one.
            text = "%s: %s" % (error.description, self.stream)
            raise StreamNotFound(error.code, error.err_code, text) from None

    def request_snapshot(self) -> SnapshotRequest:
        """Request the current state of the stream."""
        return SnapshotRequest(client(self._settings).port, self.api(), self.stream)

    def next_message(self, seq: int, subject: str = ">") -> StoredMsg | None:
        """Return the first message at or after this sequence; None if there is none."""
        return retry(lambda: self._next_message(seq, subject))

    def _next_message(self, seq: int, subject: str) -> StoredMsg | None:
        with client(self._settings).port.lock:
            try:
                body = {"seq": seq, "next_by_subj": subject}
                return run_sync(get_by_api(self.api(), self.stream, body))
            except MessageNotFound:
                return None

    def api(self) -> ApiClient:
        """Return the API client for these options."""
        settings = self._settings
        return ApiClient(
            client(settings).inner.session,
            settings.text("domain"),
            settings.text("apiPrefix") or "$JS.API",
            settings.seconds("requestTimeout"),
        )

    def is_left(self, start: int, end: int, filters: list[str]) -> bool:
        """Return whether there are messages to read in this range."""
        for subject in filters or [">"]:
            msg = self.next_message(start, subject)
            if msg is not None and msg.seq < end:
                return True
        return False

    def sequence_at(self, time: Timestamp, snapshot: StreamSnapshot) -> int:
        """Return the first sequence of that time or later; snapshot.next if there is none."""
        low, high = snapshot.first, snapshot.next
        # Messages before `low` are earlier; those from `high` on are not.
        while low < high:
            middle = (low + high) // 2
            msg = self.next_message(middle)
            if msg is None or msg.seq >= high:
                high = middle
            elif msg.time < time:
                low = msg.seq + 1
            else:
                high = middle
        return low

    def count(self, start: int, filters: list[str]) -> int:
        """Return the number of messages of these subjects at or after this sequence."""
        consumer = retry(lambda: self.consumer(start, filters))
        with contextlib.suppress(RemoteError):  # the server deletes it later
            consumer.delete()
        return consumer.cached_info.num_pending

    def end_of_bytes(
        self, start: int, end: int, filters: list[str], budget: int, average: int
    ) -> tuple[int, int]:
        """Return the sequence before which there are at most `budget` bytes, and their number."""
        used = 0
        for seq, size in self._sizes(start, end, filters, budget // average + 1):
            if used + size > budget:
                return seq, used
            used += size
        return end, used

    def end_of_first(self, start: int, end: int, filters: list[str]) -> int:
        """Return the sequence after the first message."""
        for seq, _ in self._sizes(start, end, filters, 1):
            return seq + 1
        return end

    def sequences(self, start: int, end: int, filters: list[str]) -> list[int]:
        """Return the sequences of the messages in a range that fits into a pull, by one call."""
        return [seq for seq, _ in self._sizes(start, end, filters, end - start)]

    def _sizes(
        self, start: int, end: int, filters: list[str], expected: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the sequence and the size of each message, without its payload."""
        from .sizes import read_sizes

        yield from read_sizes(self, self._settings, (start, end), filters, expected)

    def consumer(
        self,
        start: int,
        filters: list[str],
        headers_only: bool = False,
        inactive: float = INACTIVE,
    ) -> Consumer:
        """Create an ephemeral consumer that starts at this sequence, without acknowledgments.

        The server deletes it after `inactive` seconds without a pull.
        """
        config: dict[str, Any] = {
            "name": "%s-%s" % (self._settings.text("clientName"), secrets.token_hex(8)),
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": inactive,
        }
        if has_version(client(self._settings).info, _FIRST_WITH_METADATA):
            config["metadata"] = _origin()
        if headers_only:
            config["headers_only"] = True
        if len(filters) == 1:
            config["filter_subject"] = filters[0]
        elif filters:
            config["filter_subjects"] = filters
        js = jetstream(self._settings)
        try:
            return js.create_consumer(self.stream, **config)
        except ApiError as error:
            if error.err_code != _TOO_LONG:
                raise
        del config["inactive_threshold"]  # the default of the stream
        return js.create_consumer(self.stream, **config)


def _origin() -> dict[str, str]:
    """Return metadata that shows operators which part of which query a consumer is for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return {"spark.process": "driver"}
    found = {"spark.stage": str(context.stageId()), "spark.partition": str(context.partitionId())}
    query = context.getLocalProperty(_QUERY_ID)
    if query:
        found["spark.query"] = query
    return found


def stream_names(settings: Settings) -> list[str]:
    """Return the streams to read: those in option stream, or those that match the pattern now."""
    if not settings.given("streamPattern"):
        return settings.list("stream")
    pattern = settings.get("streamPattern")
    names = retry(lambda: list(jetstream(settings).stream_names()))
    found = sorted(name for name in names if pattern.fullmatch(name))
    if not found:
        text = "option streamPattern: no stream matches %s"
        raise InvalidValue(text % shorten(pattern.pattern))
    return found


def check_readable(snapshot: StreamSnapshot, settings: Settings) -> None:
    """Raise InvalidValue if the stream cannot be read with these settings."""
    if snapshot.next > _DELIVERED:
        text = "stream %s is at sequence %d, and servers deliver only those below 2^62"
        raise InvalidValue(text % (snapshot.name, snapshot.next - 1))
    if settings.text("fetchMode") == "direct":
        if not snapshot.config.allow_direct:
            raise InvalidValue(
                "fetchMode=direct: stream %s does not allow direct get" % snapshot.name
            )
    elif snapshot.config.retention == "workqueue":
        raise InvalidValue(
            "stream %s is a work queue, where consumers remove messages: fetchMode=direct reads"
            " without removing, mode=consume removes" % snapshot.name
        )
    if settings.text("onCommit") == "purge" and snapshot.config.deny_purge:
        raise InvalidValue("onCommit=purge: stream %s has deny_purge" % snapshot.name)
