"""Endpoint and EndpointGroup: the endpoints of a service, and loops over their requests."""

from __future__ import annotations

from jetstream.schema.types import MOST_COUNT
from natsproto.errors import InvalidState
from natsproto.session import check_count
from natsproto.wire.subjects import check_subscribe
from natsproto.wire.text import shorten
from natsproto.workers import check_callback

from .names import check_group, check_metadata, check_name, choose_queue, join
from .request import ServiceRequest, send_refusal
from .responses import EndpointRecord, EndpointStats, endpoint_json

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias, TypeVar

    from natsproto.durations import Seconds

    from .hub import Hub
    from .queue import RequestQueue

    #: Called with each request. It may be a coroutine function, and may return the answer.
    Handler: TypeAlias = Callable[[ServiceRequest], object]
    Function = TypeVar("Function", bound=Callable[..., object])


class Endpoint:
    """An endpoint of a service. Without a handler, loop over its requests."""

    def __init__(
        self, hub: Hub, queue: RequestQueue, handler: Handler | None, concurrency: int
    ) -> None:
        self._hub = hub
        self._queue = queue
        #: The handler, or None.
        self.handler: Handler | None = handler
        #: How many requests may be handled at the same time.
        self.concurrency: int = concurrency

    @property
    def name(self) -> str:
        """The name, which other endpoints of the service may have as well."""
        return self._queue.record.name

    @property
    def subject(self) -> str:
        """The subject of the requests, with the prefixes of its groups."""
        return self._queue.record.subject

    @property
    def queue_group(self) -> str:
        """The queue group; "" if every instance receives every request."""
        return self._queue.record.queue_group

    @property
    def metadata(self) -> dict[str, str]:
        """A copy of the metadata."""
        return dict(self._queue.record.metadata)

    @property
    def pending(self) -> int:
        """The number of requests that wait to be handled."""
        return self._queue.queued

    @property
    def in_progress(self) -> int:
        """The number of requests that are being handled."""
        return self._queue.in_progress

    @property
    def dropped(self) -> int:
        """The number of requests that did not fit and were answered with 503."""
        return self._queue.dropped

    @property
    def stats(self) -> EndpointStats:
        """The statistics, without data of `stats_data`."""
        return EndpointStats.from_json(endpoint_json(self._queue.record, self._queue.counters))

    @property
    def queue(self) -> RequestQueue:
        """The machine's part of the endpoint."""
        return self._queue

    async def take(self, hold: bool = False) -> ServiceRequest | None:
        """Wait for the next request; None after the last one."""
        queue, hub = self._queue, self._hub
        while not queue.queued:
            hub.look()
            if queue.ended:
                return None
            await hub.session.port.wait(queue)
        return self.take_queued(hold)

    def take_queued(self, hold: bool = False) -> ServiceRequest | None:
        """Return the next request if there is one."""
        if not self._queue.queued:
            return None
        session = self._hub.session
        handling = self._queue.take(session.port.ticks(), hold)
        request = ServiceRequest(session, handling, hold)
        if hold and not handling.msg.raw_reply:
            request.finish()  # no answer will show that it is done
        return request

    def refuse(self) -> None:
        """Answer every request that no handler has taken with 503."""
        session = self._hub.session
        for msg in self._queue.refuse(session.port.ticks()):
            send_refusal(session, msg)
        session.connection.apply(self._queue)

    @property
    def ended(self) -> bool:
        """Whether no more requests arrive."""
        return self._queue.ended

    async def next(self, timeout: Seconds | None = None) -> ServiceRequest:
        """Return the next request; raise TimeoutExpired, or InvalidState after the last one.

        A timeout of 0 polls: it returns a request only if there is one.
        """
        self._check_loop()
        session = self._hub.session
        deadline = None if timeout is None else session.deadline(timeout)
        while not self._queue.queued:
            self._hub.look()
            if self._queue.ended:
                raise InvalidState("endpoint has ended: %s" % shorten(self.name))
            await session.wait(self._queue, deadline, "request to %s" % shorten(self.name))
        request = self.take_queued(hold=True)
        assert request is not None
        return request

    def __aiter__(self) -> EndpointRequests:
        self._check_loop()
        return EndpointRequests(self)

    def _check_loop(self) -> None:
        if self.handler is not None:
            text = "endpoint has a handler, which receives its requests: %s"
            raise InvalidState(text % shorten(self.name), "D-SERVICE-17")
        self._hub.check_started()

    def __repr__(self) -> str:
        return "<Endpoint %s of %s>" % (shorten(self.name), shorten(self.subject))


class EndpointRequests:
    """A loop over the requests of an endpoint. It ends when the service stops.

    A request is done when it is answered, or when the loop asks for the next one (D-SERVICE-17).
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._last: ServiceRequest | None = None

    def __aiter__(self) -> EndpointRequests:
        return self

    async def __anext__(self) -> ServiceRequest:
        last, self._last = self._last, None
        if last is not None:
            last.finish()
        request = await self._endpoint.take(hold=True)
        if request is None:
            raise StopAsyncIteration
        self._last = request
        return request


class EndpointGroup:
    """Endpoints with a common prefix of their subjects. Returned by `add_group`."""

    def __init__(self, hub: Hub, prefix: str, queue_group: str | None) -> None:
        self._hub = hub
        self._prefix = prefix
        self._queue_group = queue_group

    @property
    def prefix(self) -> str:
        """The prefix of the subjects; "" for none."""
        return self._prefix

    def add_endpoint(
        self,
        name: str,
        handler: Handler | None = None,
        *,
        subject: str = "",
        queue_group: str | None = "",
        metadata: Mapping[str, str] | None = None,
        concurrency: int = 1,
        max_msgs: int = 0,
        max_bytes: int = 0,
    ) -> Endpoint:
        """Add an endpoint; before the service is started, or at any time while it runs.

        handler      called with each request; without one, loop over the endpoint
        subject      the subject below the prefix of the group; by default the name
        queue_group  the queue group; "" inherits it, None makes every instance get every request
        concurrency  how many requests may be handled at the same time
        max_msgs, max_bytes  limits of waiting requests, by default those of the client's options;
                     requests beyond them are answered with 503
        """
        check_name("endpoint name", name, "SERVICE-5")
        whole = join(self._prefix, subject or name)  # SERVICE-6
        check_subscribe(whole)
        queue = choose_queue(queue_group, self._queue_group)
        if handler is not None:
            check_callback(handler, "D-SERVICE-15", "handler")
        check_count("concurrency", concurrency, 1, MOST_COUNT, "D-SERVICE-11")
        record = EndpointRecord(name, whole, queue or "", check_metadata(metadata))
        limits = (check_count("max_msgs", max_msgs), check_count("max_bytes", max_bytes))
        return self._hub.add(record, handler, concurrency, limits)

    def endpoint(
        self,
        name: str = "",
        *,
        subject: str = "",
        queue_group: str | None = "",
        metadata: Mapping[str, str] | None = None,
        concurrency: int = 1,
        max_msgs: int = 0,
        max_bytes: int = 0,
    ) -> Callable[[Function], Function]:
        """Return a decorator for a handler, whose name is the default name of the endpoint.

        The arguments are those of `add_endpoint`.
        """

        def decorate(handler: Function) -> Function:
            self.add_endpoint(
                name or handler.__name__,
                handler,
                subject=subject,
                queue_group=queue_group,
                metadata=metadata,
                concurrency=concurrency,
                max_msgs=max_msgs,
                max_bytes=max_bytes,
            )
            return handler

        return decorate

    def add_group(self, name: str, *, queue_group: str | None = "") -> EndpointGroup:
        """Return a group whose endpoints are below this prefix; `queue_group` is their default."""
        prefix = join(self._prefix, check_group(name))
        return EndpointGroup(self._hub, prefix, choose_queue(queue_group, self._queue_group))
