# Written by `python -m tests.facades`. Do not edit.

from jetstream.advisories import api as _api
from jetstream.advisories.event import Advisory
from jetstream.blocking.loops import StoppableLoop
from natsproto.durations import Seconds
from natsproto.port import BlockingPort

class Advisories(StoppableLoop):
    """Events of JetStream servers: iterate them. Returned by JetStream.advisories.

    Servers publish events once and do not store them: an event is lost if no client is subscribed
    at that moment, such as during a reconnect. The iteration ends with `stop` or the end of the
    client. It raises PermissionDenied if the server refuses a subscription.
    """

    inner: _api.Advisories
    port: BlockingPort

    def __init__(self, inner: _api.Advisories, port: BlockingPort) -> None: ...
    @property
    def subjects(self) -> list[str]:
        """The subjects that it is subscribed to."""
        ...

    @property
    def pending(self) -> int:
        """Number of events that wait to be taken."""
        ...

    @property
    def dropped(self) -> int:
        """Number of events that did not fit in the queue, since the start."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the iteration has ended and all events were taken."""
        ...

    def next(self, timeout: Seconds | None = None) -> Advisory:
        """Return the next event; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def stop(self) -> None:
        """End the subscription now; events that were not taken are discarded."""
        ...

    def __next__(self) -> Advisory: ...
    def __repr__(self) -> str: ...
