"""FastBatch: the API of the FastBatchMachine."""

from __future__ import annotations

from natsproto import encode
from natsproto.durations import check_patience
from natsproto.errors import ConnectionClosed, InvalidState
from natsproto.session import check_count, check_flag

from .fast_machine import APPEND, COMMIT, END, ENDING, NEW, OVER, START, STARTING, FastBatchMachine
from .request import ELECTION, in_cluster
from .sender import Sender

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from jetstream.events import Loss
    from jetstream.schema.pub_ack import PubAck
    from natsproto.durations import Seconds
    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike

    from .headers import PublishOptions

MOST_FLOW = 65535
MOST_ACKS = 3


class FastBatch(Sender):
    """Messages to one stream, which needs allow_batched. Returned by JetStream.fast_batch().

    `add` messages, which are stored in order as they arrive. Then `commit` with the last message,
    or `close`; both return when all are stored. `async with` closes the batch.

    Without `allow_gaps` the first message that is lost or rejected ends the batch: FastBatchFailed
    has the number of stored messages. With it the batch continues, and `take_losses` returns the
    lost messages. An invalid call raises a LocalError and leaves the batch unchanged.
    """

    def __init__(
        self, session: Session, allow_gaps: bool, flow: int, max_acks: int, ack_timeout: Seconds
    ) -> None:
        check_flag("allow_gaps", allow_gaps)
        check_count("flow", flow, 1, MOST_FLOW, "FAST-3")
        check_count("max_acks", max_acks, 1, MOST_ACKS, "FAST-3")
        patience = check_patience("ack_timeout", ack_timeout)
        connection = session.connection
        election = ELECTION if in_cluster(connection) else 0.0
        patience = max(patience, election)
        inbox = connection.new_inbox()
        self._machine = FastBatchMachine(
            inbox.encode(), flow, max_acks, allow_gaps, patience, election
        )
        super().__init__(session, self._machine, inbox + ".>")
        session.begin(self._machine)

    @property
    def size(self) -> int:
        """Number of messages that were added."""
        return self._machine.sent

    @property
    def stored(self) -> int:
        """Number of leading messages acknowledged as stored, minus those in `take_losses`."""
        return self._machine.stored

    @property
    def lost(self) -> int:
        """Number of messages that were lost or rejected, or may be."""
        return self._machine.lost

    def take_losses(self) -> list[Loss]:
        """Return the losses since the last call; if there are very many, the last ones."""
        losses = self._machine.losses
        self._machine.losses = []
        return losses

    async def add(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> int:
        """Add a message, with the options of JetStream.publish; return its number, from 1.

        Wait while too many messages are unacknowledged, and for the answer to the first one, which
        is sent again while the stream has no leader.
        """
        try:
            raw = self._checked[subject]
        except (KeyError, TypeError):  # TypeError: it is not hashable
            raw = self._check_subject(subject)
        if not isinstance(data, bytes):
            data = encode.check_data(data)
        block = self._header_block(options) if options else None
        machine = self._machine
        if machine.sent >= machine.limit or self._session.connection.congested:
            await self._room()
        self._send(raw, data, block)
        self._session.port.flush_soon()
        if machine.state == STARTING:
            await self._begun()
        return machine.sent

    async def add_encoded(self, messages: Iterable[tuple[bytes, bytes, bytes | None]]) -> None:
        """Add many messages: subject, payload, and header block, which the caller has checked."""
        machine = self._machine
        connection = self._session.connection
        for raw, data, block in messages:
            if machine.sent >= machine.limit or connection.congested:
                await self._room()
            self._send(raw, data, block)
            if machine.state == STARTING:
                await self._begun()
        self._session.port.flush_soon()

    def _send(self, raw: bytes, data: bytes, block: bytes | None) -> None:
        machine = self._machine
        operation = START if machine.state == NEW else APPEND
        self._session.connection.send(raw, data, machine.reply(operation), block)
        number = machine.sent + 1
        if number < machine.limit:
            machine.sent = number
        else:
            self._note_sent(operation, raw, data, block)

    async def _begun(self) -> None:
        """Wait for the answer to the first message."""
        machine = self._machine
        while machine.state == STARTING:
            await self._session.port.wait(machine)
        if machine.failure is not None:
            raise machine.failure

    async def commit(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Add the last message; return when all are stored."""
        raw = self._check_subject(subject)
        data = encode.check_data(data)
        block = self._header_block(options) if options else None
        await self._last_room()
        self._session.connection.send(raw, data, self._machine.reply(COMMIT), block)
        return await self._finish(COMMIT, raw, data, block)

    async def close(self) -> PubAck | None:
        """End the batch; return when all messages are stored, with None if there were none."""
        if self._machine.state == NEW:
            self._leave()
            return None
        await self._last_room()
        return await self._finish(END, b"")

    async def _room(self) -> None:
        """Wait until another message can be sent; raise if that is impossible."""
        machine = self._machine
        connection = self._session.connection
        while True:
            if machine.failure is not None:
                raise machine.failure
            if machine.state in (ENDING, OVER):
                raise InvalidState("batch already finished; start a new one", "D-FAST-13")
            if machine.ended:
                raise ConnectionClosed(connection.closed or "the batch is closed")
            full = machine.sent >= machine.limit
            if not full and not connection.congested:
                return
            self._session.port.flush_soon()
            await self._session.port.wait(machine if full else connection.writable)

    async def _last_room(self) -> None:
        """Wait for room for the last message; abandon the batch if that fails or is canceled."""
        try:
            await self._room()
        except BaseException:
            self._leave()  # D-FAST-15: otherwise it would be kept alive forever
            raise

    def _note_sent(self, operation: int, subject: bytes, data: bytes, block: bytes | None) -> None:
        session = self._session
        self._machine.note_sent(operation, subject, session.port.now(), data, block)
        session.poke(self._machine)

    async def _finish(
        self, operation: int, subject: bytes, data: bytes = b"", block: bytes | None = None
    ) -> PubAck:
        machine = self._machine
        self._note_sent(operation, subject, data, block)
        try:
            while machine.state != OVER:
                await self._session.port.wait(machine)
        except BaseException:
            self._leave()  # D-FAST-15
            raise
        if machine.failure is not None:
            raise machine.failure
        assert machine.ack is not None
        return machine.ack

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        machine = self._machine
        committed = machine.state == OVER and machine.failure is None
        if kind is None and not committed:
            await self.close()
        else:
            self._leave()
