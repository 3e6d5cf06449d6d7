"""DeadLetter: a message that a consumer has failed to process, to be retried or discarded."""

from __future__ import annotations

from jetstream.errors.api import MessageNotFound
from natsproto.errors import HeaderError, InvalidState
from natsproto.session import check_flag
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.message import JsMsg
    from jetstream.publish.request import Publisher
    from jetstream.schema.pub_ack import PubAck
    from jetstream.schema.timestamp import Timestamp
    from natsproto.durations import Seconds
    from natsproto.wire.headers import HeadersLike

# D-DEAD-6: the headers of a message that is published again.
STREAM = "Dead-Letter-Stream"
CONSUMER = "Dead-Letter-Consumer"
SEQUENCE = "Dead-Letter-Sequence"
RETRIES = "Dead-Letter-Retries"
ORIGINAL_ID = "Dead-Letter-Msg-Id"
_MSG_ID = "Nats-Msg-Id"
_TTL = "Nats-TTL"
_NOT_FOUND = (404, 10037)


class Desk:
    """The state that all dead letters of one iteration share.

    `delete` says whether a message is deleted from the stream by default.
    """

    __slots__ = ("api", "delete", "publisher")

    def __init__(self, api: ApiClient, publisher: Publisher, delete: bool) -> None:
        self.api: ApiClient = api
        self.publisher: Publisher = publisher
        self.delete: bool = delete


class DeadLetter:
    """A message that reached max_deliver, or was terminated. Returned by Consumer.dead_letters.

    stream, consumer  where it failed
    seq               its sequence in the stream
    deliveries        how many times it was delivered
    kind              "max_deliver" or "terminated"
    reason            the reason that `term` was given, or ""
    time              when that happened
    message           the stored message; None if the stream no longer has it
    advisory          the event of the server
    """

    def __init__(
        self,
        desk: Desk,
        advisory: MaxDeliverAdvisory | TerminatedAdvisory,
        message: StoredMsg | None,
        entry: JsMsg | None,
    ) -> None:
        self._desk = desk
        self._entry = entry
        self.advisory: MaxDeliverAdvisory | TerminatedAdvisory = advisory
        self.message: StoredMsg | None = message
        #: Whether it was retried or discarded.
        self.settled: bool = False

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.advisory.stream

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        return self.advisory.consumer

    @property
    def seq(self) -> int:
        """The sequence of the message in the stream."""
        return self.advisory.stream_seq

    @property
    def deliveries(self) -> int:
        """How many times the message was delivered."""
        return self.advisory.deliveries

    @property
    def kind(self) -> str:
        """The kind of failure: max_deliver or terminated."""
        return self.advisory.kind

    @property
    def reason(self) -> str:
        """The reason that the message was terminated for, or ""."""
        reason: str = getattr(self.advisory, "reason", "")
        return reason

    @property
    def time(self) -> Timestamp | None:
        """The time of the failure."""
        return self.advisory.timestamp

    @property
    def gone(self) -> bool:
        """Whether the stream no longer has the message: it cannot be retried."""
        return self.message is None

    @property
    def retries(self) -> int:
        """How many times the message was retried before."""
        try:
            headers = self.message.headers if self.message is not None else None
        except HeaderError:
            return 0
        text = headers.get(RETRIES) if headers is not None else ""
        digits = 0 < len(text) <= 9 and all(char in "0123456789" for char in text)
        return int(text) if digits else 0

    async def retry(
        self,
        *,
        subject: str = "",
        headers: HeadersLike | None = None,
        delete: bool | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Publish the message again, for another max_deliver deliveries; return its PubAck.

        subject  the target; by default its own subject. All consumers of that subject receive it.
        headers  further headers
        delete   delete the old message from the stream; by default only from a work queue, because
                 other consumers may need it elsewhere
        timeout  the timeout of the publish, as in JetStream.publish

        The new message has the payload and the headers of the old one, except those that instruct
        the server (`Nats-...`, except Nats-TTL), and `Dead-Letter-...` headers. Repeating a retry
        that failed does not store the message twice, within the stream's duplicate window.
        MessageNotFound: the message is gone.
        """
        delete = self._check(delete)
        message = self.message
        if message is None:
            code, err_code = _NOT_FOUND
            text = "message %d of stream %s is gone" % (self.seq, shorten(self.stream))
            raise MessageNotFound(code, err_code, text)
        made = self._headers(message, subject, headers)
        publisher = self._desk.publisher
        ack = await publisher.publish(
            subject or message.subject, message.data, headers=made, timeout=timeout
        )
        await self._settle(delete)
        return ack

    async def discard(self, *, delete: bool | None = None) -> None:
        """Discard the letter: the message is not processed.

        delete  delete it from the stream; by default only from a work queue, because other
                consumers may need it elsewhere
        """
        await self._settle(self._check(delete))

    async def in_progress(self) -> None:
        """Extend the time until a durable dead letter is delivered again."""
        if self._entry is not None:
            await self._entry.in_progress()

    def _check(self, delete: bool | None) -> bool:
        if self.settled:
            text = "dead letter %d of stream %s is settled: it was retried or discarded"
            raise InvalidState(text % (self.seq, shorten(self.stream)))
        if delete is None:
            return self._desk.delete  # D-DEAD-7
        return check_flag("delete", delete)

    def _headers(self, message: StoredMsg, subject: str, more: HeadersLike | None) -> Headers:
        made = Headers()
        old = message.headers if message.headers is not None else Headers()
        for name, value in old.items():
            # D-DEAD-6: a rollup would purge, an expectation would fail, and a batch would begin.
            if not name.startswith("Nats-") or name == _TTL:
                made.append(name, value)
        if _MSG_ID in old and STREAM not in old:
            made.set(ORIGINAL_ID, old[_MSG_ID])
        made.set(STREAM, self.stream)
        made.set(CONSUMER, self.consumer)
        made.set(SEQUENCE, str(self.seq))
        made.set(RETRIES, str(self.retries + 1))
        given = Headers(more or ())
        for name in given:
            made.delete(name)
        for name, value in given.items():
            made.append(name, value)
        # D-DEAD-8: the same each time; the id of the old message would make this one a duplicate.
        parts = ["dead-letter", self.stream, self.consumer, str(self.seq)]
        made.set(_MSG_ID, ".".join(parts + [subject] if subject else parts))
        return made

    async def _settle(self, delete: bool) -> None:
        if delete and self.message is not None:
            body = {"seq": self.seq, "no_erase": True}
            try:
                await self._desk.api.call("STREAM.MSG.DELETE.%s" % self.stream, body)
            except MessageNotFound:
                pass  # it was already deleted
        if self._entry is not None:
            await self._entry.ack_sync(self._desk.api.timeout)  # D-DEAD-9
        self.settled = True

    def __repr__(self) -> str:
        return "<DeadLetter %d of %s, consumer %s: %s after %d deliveries%s>" % (
            self.seq,
            shorten(self.stream),
            shorten(self.consumer),
            self.kind,
            self.deliveries,
            ", gone" if self.gone else "",
        )
