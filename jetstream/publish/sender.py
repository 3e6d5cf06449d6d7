"""Sender: the base class of PublishWindow and FastBatch, which publish through a machine."""

from __future__ import annotations

from natsproto.wire.subjects import check_publish

from .headers import publish_headers

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from natsproto.connection.receiver import Receiver
    from natsproto.session import Session

    from .headers import PublishOptions

_MAX_SUBJECTS = 1024


class Sender:
    """Publishes whose responses go to a machine, which is subscribed to their reply subjects.

    `_checked` has the encoded form of subjects that were checked before. Subclasses look there
    first, without a call, because most programs publish to a few subjects.
    """

    def __init__(self, session: Session, machine: Receiver, pattern: str) -> None:
        self._session = session
        self._checked: dict[str, bytes] = {}
        self._sid = session.connection.subscribe(pattern, machine)
        # Flush now: a publish flushes the port only if no earlier frame is waiting.
        session.port.flush_soon()

    def _check_subject(self, subject: str) -> bytes:
        """Return the encoded subject, and remember it; raise InvalidSubject."""
        raw = check_publish(subject)
        if len(self._checked) >= _MAX_SUBJECTS:
            self._checked.clear()
        self._checked[subject] = raw
        return raw

    def _header_block(self, options: PublishOptions) -> bytes | None:
        headers = publish_headers(options, self._session.connection)
        return None if headers is None else headers.encode()

    def _leave(self) -> None:
        """End the subscription of the machine, which ends the machine."""
        self._session.connection.unsubscribe(self._sid)
        self._session.port.flush_soon()

    async def __aenter__(self) -> Self:
        return self
