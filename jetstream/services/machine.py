"""ServiceMachine: one instance of a service: its states, its statistics, and its monitoring.

It is not subscribed itself. Its receivers are: a RequestQueue for each endpoint, and nine Monitors,
which answer PING, INFO and STATS at once, however busy the handlers are (D-SERVICE-2). User code
never runs here: handlers take requests out of the queues, and where `stats_data` is set, STATS
requests wait for the API, which calls it (D-SERVICE-3).

states.py has the states. The end of a service:

    stop, or a subscription is lost   STOPPING; the API unsubscribes, with a fence (`must_drain`)
    abort                             the same, and every request that no handler has taken is
                                      answered with 503, now and when it arrives
    the fence, or a disconnect        subscriptions end; the queues keep their requests
    the last request is finished      STOPPED
"""

from __future__ import annotations

from jetstream.events import ResponseTruncated, ServiceStopped
from jetstream.machine.queue import EventLog
from jetstream.schema.types import MOST_COUNT
from natsproto.connection.effects import Poke, Wake
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Waitable
from natsproto.wire.text import shorten

from . import states
from .fit import fit
from .names import monitor_subjects
from .responses import INFO, PING, STATS, VERBS, endpoint_json, info_json, ping_json
from .responses import stats_json as _stats_json

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from jetstream.schema.timestamp import Timestamp
    from natsproto.connection.effects import MachineEffect
    from natsproto.connection.waitable import Reports
    from natsproto.errors import NatsError
    from natsproto.events import Event
    from natsproto.wire.frames import Msg

    from .queue import RequestQueue
    from .responses import Identity

    class HasMaxPayload(Protocol):
        """An object with a payload limit, such as natsproto's Outbound."""

        @property
        def max_payload(self) -> int:
            """The largest payload that the server accepts."""
            ...


# STATS requests that may wait for the API; further ones are answered without its data.
_MAX_WAITING = 256


class ServiceMachine:
    """One instance of a service."""

    __slots__ = (
        "_effects",
        "_open",
        "_waiting",
        "changed",
        "custom_stats",
        "error",
        "events",
        "identity",
        "limits",
        "monitors",
        "must_drain",
        "prefix",
        "queues",
        "refusing",
        "serving",
        "started",
        "state",
        "work",
    )

    def __init__(
        self, identity: Identity, prefix: str, started: Timestamp, custom_stats: bool = False
    ) -> None:
        self.identity: Identity = identity
        self.prefix: str = prefix
        self.started: Timestamp = started
        #: Whether the API adds data to STATS.
        self.custom_stats: bool = custom_stats
        self.state: str = states.NEW
        #: Why the service ended; None if it was ended on purpose.
        self.error: Exception | None = None
        self.events: EventLog = EventLog()
        self.queues: list[RequestQueue] = []
        self.monitors: list[Monitor] = []
        #: Ready after each change of the state, the endpoints and the events.
        self.changed: Waitable = Change(self.events.reports)
        self.events.reports.source = "service %s" % shorten(identity.name)
        #: Ready when any endpoint has a request, or STATS needs data.
        self.work: Waitable = Waitable()
        #: Whether the API must unsubscribe, because a subscription was lost.
        self.must_drain: bool = False
        #: Whether requests that no handler has are answered with 503.
        self.refusing: bool = False
        #: How many callers answer STATS requests.
        self.serving: int = 0
        self._open = 0  # subscriptions
        self._effects: list[MachineEffect] = []
        self._waiting: list[Msg] = []  # STATS requests
        #: The object that knows the server's max_payload; None: any size is sent.
        self.limits: HasMaxPayload | None = None

    # Inputs of the API

    def make_monitors(self) -> list[tuple[str, Monitor]]:
        """Return the receivers of PING, INFO and STATS, with their subjects (SERVICE-11)."""
        name, id = self.identity.name, self.identity.id
        pairs = [
            (subject, Monitor(self, verb))
            for verb in VERBS
            for subject in monitor_subjects(self.prefix, verb, name, id)
        ]
        self.monitors = [monitor for _, monitor in pairs]
        return pairs

    def subscribed(self) -> None:
        """Report that a receiver was subscribed."""
        self._open += 1

    def start(self, started: Timestamp) -> None:
        """Report that everything was subscribed."""
        self.started = started
        self._enter(states.START)

    def add(self, queue: RequestQueue) -> None:
        """Add an endpoint (SERVICE-10)."""
        self.queues.append(queue)
        self._wake()

    def stop(self, error: Exception | None = None) -> bool:
        """End the service; return whether the caller must unsubscribe now."""
        stopping = self.state == states.RUNNING
        if stopping or self.state == states.NEW:
            self.error = error
            self._enter(states.STOP)
            self._stopped_or_wake()
        drain, self.must_drain = stopping or self.must_drain, False
        return drain

    def abort(self) -> bool:
        """End the service; requests that arrive from now on are answered with 503 (D-SERVICE-13).

        Returns whether the caller must unsubscribe now. It must also call `refuse` of each queue.
        """
        self.refusing = True
        return self.stop()

    def settle(self) -> None:
        """Check whether the service has finished."""
        if self.state == states.STOPPING and not self._open and not self.unfinished:
            self._enter(states.SETTLED)
            self._stopped_or_wake()

    def reset(self, started: Timestamp) -> None:
        """Set the statistics of all endpoints to zero (SERVICE-19)."""
        self.started = started
        for queue in self.queues:
            queue.counters.reset()

    def emit(self, event: Event) -> None:
        """Add an event."""
        self.events.add(event)
        self._effects.append(Wake([self.changed]))

    def take_effects(self) -> list[MachineEffect]:
        """Remove and return the effects for the connection; the receivers pass them on."""
        effects, self._effects = self._effects, []
        return effects

    # Queries of the API

    @property
    def drained(self) -> bool:
        """Whether no more requests arrive: every subscription has ended."""
        return not self._open and self.state in (states.STOPPING, states.STOPPED)

    @property
    def unfinished(self) -> int:
        """The number of requests that wait or are being handled."""
        return sum([queue.pending() for queue in self.queues])

    def receivers(self) -> list[Receiver]:
        """Return the receivers whose subscriptions have not ended."""
        return [each for each in self.monitors + self.queues if each.sid and not each.ended]

    def info_json(self) -> dict[str, Any]:
        """Return the response to INFO."""
        return info_json(self.identity, [queue.record for queue in self.queues])

    def stats_json(self, data: list[tuple[RequestQueue, object]]) -> dict[str, Any]:
        """Return the response to STATS, with the data of some endpoints (SERVICE-18)."""
        endpoints: list[dict[str, Any]] = []
        for queue in self.queues:
            each = endpoint_json(queue.record, queue.counters)
            for owner, value in data:
                if owner is queue:
                    each["data"] = value
            endpoints.append(each)
        return _stats_json(self.identity, self.started, endpoints)

    @property
    def stats_waiting(self) -> bool:
        """Whether a STATS request waits for data."""
        return bool(self._waiting)

    def take_stats_requests(self) -> list[Msg]:
        """Return all STATS requests that wait for data."""
        waiting, self._waiting = self._waiting, []
        return waiting

    # Inputs of the receivers

    def answer(self, verb: str, msg: Msg) -> bytes | None:
        """Return the response to a verb; None if the API will answer (D-SERVICE-3)."""
        if verb == PING:
            return self.encode(PING, ping_json(self.identity))
        if verb == INFO:
            return self.encode(INFO, self.info_json())
        if self.custom_stats and self.serving and len(self._waiting) < _MAX_WAITING:
            self._waiting.append(msg)
            self._effects.append(Wake([self.work]))
            return None
        return self.encode(STATS, self.stats_json([]))

    def encode(self, verb: str, response: dict[str, Any]) -> bytes | None:  # D-SERVICE-27
        """Return the response in a size that the server accepts; None if that is impossible."""
        most = MOST_COUNT if self.limits is None else self.limits.max_payload
        raw, size, left_out = fit(response, most)
        if left_out:
            self.emit(ResponseTruncated(verb, size, most, left_out))
        return raw

    def subscription_ended(self, error: NatsError | None) -> None:
        """Report that a subscription has ended: the whole service ends with it (D-SERVICE-10)."""
        self._open -= 1
        if self.state == states.RUNNING:
            self.error = error
            self._enter(states.LOST)
            self.must_drain = True
            for monitor in self.monitors:
                if not monitor.ended:
                    monitor.leave()
                    self._effects.append(Poke(monitor))
        self._wake()
        self.settle()

    def _enter(self, what: str) -> None:
        """Change the state as the table says; no other code changes it."""
        self.state = states.TRANSITIONS.get((self.state, what), self.state)

    def _stopped_or_wake(self) -> None:
        if self.state == states.STOPPED:  # SERVICE-23
            self.emit(ServiceStopped(self.identity.name, self.identity.id, self.error))
        self._wake()

    def _wake(self) -> None:
        waitables: list[Waitable] = [self.changed, self.work]
        self._effects.append(Wake(waitables + list(self.queues)))


class Change(Waitable):
    """Ready after each change of a service, with its events for the log."""

    __slots__ = ("reports",)

    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self.reports: Reports | None = reports


class Monitor(Receiver):
    """The receiver of one monitoring subject. It is never in a queue group (SERVICE-12)."""

    __slots__ = ("_service", "_verb")

    def __init__(self, service: ServiceMachine, verb: str) -> None:
        super().__init__()
        self._service = service
        self._verb = verb

    def receive(self, msg: Msg, now: float) -> bool:
        if msg.raw_reply:
            response = self._service.answer(self._verb, msg)
            if response is not None:
                self.emit(msg.raw_reply, response, b"")
            self.effects.extend(self._service.take_effects())
        return False

    def pending(self) -> int:
        return 0

    def end(self, error: NatsError | None = None) -> bool:
        if not super().end(error):
            return False
        self._service.subscription_ended(error)
        self.effects.extend(self._service.take_effects())
        return True
