"""add_service and Service: endpoints that answer requests, for every runtime."""

from __future__ import annotations

from jetstream.schema.timestamp import Timestamp
from natsproto.client import Client
from natsproto.durations import check_patience
from natsproto.errors import ConnectionClosed, InvalidValue
from natsproto.wire.text import shorten
from natsproto.workers import NoLock, check_callback

from . import states
from .endpoint import EndpointGroup
from .hub import Hub
from .machine import ServiceMachine
from .names import (
    DEFAULT_QUEUE,
    PREFIX,
    check_description,
    check_metadata,
    check_name,
    check_prefix,
    check_version,
    choose_queue,
)
from .responses import Identity, ServiceInfo, ServiceStats
from .runner import ServiceRunner, call_async

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from typing_extensions import Self

    from natsproto.durations import Seconds
    from natsproto.wire.record import Record

    from .endpoint import Endpoint

_NO_LOCK = NoLock()


def add_service(
    client: Client,
    *,
    name: str,
    version: str,
    description: str = "",
    metadata: Mapping[str, str] | None = None,
    queue_group: str | None = "",
    stats_data: Callable[[Endpoint], object] | None = None,
    prefix: str = PREFIX,
    drain_timeout: Seconds = 30.0,
) -> Service:
    """Return a service: `async with add_service(client, name=..., version=...) as service`.

    Nothing is sent before the block begins. At its end the service stops: it accepts no more
    requests, and every request that it has received is answered.

    name           the name that all instances share: letters, digits, `-` and `_`
    version        a semantic version, like 1.2.3
    metadata       a map from str to str
    queue_group    the queue group of endpoints that set none; None: every instance gets every
                   request
    stats_data     called with each endpoint when statistics are requested; its result is
                   reported as `data`, in JSON
    prefix         the first token of the subjects of PING, INFO and STATS
    drain_timeout  how many seconds the end of the block may wait for requests in flight
    """
    if not isinstance(client, Client):
        raise InvalidValue(
            "client is not one of an adapter with async calls: %s; for blocking clients use"
            " jetstream.blocking.add_service" % shorten(client)
        )
    session = client.session
    identity = Identity(
        check_name("service name", name),
        session.connection.new_token(),  # SERVICE-4
        check_version(version),
        check_description(description),
        check_metadata(metadata),
    )
    if stats_data is not None:
        check_callback(stats_data, "D-SERVICE-4", "stats_data")
    check_prefix(prefix)
    queue = choose_queue(queue_group, DEFAULT_QUEUE)
    patience = check_patience("drain_timeout", drain_timeout)
    machine = ServiceMachine(identity, prefix, Timestamp(0), stats_data is not None)
    return Service(Hub(session, machine), queue, stats_data, patience)


class Service(EndpointGroup):
    """One instance of a service. Returned by `add_service`."""

    def __init__(
        self,
        hub: Hub,
        queue_group: str | None,
        stats_data: Callable[[Endpoint], object] | None,
        drain_timeout: float,
    ) -> None:
        super().__init__(hub, "", queue_group)
        #: For the blocking facade.
        self.hub: Hub = hub
        self.stats_data: Callable[[Any], object] | None = stats_data
        self.drain_timeout: float = drain_timeout
        #: RequestFailed, StatsFailed, ResponseTruncated, ServiceStopped; iterate, or call `next`.
        self.events: ServiceEvents = ServiceEvents(hub)

    @property
    def name(self) -> str:
        """The name of the service, which all its instances have."""
        return self.hub.machine.identity.name

    @property
    def id(self) -> str:
        """The id of this instance."""
        return self.hub.machine.identity.id

    @property
    def version(self) -> str:
        """The version."""
        return self.hub.machine.identity.version

    @property
    def state(self) -> str:
        """NEW, RUNNING, STOPPING or STOPPED."""
        return self.hub.machine.state

    @property
    def error(self) -> Exception | None:
        """Why the service ended; None while it runs, or if it was ended on purpose."""
        return self.hub.machine.error

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints, in the order in which they were added."""
        return list(self.hub.endpoints)

    def info(self) -> ServiceInfo:
        """Return the service's response to INFO."""
        return ServiceInfo.from_json(self.hub.machine.info_json())

    async def stats(self) -> ServiceStats:
        """Return the service's response to STATS."""
        return ServiceStats.from_json(await self._runner().stats())

    def reset(self) -> None:
        """Set the statistics of all endpoints to zero."""
        self.hub.reset()

    async def start(self, timeout: Seconds = 5.0) -> None:
        """Subscribe to all subjects, and wait until the server has processed that.

        Raises PermissionDenied if the server denies one of the subjects.
        """
        await self.hub.start(self.hub.session.answer_deadline(timeout))

    async def run(self) -> None:
        """Call the handlers of all endpoints, until the service has stopped.

        Returns after the last answer. Raises the error that ended the service, for example
        PermissionDenied if the server denies a subscription. If a handler raises ServiceError, the
        request is answered with it; any other exception is a 500. Both are counted, and reported
        by `events`. Run it in a task of its own to do other things at the same time.
        """
        await self._runner().run()

    async def stop(self, error: Exception | None = None, *, timeout: Seconds = 10.0) -> None:
        """Accept no more requests; return when those in flight have arrived.

        They are still answered: `run`, `stopped` and the end of the block wait for that. A handler
        may call this, too. `run` then raises this `error`, and `stopped` returns it.
        """
        deadline = self.hub.session.answer_deadline(timeout)
        self.hub.begin_stop(error)
        await self.hub.wait_drained(deadline)

    async def stopped(self, timeout: Seconds | None = None) -> Exception | None:
        """Wait until the service has stopped and every request is answered.

        Returns the error that ended the service; None if it was ended on purpose. With a timeout of
        0, it raises TimeoutExpired unless the service has stopped.
        """
        session = self.hub.session
        await self.hub.wait_stopped(None if timeout is None else session.deadline(timeout))
        return self.hub.machine.error

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await self._runner().close(kind is not None, self.drain_timeout)

    def _runner(self) -> ServiceRunner:
        return ServiceRunner(self.hub, _NO_LOCK, call_async, self.stats_data)

    def __repr__(self) -> str:
        return "<Service %s %s %s>" % (shorten(self.name), self.id, self.state)


class ServiceEvents:
    """The events of a service. The iteration ends after ServiceStopped."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def next(self, timeout: Seconds | None = None) -> Record:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        session = self._hub.session
        deadline = None if timeout is None else session.deadline(timeout)
        event = await self._next(deadline)
        if event is None:
            raise ConnectionClosed("there are no more events: the service has stopped")
        return event

    async def _next(self, deadline: float | None) -> Record | None:
        machine = self._hub.machine
        self._hub.look()
        while not machine.events.items:
            if machine.state == states.STOPPED:
                return None
            await self._hub.session.wait(machine.changed, deadline, "event")
            self._hub.look()
        return machine.events.items.pop(0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        event = await self._next(None)
        if event is None:
            raise StopAsyncIteration
        return event
