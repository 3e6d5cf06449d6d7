"""Hub: a service's machine, its connection and its endpoints, as the parts of the API share them.

Its methods apply the decisions of the machine; none of them runs user code.
"""

from __future__ import annotations

from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionLost, InvalidState
from natsproto.wire.text import shorten

from . import states
from .endpoint import Endpoint
from .queue import RequestQueue

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.session import Session

    from .endpoint import Handler
    from .machine import ServiceMachine
    from .responses import EndpointRecord


class Hub:
    """The state that Service, EndpointGroup, Endpoint and ServiceRunner share."""

    __slots__ = ("endpoints", "machine", "one_thread", "running", "session")

    def __init__(self, session: Session, machine: ServiceMachine) -> None:
        self.session: Session = session
        self.machine: ServiceMachine = machine
        self.endpoints: list[Endpoint] = []
        #: Whether `run` is active.
        self.running: bool = False
        #: Whether handlers run one after the other, in the caller's thread (D-SERVICE-18); set by
        #: the facade of a client of a single thread.
        self.one_thread: bool = False

    def add(
        self,
        record: EndpointRecord,
        handler: Handler | None,
        concurrency: int,
        limits: tuple[int, int],
    ) -> Endpoint:
        """Add an endpoint, and subscribe to its subject if the service is started."""
        machine, options = self.machine, self.session.connection.options
        if machine.state in (states.STOPPING, states.STOPPED):
            text = "service has ended: %s" % shorten(machine.identity.name)
            raise InvalidState(text, "SERVICE-10")
        if concurrency > 1 and self.one_thread:
            text = "client is for one thread, not for %d requests at once"
            raise InvalidState(text % concurrency, "D-SERVICE-18")
        max_msgs, max_bytes = limits[0] or options.max_msgs, limits[1] or options.max_bytes
        queue = RequestQueue(machine, record, max_msgs, max_bytes)
        if machine.state == states.RUNNING:
            self._subscribe(queue)
        endpoint = Endpoint(self, queue, handler, concurrency)
        self.endpoints.append(endpoint)
        machine.add(queue)
        self.apply()
        return endpoint

    def _subscribe(self, queue: RequestQueue) -> None:
        record = queue.record
        self.session.connection.subscribe(record.subject, queue, queue=record.queue_group)
        self.machine.subscribed()

    async def start(self, deadline: float) -> None:
        """Subscribe to everything, and wait until the server has processed that."""
        machine, session = self.machine, self.session
        if machine.state != states.NEW:
            text = "service was started before: %s" % shorten(machine.identity.name)
            raise InvalidState(text)
        machine.limits = session.connection.outbound  # D-SERVICE-27
        for subject, monitor in machine.make_monitors():
            session.connection.subscribe(subject, monitor)  # SERVICE-12: no queue group
            machine.subscribed()
        for queue in machine.queues:
            self._subscribe(queue)
        machine.start(self._now())
        session.port.flush_soon()
        if session.connection.online:
            try:
                await session.settle(session.connection.start_flush(deadline))
            except ConnectionLost:
                pass  # subscriptions are restored on the next connection
            except BaseException:
                self.abort()
                raise
        if machine.error is not None:
            self.abort()
            raise machine.error

    def check_started(self) -> None:
        """Raise InvalidState before `start`."""
        if self.machine.state == states.NEW:
            text = "service is not started: use it in a `with` block, or call `start`"
            raise InvalidState(text)

    def look(self) -> None:
        """Unsubscribe, if the machine has lost a subscription."""
        if self.machine.must_drain:
            self.begin_stop(None)

    def begin_stop(self, error: Exception | None) -> None:
        """Accept no more requests except those in flight (SERVICE-22)."""
        if self.machine.stop(error):
            self._drain()
        self.apply()

    def abort(self) -> None:
        """End the service without waiting."""
        drain = self.machine.abort()
        for endpoint in self.endpoints:
            endpoint.refuse()
        if drain:
            self._drain()
        self.apply()

    def _drain(self) -> None:
        # SERVICE-24: the subscriptions of this service alone
        self.session.connection.start_drain_of(self.machine.receivers(), None)

    def apply(self) -> None:
        """Apply and send the effects of the machine after calling it."""
        session = self.session
        effects = self.machine.take_effects()
        for receiver in self.machine.monitors[:1]:
            receiver.effects.extend(effects)
            session.connection.apply(receiver)
        session.connection.consumed(session.port.now())
        session.port.flush_soon()

    def refuse_rest(self) -> None:
        """Answer requests of abandoned loops with 503: no loop will answer them (D-SERVICE-12)."""
        for endpoint in self.endpoints:
            if endpoint.handler is None:
                endpoint.refuse()
        self.session.port.flush_soon()

    async def wait_drained(self, deadline: float) -> None:
        """Wait until no more requests arrive; raise TimeoutExpired after the deadline."""
        while not self.machine.drained:
            await self.session.wait(self.machine.changed, deadline, "end of the subscriptions")

    async def wait_stopped(self, deadline: float | None) -> None:
        """Wait until the service has stopped; raise TimeoutExpired after the deadline."""
        machine = self.machine
        what = "end of service %s" % shorten(machine.identity.name)
        self.look()
        while machine.state != states.STOPPED:
            await self.session.wait(machine.changed, deadline, what)
            self.look()

    def reset(self) -> None:
        """Set the statistics to zero."""
        self.machine.reset(self._now())

    def _now(self) -> Timestamp:
        return Timestamp(self.session.port.utc_ns())
