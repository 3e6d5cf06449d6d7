"""Requests of the planning side: the state of streams, and the sequences of times.

Only the leader of a stream responds to them. A replica, or a consumer on one, may lag behind, and
the messages that it does not have yet would look like a gap.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from jetstream.api.client import ApiClient
from jetstream.api.stored import get_by_api
from jetstream.errors import ApiError, MessageNotFound, StreamNotFound
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue, RemoteError
from natsproto.port import run_sync
from natsproto.wire.versions import read_version

from .connect import client, jetstream
from .retry import retry

if TYPE_CHECKING:
    from jetstream.api.stored import StoredMsg
    from jetstream.blocking import Consumer
    from jetstream.schema.stream_config import StreamConfig
    from jetstream.schema.stream_info import StreamInfo

    from .options import Settings

# The server deletes the consumers of killed workers after this time.
INACTIVE = 60.0
_TOO_LONG = 10153  # it exceeds the limit of the stream for its consumers
_BIGINT = 2**63 - 1


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

    def filters_any_subjects(self) -> bool:
        """Return whether consumers can have several filters, and any: since server 2.10."""
        info = client(self._settings).info
        version = read_version(info.version) if info is not None else ()
        return not version or version >= (2, 10)

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

    def consumer(self, start: int, filters: list[str], headers_only: bool = False) -> Consumer:
        """Create an ephemeral consumer that starts at this sequence, without acknowledgments."""
        config: dict[str, Any] = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": INACTIVE,
        }
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


def check_readable(snapshot: StreamSnapshot, settings: Settings) -> None:
    """Raise InvalidValue if the stream cannot be read with these settings."""
    if snapshot.next > _BIGINT:
        text = "stream %s is at sequence %d, which does not fit into a BIGINT"
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
