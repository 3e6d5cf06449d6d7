"""Stream: one stream, its messages and its consumers (ADR-37)."""

from __future__ import annotations

from jetstream.api.client import MOST_PAGES, read_number
from jetstream.api.counters import read_counter
from jetstream.api.replicas import cancel_move, evacuate_peer, remove_peer, step_down
from jetstream.api.stored import get_by_api, get_direct
from jetstream.api.stored_batch import (
    MOST_SUBJECTS,
    StoredMsgs,
    batch_request,
    check_sequence,
    get_direct_batch,
    last_request,
)
from jetstream.errors import InvalidResponse
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.errors import InvalidValue
from natsproto.hinting import lazy_hints
from natsproto.session import check_flag
from natsproto.wire.subjects import check_publish, check_subscribe
from natsproto.wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from jetstream.api.counters import Counter
    from jetstream.api.listing import Listing
    from jetstream.api.stored import StoredMsg
    from jetstream.config import ConsumerConfigDict
    from jetstream.ordered.api import OrderedConsumer
    from jetstream.schema.consumer_config import DeliverPolicy, ReplayPolicy
    from jetstream.schema.consumer_info import ConsumerInfo, ConsumerPause
    from jetstream.schema.timestamp import TimestampLike
    from natsproto.durations import Seconds

    from .consumer import BoundConsumer, Consumer, KnownConfig
    from .manager import ConsumerConfigLike, StreamManager

INACTIVE = 300.0  # seconds after which the server may delete an unused ordered consumer


def stream_through(stream: Stream, api: ApiClient) -> Stream:
    """Return a handle to the same stream that calls this client."""
    return Stream(stream._streams, api, stream.cached_info)  # pyright: ignore[reportPrivateUsage]


class Stream:
    """A stream. Returned by methods of JetStream; `cached_info` is the last info that was read."""

    def __init__(self, streams: StreamManager, api: ApiClient, info: StreamInfo) -> None:
        self._streams = streams
        self._api = api
        self.name: str = info.config.name
        self.cached_info: StreamInfo = info

    async def info(self, *, subjects_filter: str = "", deleted_details: bool = False) -> StreamInfo:
        """Return the configuration and the state of the stream; raise StreamNotFound.

        subjects_filter  include the number of messages of each subject that matches
        deleted_details  include the sequences of deleted messages
        """
        body: dict[str, Any] = {}
        if subjects_filter != "":
            body["subjects_filter"] = check_subscribe(subjects_filter).decode()
        if check_flag("deleted_details", deleted_details):
            body["deleted_details"] = True
        info = StreamInfo.from_json(await self._info_page(body))
        if subjects_filter:
            await self._read_subjects(body, info)
        self.cached_info = info
        return info

    async def _read_subjects(self, body: dict[str, Any], info: StreamInfo) -> None:
        """Read the further pages of subjects; the rest of the answer is the same (CALL-5)."""
        subjects = info.state.subjects
        offset = len(subjects)
        for _ in range(MOST_PAGES):
            if offset >= info.total:
                return
            page = await self._info_page(dict(body, offset=offset))
            more = StreamInfo.from_json(page).state.subjects
            known = len(subjects)
            subjects.update(more)
            if len(subjects) == known:
                return  # nothing new: subjects were removed in the meantime
            offset += len(more)
        text = "subjects of stream %s do not end after %d pages"
        raise InvalidResponse(text % (shorten(self.name), MOST_PAGES))

    async def _info_page(self, body: dict[str, Any]) -> dict[str, Any]:
        return await self._api.call("STREAM.INFO.%s" % self.name, body)

    async def purge(
        self, *, subject: str | None = None, seq: int | None = None, keep: int | None = None
    ) -> int:
        """Delete messages: all, those of a subject, those below a sequence, or all but the newest.

        Return the number of deleted messages.
        """
        # D-CALL-10: a computed value that is empty or 0 must not mean everything.
        body: dict[str, Any] = {}
        if subject is not None:
            body["filter"] = check_subscribe(subject).decode()
        if seq is not None:
            body["seq"] = check_sequence("seq", seq)
        if keep is not None:
            body["keep"] = check_sequence("keep", keep)
        if seq is not None and keep is not None:
            raise InvalidValue("seq %d and keep %d of purge cannot be combined" % (seq, keep))
        reply = await self._api.call("STREAM.PURGE.%s" % self.name, body)
        return read_number(reply, "purged")

    async def get_msg(
        self,
        seq: int = 0,
        *,
        last_by_subject: str = "",
        next_by_subject: str = "",
        no_headers: bool = False,
    ) -> StoredMsg:
        """Return a stored message by its sequence, or the last or next (from `seq`) of a subject.

        MessageNotFound: there is none. Where the stream allows direct get, any replica may answer.
        With `no_headers`, the leader answers, and omits the headers of the message.
        """
        body = _which(seq, last_by_subject, next_by_subject)
        if check_flag("no_headers", no_headers):
            # GET-13: without headers, a direct get has no room for the sequence and the subject.
            body["no_hdr"] = True
            msg = await get_by_api(self._api, self.name, body)
            msg.raw_headers = None  # an older server sends them
            return msg
        if self.cached_info.config.allow_direct:
            return await get_direct(self._api, self.name, body)
        return await get_by_api(self._api, self.name, body)

    async def get_msgs(
        self,
        *,
        batch: int,
        seq: int = 0,
        start_time: TimestampLike | None = None,
        subject: str = "",
        max_bytes: int = 0,
    ) -> list[StoredMsg]:
        """Return up to `batch` messages, starting at a sequence or a time, by direct get (ADR-31).

        With `max_bytes` the result may be shorter even if there are more messages.
        """
        body = batch_request(batch, seq, start_time, subject, max_bytes)
        return await get_direct_batch(self._api, self.name, body, 0 if max_bytes else batch)

    def iter_get_msgs(
        self,
        *,
        batch: int = MOST_SEQUENCE,
        seq: int = 0,
        start_time: TimestampLike | None = None,
        subject: str = "",
        max_bytes: int = 0,
    ) -> StoredMsgs:
        """Iterate over stored messages by direct get: `async for` returns each on arrival.

        The parameters are those of `get_msgs`; without `batch` the iteration ends with the last
        message that is stored when it gets there.
        """
        body = batch_request(batch, seq, start_time, subject, max_bytes)
        return StoredMsgs(self._api, self.name, body, 0 if max_bytes else batch)

    async def get_last_msgs(
        self,
        subjects: Sequence[str],
        *,
        up_to_seq: int = 0,
        up_to_time: TimestampLike | None = None,
        batch: int = 0,
    ) -> list[StoredMsg]:
        """Return the last message of each subject, wildcards allowed, by direct get (ADR-31).

        The messages are the last ones as of now, or as of a sequence or a time; at most `batch`.
        The server rejects more than 1024 subjects.
        """
        body = last_request(subjects, up_to_seq, up_to_time, batch)
        return await get_direct_batch(self._api, self.name, body, batch or MOST_SUBJECTS)

    def iter_get_last_msgs(
        self,
        subjects: Sequence[str],
        *,
        up_to_seq: int = 0,
        up_to_time: TimestampLike | None = None,
        batch: int = 0,
    ) -> StoredMsgs:
        """Iterate over the last message of each subject: `async for` returns each on arrival.

        The parameters are those of `get_last_msgs`.
        """
        body = last_request(subjects, up_to_seq, up_to_time, batch)
        return StoredMsgs(self._api, self.name, body, batch or MOST_SUBJECTS)

    async def get_counter(self, subject: str) -> Counter:
        """Return the counter of a subject (ADR-49); raise MessageNotFound if it has none."""
        check_publish(subject)  # a wildcard would return the counter that was changed last
        return read_counter(await self.get_msg(last_by_subject=subject))

    async def get_counters(self, subjects: Sequence[str]) -> list[Counter]:
        """Return the counters of these subjects, wildcards allowed; needs allow_direct."""
        return [read_counter(msg) for msg in await self.get_last_msgs(subjects)]

    async def delete_msg(self, seq: int, *, secure: bool = False) -> None:
        """Delete one message; with `secure` its bytes on disk are overwritten."""
        body: dict[str, Any] = {"seq": check_sequence("seq", seq)}
        if not check_flag("secure", secure):
            body["no_erase"] = True
        await self._api.call("STREAM.MSG.DELETE.%s" % self.name, body)

    async def delete(self) -> None:
        """Delete the stream with its messages and consumers."""
        await self._streams.delete_stream(self.name)

    # Replicas

    async def step_down(self, *, preferred: str = "") -> None:
        """Request that the leader of the stream step down: the replicas elect another one.

        preferred  the server that becomes the leader (needs 2.11)
        """
        await step_down(self._api, "STREAM.%s" % self.name, preferred)

    async def remove_peer(self, peer: str) -> None:
        """Remove the replica on a server, given by name or id, such as one that is lost for good.

        Another server of the cluster gets a replica, if there is one.
        """
        await remove_peer(self._api, self.name, peer)

    async def evacuate_peer(self, peer: str) -> None:
        """Move the replica on a server, given by name or id, to another one (needs 2.15).

        The replica stays until the new one is up to date; `info().cluster.desired` is the progress.
        """
        await evacuate_peer(self._api, self.name, peer)

    async def cancel_move(self) -> StreamInfo:
        """Cancel a move of the replicas that is in progress (needs 2.15), and return the info."""
        self.cached_info = StreamInfo.from_json(await cancel_move(self._api, self.name))
        return self.cached_info

    # Consumers, as on JetStream

    async def create_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer; see JetStream.create_consumer."""
        return await self._streams.create_consumer(self.name, config, pedantic=pedantic, **fields)

    async def update_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Update a consumer; see JetStream.update_consumer."""
        return await self._streams.update_consumer(self.name, config, pedantic=pedantic, **fields)

    async def create_or_update_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create or update a consumer; see JetStream.create_or_update_consumer."""
        return await self._streams.create_or_update_consumer(
            self.name, config, pedantic=pedantic, **fields
        )

    async def consumer(self, name: str) -> Consumer:
        """Return a consumer; see JetStream.consumer."""
        return await self._streams.consumer(self.name, name)

    def bind_consumer(self, name: str, **known: Unpack[KnownConfig]) -> BoundConsumer:
        """Return a handle to a consumer without looking it up; see JetStream.bind_consumer."""
        from .consumer import bind_consumer

        return bind_consumer(self._api, self.name, name, known)

    async def ordered_consumer(
        self,
        *,
        filter_subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy = "all",
        opt_start_seq: int | None = None,
        opt_start_time: TimestampLike | None = None,
        replay_policy: ReplayPolicy = "instant",
        headers_only: bool = False,
        inactive_threshold: Seconds = INACTIVE,
        name_prefix: str = "",
        metadata: dict[str, str] | None = None,
        max_reset_attempts: int | None = None,
    ) -> OrderedConsumer:
        """Return an ordered consumer: each message once, in order, without gaps, for one client.

        Its consumers live in the memory of one server and are recreated when they are lost; nothing
        is acknowledged, and nothing is left on the server. Reading raises after
        `max_reset_attempts` consecutive failures (None: never). Its consumers are named
        `<name_prefix>_1` and so on.
        """
        from jetstream.ordered.api import open_ordered
        from jetstream.ordered.config import ordered_config

        config = ordered_config(
            filter_subjects,
            deliver_policy,
            opt_start_seq,
            opt_start_time,
            replay_policy,
            headers_only,
            inactive_threshold,
            metadata,
        )
        return await open_ordered(self._api, self.name, name_prefix, config, max_reset_attempts)

    async def delete_consumer(self, name: str) -> None:
        """Delete a consumer; see JetStream.delete_consumer."""
        await self._streams.delete_consumer(self.name, name)

    async def consumers(self) -> Listing[ConsumerInfo]:
        """List the consumers; see JetStream.consumers."""
        return await self._streams.consumers(self.name)

    async def consumer_names(self) -> Listing[str]:
        """List the names of the consumers; see JetStream.consumer_names."""
        return await self._streams.consumer_names(self.name)

    async def pause_consumer(self, name: str, until: TimestampLike) -> ConsumerPause:
        """Pause a consumer; see JetStream.pause_consumer."""
        return await self._streams.pause_consumer(self.name, name, until)

    async def resume_consumer(self, name: str) -> ConsumerPause:
        """Resume a consumer; see JetStream.resume_consumer."""
        return await self._streams.resume_consumer(self.name, name)

    async def reset_consumer(self, name: str, seq: int = 0) -> ConsumerInfo:
        """Reset a consumer; see JetStream.reset_consumer."""
        return await self._streams.reset_consumer(self.name, name, seq)

    async def unpin_consumer(self, name: str, group: str) -> None:
        """Unpin a client; see JetStream.unpin_consumer."""
        await self._streams.unpin_consumer(self.name, name, group)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "STREAM")

    def __repr__(self) -> str:
        return "<Stream %s>" % cut_middle(self.name)


def _which(seq: int, last_by_subject: str, next_by_subject: str) -> dict[str, Any]:
    if last_by_subject != "":
        if seq or next_by_subject:
            text = "last_by_subject %s cannot be combined with seq %s or next_by_subject %s"
            given = (shorten(last_by_subject), shorten(seq), shorten(next_by_subject))
            raise InvalidValue(text % given)
        return {"last_by_subj": check_subscribe(last_by_subject, "last_by_subject").decode()}
    if next_by_subject != "":
        subject = check_subscribe(next_by_subject, "next_by_subject").decode()
        return {"seq": check_sequence("seq", seq or 1), "next_by_subj": subject}
    if seq == 0:
        raise InvalidValue("get_msg needs a seq from 1, last_by_subject or next_by_subject")
    return {"seq": check_sequence("seq", seq)}
