"""Advisories without async and await: the results of JetStream.advisories."""

from __future__ import annotations

from jetstream.advisories import api as _api
from natsproto.port import blocking, blocking_next

from .loops import StoppableLoop

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.port import BlockingPort


class Advisories(StoppableLoop):
    """Events of JetStream servers: iterate them. Returned by JetStream.advisories.

    Servers publish events once and do not store them: an event is lost if no client is subscribed
    at that moment, such as during a reconnect. The iteration ends with `stop` or the end of the
    client. It raises PermissionDenied if the server refuses a subscription.
    """

    def __init__(self, inner: _api.Advisories, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def subjects(self) -> list[str]:
        """The subjects that it is subscribed to."""
        return self.inner.subjects

    @property
    def pending(self) -> int:
        """Number of events that wait to be taken."""
        return self.inner.pending

    @property
    def dropped(self) -> int:
        """Number of events that did not fit in the queue, since the start."""
        return self.inner.dropped

    @property
    def closed(self) -> bool:
        """Whether the iteration has ended and all events were taken."""
        return self.inner.closed

    next = blocking(_api.Advisories.next)
    stop = blocking(_api.Advisories.stop)
    __next__ = blocking_next(_api.Advisories.__anext__)

    def __repr__(self) -> str:
        return repr(self.inner)
