"""PublishWindow: the API of the Publisher machine."""

from __future__ import annotations

from natsproto import encode, subjects
from natsproto.errors import InvalidState
from natsproto.session import check_count, check_seconds

from .errors import PublishesFailed
from .publish import MSG_ID, publish_headers
from .publisher import Publication, Publisher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.encode import BytesLike
    from natsproto.session import Session

    from .publish import PublishOptions


class PublishWindow:
    """Publishes whose acknowledgements are awaited together. Made by JetStream.publisher()."""

    def __init__(
        self, session: Session, max_pending: int, ack_timeout: float, retries: int
    ) -> None:
        self._session = session
        connection = session.connection
        inbox = connection.new_inbox()
        self._machine = Publisher(
            inbox.encode(),
            max(1, check_count("max_pending", max_pending)),
            check_seconds("ack_timeout", ack_timeout),
            check_count("retries", retries),
        )
        connection.subscribe(inbox + ".*", self._machine)

    @property
    def pending(self) -> int:
        """Acknowledgements that are still to come."""
        return self._machine.pending()

    async def publish(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> Publication:
        """Send it, with the options of JetStream.publish; waits only for room in the window.

        `await publication.result()` gives its PubAck; otherwise `flush` tells of failures.
        """
        headers = publish_headers(options) if options else None
        publication = Publication(
            self._session,
            subjects.check_publish(subject),
            encode.check_data(data),
            None if headers is None else headers.encode(),
            headers is not None and MSG_ID in headers,
        )
        machine = self._machine
        port = self._session.port
        while machine.full:
            await port.wait(machine)
        if machine.ended:
            raise machine.error or InvalidState("the publisher is closed")
        machine.submit(publication, port.now())
        self._session.connection.perform(machine)
        port.flush_soon()
        return publication

    async def flush(self) -> None:
        """Wait until every publish is acknowledged or has failed; PublishesFailed."""
        machine = self._machine
        while machine.pending():
            await self._session.port.wait(machine)
        failed = machine.failed
        machine.failed = []
        if failed:
            raise PublishesFailed(failed)

    async def close(self) -> None:
        """Flush, and end the window."""
        try:
            await self.flush()
        finally:
            self._session.connection.unsubscribe(self._machine.sid)
            self._session.port.flush_soon()

    async def __aenter__(self) -> PublishWindow:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            await self.close()
        else:
            self._session.connection.unsubscribe(self._machine.sid)
            self._session.port.flush_soon()
