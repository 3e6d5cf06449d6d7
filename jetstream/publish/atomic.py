"""AtomicBatch: many messages that a stream stores all together or not at all (ADR-50)."""

from __future__ import annotations

from jetstream.api.client import read_reply, require_level
from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidState, InvalidValue, NoResponders, RemoteError
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten, show

from .headers import publish_headers
from .request import (
    ELECTION,
    RETRIES,
    RETRY_WAIT,
    in_cluster,
    no_stream,
    raise_in_doubt,
    read_ack,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from jetstream.schema.pub_ack import PubAck
    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike

    from .headers import PublishOptions

BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"
MAX_BATCH = 1000


class AtomicBatch:
    """Messages to one stream, which needs allow_atomic. Returned by JetStream.atomic_batch().

    `add` messages, then `commit`, with the last one or without a message. The server discards a
    batch that is not committed in time, and rejects the commit if any of its messages was lost or
    rejected. An invalid call raises a LocalError and leaves the batch unchanged.
    """

    def __init__(self, session: Session, timeout: float) -> None:
        self._session = session
        self._timeout = timeout
        self._id = session.connection.new_token()
        self._over = False
        self._subject = ""  # of the last message
        #: How many messages were added.
        self.size: int = 0

    def __repr__(self) -> str:
        return "<AtomicBatch of %d messages%s>" % (self.size, ", over" if self._over else "")

    async def add(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> None:
        """Add a message, with the options of JetStream.publish.

        The first one is acknowledged, so a stream without allow_atomic rejects it at once. It is
        sent again while the stream has no leader, for 10 s at most and within the timeout.
        """
        connection = self._session.connection
        while connection.congested:
            await self._session.port.wait(connection.writable)
        headers = self._headers(options)
        if self.size == 0:
            await self._begin(subject, data, headers)
        else:
            connection.publish(subject, data, headers=headers)
            self.size += 1
            self._subject = subject
            self._session.port.flush_soon()

    async def _begin(self, subject: str, data: BytesLike, headers: Headers) -> None:
        answer = await self._request(subject, data, headers)
        if answer:
            read_reply(answer)  # raises if it is an error
            # BATCH-2: the server stored the message alone; it does not support batches.
            raise InvalidResponse("the stream did not begin a batch: %s" % shorten(answer))
        self._over = False

    async def commit(
        self, subject: str = "", data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Send the last message, or none if there is no subject; return when all are stored.

        Committing without a message needs nats-server 2.14. ApiError: none of the messages is
        stored. PublishInDoubt: either all are or none.
        """
        if subject == "":
            ack = await self._commit_added(data, options)
        else:
            headers = self._headers(options)
            headers.set(BATCH_COMMIT, "1")  # BATCH-1
            ack = read_ack(await self._request(subject, data, headers))
        if ack.batch != self._id or ack.count != self.size:  # BATCH-5
            raise InvalidResponse(
                "batch %s of %d messages is acknowledged as %s" % (self._id, self.size, show(ack))
            )
        return ack

    async def _commit_added(self, data: BytesLike, options: PublishOptions) -> PubAck:
        """Send a message that ends the batch and is not stored (BATCH-7)."""
        if data or options:
            raise InvalidValue("commit with data or options needs a subject", "BATCH-7")
        if not self.size:
            raise InvalidState("batch has no message to commit", "BATCH-7")
        require_level(self._session.connection.info, 4, "a commit without a message")
        headers = self._headers({}, stored=False)
        headers.set(BATCH_COMMIT, "eob")
        added = self.size
        try:
            return read_ack(await self._request(self._subject, b"", headers))
        finally:
            self.size = added

    def _headers(self, options: PublishOptions, stored: bool = True) -> Headers:
        if self._over:
            raise InvalidState("batch already finished; start a new one", "D-BATCH-4")
        if self.size == MAX_BATCH and stored:
            raise InvalidState("a batch has at most %d messages" % MAX_BATCH, "BATCH-3")
        headers = publish_headers(options, self._session.connection) or Headers()
        headers.set(BATCH_ID, self._id)
        headers.set(BATCH_SEQUENCE, str(self.size + 1))  # BATCH-1
        return headers

    async def _request(self, subject: str, data: BytesLike, headers: Headers) -> bytes:
        session = self._session
        connection = session.connection
        first = self.size == 0
        patience = ELECTION if in_cluster(connection) else 0.0
        started = session.port.now()
        end = started + self._timeout
        tries = 0
        while True:
            request = connection.start_request(subject, data, deadline=end, headers=headers)
            if not tries:
                self.size += 1
                self._subject = subject
                self._over = True  # if it fails, it is unknown whether the server received it
            tries += 1
            try:
                reply = await session.settle(request)
            except NoResponders:
                now = session.port.now()
                spent = tries > RETRIES and now - started >= patience
                if not first or spent or now + RETRY_WAIT >= end:
                    raise no_stream(connection, subject) from None
            except RemoteError as error:
                raise_in_doubt(request, error)
            else:
                assert reply is not None
                return reply.data
            await session.sleep(RETRY_WAIT)  # D-BATCH-8
