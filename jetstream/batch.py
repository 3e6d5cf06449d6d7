"""AtomicBatch: many messages that a stream stores all together or not at all (ADR-50)."""

from __future__ import annotations

from natsproto.errors import InvalidState, NoResponders
from natsproto.headers import Headers

from .call import read_reply
from .errors import NoStreamResponse
from .info import PubAck
from .publish import publish_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.encode import BytesLike
    from natsproto.session import Session

    from .publish import PublishOptions

BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"
MAX_BATCH = 1000


class AtomicBatch:
    """Messages to one stream, which needs allow_atomic. Made by JetStream.atomic_batch().

    `add` as many as there are, then `commit` with the last one. The server forgets a batch that
    is not committed in time, and refuses the commit if any message of it was lost or refused.
    """

    def __init__(self, session: Session, timeout: float) -> None:
        self._session = session
        self._timeout = timeout
        self._id = session.connection.new_token()
        self._over = False
        #: How many messages were added.
        self.size = 0

    async def add(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> None:
        """Another message, with the options of JetStream.publish.

        The first one is answered, so a stream that takes no batches refuses it at once.
        """
        headers = self._headers(options)
        connection = self._session.connection
        if self.size == 1:
            reply = await self._request(subject, data, headers)
            if reply:
                read_reply(reply)  # raises: only a refusal says anything
        elif connection.publish(subject, data, headers=headers):
            self._session.port.flush_soon()

    async def commit(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> PubAck:
        """The last message; returns when all are stored. ApiError: none of them is."""
        headers = self._headers(options)
        headers.set(BATCH_COMMIT, "1")
        self._over = True
        return PubAck.from_json(read_reply(await self._request(subject, data, headers)))

    def _headers(self, options: PublishOptions) -> Headers:
        if self._over:
            raise InvalidState("the batch is over: a new one is needed")
        if self.size == MAX_BATCH:
            raise InvalidState("a batch has at most %d messages" % MAX_BATCH, "BATCH-3")
        headers = publish_headers(options) or Headers()
        self.size += 1
        headers.set(BATCH_ID, self._id)
        headers.set(BATCH_SEQUENCE, str(self.size))
        return headers

    async def _request(self, subject: str, data: BytesLike, headers: Headers) -> bytes:
        session = self._session
        deadline = session.deadline(self._timeout)
        try:
            reply = await session.settle(
                session.connection.start_request(subject, data, deadline=deadline, headers=headers)
            )
        except NoResponders:
            self._over = True
            raise NoStreamResponse(subject) from None
        assert reply is not None
        return reply.data
