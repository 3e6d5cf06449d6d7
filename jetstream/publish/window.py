"""PublishWindow: the API of the AckWindow machine."""

from __future__ import annotations

from jetstream.errors import PublishesFailed
from natsproto import encode
from natsproto.connection.outbound import HIGH_WATER
from natsproto.durations import check_patience
from natsproto.errors import ConnectionClosed, InvalidState, InvalidValue, NatsError
from natsproto.session import check_count

from .request import ELECTION, in_cluster
from .sender import Sender
from .window_machine import AckWindow, Publication

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.durations import Seconds
    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike

    from .headers import PublishOptions


class PublishWindow(Sender):
    """Publishes that are acknowledged together. Returned by JetStream.publisher()."""

    def __init__(
        self, session: Session, max_pending: int, ack_timeout: Seconds, retries: int
    ) -> None:
        if check_count("max_pending", max_pending) == 0:
            raise InvalidValue("max_pending 0 leaves no room for any publish")
        connection = session.connection
        inbox = connection.new_inbox()
        self._machine = AckWindow(
            inbox.encode(),
            max_pending,
            check_patience("ack_timeout", ack_timeout),
            check_count("retries", retries),
            ELECTION if in_cluster(connection) else 0.0,
        )
        super().__init__(session, self._machine, inbox + ".*")

    @property
    def pending(self) -> int:
        """Number of publishes without an acknowledgment."""
        return self._machine.pending()

    def __repr__(self) -> str:
        machine = self._machine
        counts = (machine.pending(), machine.max_pending)
        state = "closed" if machine.ended else "%d of %d pending" % counts
        return "<PublishWindow, %s>" % state

    async def publish(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> Publication:
        """Publish with the options of JetStream.publish; wait only while the window is full.

        `await publication.result()` returns the PubAck. Failures that were not raised that way are
        raised by `flush`, or by this call once there are as many as the window has room for.
        """
        session = self._session
        port = session.port
        connection = session.connection
        outbound = connection.outbound
        machine = self._machine
        try:
            raw = self._checked[subject]
        except (KeyError, TypeError):  # TypeError: it is not hashable
            raw = self._check_subject(subject)
        if not isinstance(data, bytes):
            data = encode.check_data(data)
        block = self._header_block(options) if options else None
        # As the properties `full`, `congested` and `online`, without their calls: 0.15 us less.
        full = len(machine.open) >= machine.max_pending
        if full or machine.failed or machine.ended or outbound.size > HIGH_WATER:
            await self._room()
        publication = Publication(port, raw, data, block)
        online = not outbound.holding
        if machine.submit(publication, port.now(), online):
            connection.apply(machine)
        if online:
            try:
                first = connection.send(raw, data, publication.reply, block)
            except NatsError as error:  # it is too large
                publication.error_raised = True
                machine.reject(publication, error)
                connection.apply(machine)
                raise
            if first:
                port.flush_soon()
        return publication

    async def _room(self) -> None:
        """Wait until another publish is possible; raise if that cannot happen."""
        machine = self._machine
        connection = self._session.connection
        while machine.full or connection.congested:
            await self._session.port.wait(machine if machine.full else connection.writable)
        if len(machine.failed) >= machine.max_pending:
            self._raise_failures()
        if connection.closed:
            raise ConnectionClosed(connection.closed)
        if machine.ended:
            raise machine.error or InvalidState("the publisher is closed")

    def _raise_failures(self) -> None:
        failed = self._machine.take_failed()
        if failed:
            raise PublishesFailed(failed)

    async def flush(self) -> None:
        """Wait until every publish is acknowledged or has failed; raise PublishesFailed."""
        for publication in list(self._machine.open.values()):  # D-PUB-18
            while not publication.done:
                await self._session.port.wait(publication)
        self._raise_failures()

    async def close(self) -> None:
        """Flush, and end the window."""
        try:
            await self.flush()
        finally:
            self._leave()

    def abandon(self) -> None:
        """End the window without waiting; publishes without an acknowledgment fail."""
        self._leave()

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            await self.close()
        else:
            self._leave()
