"""Endpoints of services without async and await, and the requests to them."""

from __future__ import annotations

from jetstream.services import endpoint as _endpoint
from jetstream.services import request as _request
from natsproto.port import (
    blocking,
    blocking_next_to,
    blocking_to,
    locked_to,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from jetstream.services.endpoint import Function
    from jetstream.services.responses import EndpointStats
    from natsproto.port import BlockingPort
    from natsproto.wire.headers import Headers


class ServiceRequest:
    """A request to an endpoint. Answer it, or return the answer from the handler.

    Several answers are possible, for callers that use `request_many`. If the sender expects no
    answer, nothing is sent.
    """

    __slots__ = ("inner", "port")

    def __init__(self, inner: _request.ServiceRequest, port: BlockingPort) -> None:
        self.inner: _request.ServiceRequest = inner
        self.port: BlockingPort = port

    @property
    def subject(self) -> str:
        """The subject that the request was sent to."""
        return self.inner.subject

    @property
    def reply(self) -> str:
        """The subject of answers; "" if the sender expects none."""
        return self.inner.reply

    @property
    def data(self) -> bytes:
        """The payload."""
        return self.inner.data

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        return self.inner.headers

    @property
    def answered(self) -> bool:
        """Whether the request was answered."""
        return self.inner.answered

    def json(self) -> Any:
        """Decode the payload as JSON; raise ValueError if it is not."""
        return self.inner.json()

    respond = blocking(_request.ServiceRequest.respond)
    respond_json = blocking(_request.ServiceRequest.respond_json)
    respond_error = blocking(_request.ServiceRequest.respond_error)
    fail = blocking(_request.ServiceRequest.fail)

    def __repr__(self) -> str:
        return repr(self.inner)


class EndpointRequests:
    """A loop over the requests of an endpoint. It ends when the service stops.

    A request is done when it is answered, or when the loop asks for the next one.
    """

    def __init__(self, inner: _endpoint.EndpointRequests, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next_to(ServiceRequest, _endpoint.EndpointRequests.__anext__)

    def __iter__(self) -> EndpointRequests:
        return self


class Endpoint:
    """An endpoint of a service. Without a handler, loop over its requests."""

    def __init__(self, inner: _endpoint.Endpoint, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """The name, which other endpoints of the service may have as well."""
        return self.inner.name

    @property
    def subject(self) -> str:
        """The subject of the requests, with the prefixes of its groups."""
        return self.inner.subject

    @property
    def queue_group(self) -> str:
        """The queue group; "" if every instance receives every request."""
        return self.inner.queue_group

    @property
    def metadata(self) -> dict[str, str]:
        """A copy of the metadata."""
        return self.inner.metadata

    @property
    def concurrency(self) -> int:
        """How many requests the handler may have at once."""
        return self.inner.concurrency

    @property
    def pending(self) -> int:
        """The number of requests that wait to be handled."""
        return self.inner.pending

    @property
    def in_progress(self) -> int:
        """The number of requests that are being handled."""
        return self.inner.in_progress

    @property
    def dropped(self) -> int:
        """The number of requests that did not fit and were answered with 503."""
        return self.inner.dropped

    @property
    def ended(self) -> bool:
        """Whether no more requests arrive."""
        return self.inner.ended

    @property
    def stats(self) -> EndpointStats:
        """The statistics, without data of `stats_data`."""
        with self.port.lock:
            return self.inner.stats

    next = blocking_to(ServiceRequest, _endpoint.Endpoint.next)
    __iter__ = locked_to(EndpointRequests, _endpoint.Endpoint.__aiter__)

    def __repr__(self) -> str:
        return repr(self.inner)


class EndpointGroup:
    """Endpoints with a common prefix of their subjects. Returned by `add_group`."""

    def __init__(self, inner: _endpoint.EndpointGroup, port: BlockingPort) -> None:
        self.inner: _endpoint.EndpointGroup = inner
        self.port: BlockingPort = port

    @property
    def prefix(self) -> str:
        """The prefix of the subjects; "" for none."""
        return self.inner.prefix

    def add_endpoint(
        self,
        name: str,
        handler: Callable[[ServiceRequest], object] | None = None,
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
        concurrency  how many requests the handler may have at once, in threads
        max_msgs, max_bytes  limits of the requests that wait, which the client's options default;
                     requests above them are answered with 503
        """
        call: Any = handler
        with self.port.lock:
            inner = self.inner.add_endpoint(
                name,
                call,
                subject=subject,
                queue_group=queue_group,
                metadata=metadata,
                concurrency=concurrency,
                max_msgs=max_msgs,
                max_bytes=max_bytes,
            )
            return Endpoint(inner, self.port)

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
        """Return a decorator for the handler of an endpoint, which has its name by default.

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
        return EndpointGroup(self.inner.add_group(name, queue_group=queue_group), self.port)
