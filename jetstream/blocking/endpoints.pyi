# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable, Mapping
from typing import Any

from jetstream.services import endpoint as _endpoint
from jetstream.services import request as _request
from jetstream.services.endpoint import Function
from jetstream.services.responses import EndpointStats
from natsproto.durations import Seconds
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike
from natsproto.wire.headers import Headers, HeadersLike

class ServiceRequest:
    """A request to an endpoint. Answer it, or return the answer from the handler.

    Several answers are possible, for callers that use `request_many`. If the sender expects no
    answer, nothing is sent.
    """

    __slots__ = ("inner", "port")
    inner: _request.ServiceRequest
    port: BlockingPort

    def __init__(self, inner: _request.ServiceRequest, port: BlockingPort) -> None: ...
    @property
    def subject(self) -> str:
        """The subject that the request was sent to."""
        ...

    @property
    def reply(self) -> str:
        """The subject of answers; "" if the sender expects none."""
        ...

    @property
    def data(self) -> bytes:
        """The payload."""
        ...

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        ...

    @property
    def answered(self) -> bool:
        """Whether the request was answered."""
        ...

    def json(self) -> Any:
        """Decode the payload as JSON; raise ValueError if it is not."""
        ...

    def respond(self, data: BytesLike = b"", *, headers: HeadersLike | None = None) -> None:
        """Send an answer."""
        ...

    def respond_json(self, value: object, *, headers: HeadersLike | None = None) -> None:
        """Send a value as JSON; raise TypeError if it cannot be encoded."""
        ...

    def respond_error(
        self, code: int, text: str, data: BytesLike = b"", *, headers: HeadersLike | None = None
    ) -> None:
        """Send an error as the answer, and count it. Handlers may raise ServiceError instead."""
        ...

    def fail(self, error: Exception) -> None:
        """Count the error of a handler, and answer with it unless the request was answered.

        An exception that is not a ServiceError is a 500 (D-SERVICE-6). So is one whose payload or
        headers cannot be sent.
        """
        ...

    def __repr__(self) -> str: ...

class EndpointRequests:
    """A loop over the requests of an endpoint. It ends when the service stops.

    A request is done when it is answered, or when the loop asks for the next one.
    """

    inner: _endpoint.EndpointRequests
    port: BlockingPort

    def __init__(self, inner: _endpoint.EndpointRequests, port: BlockingPort) -> None: ...
    def __next__(self) -> ServiceRequest: ...
    def __iter__(self) -> EndpointRequests: ...

class Endpoint:
    """An endpoint of a service. Without a handler, loop over its requests."""

    inner: _endpoint.Endpoint
    port: BlockingPort

    def __init__(self, inner: _endpoint.Endpoint, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name, which other endpoints of the service may have as well."""
        ...

    @property
    def subject(self) -> str:
        """The subject of the requests, with the prefixes of its groups."""
        ...

    @property
    def queue_group(self) -> str:
        """The queue group; "" if every instance receives every request."""
        ...

    @property
    def metadata(self) -> dict[str, str]:
        """A copy of the metadata."""
        ...

    @property
    def concurrency(self) -> int:
        """How many requests the handler may have at once."""
        ...

    @property
    def pending(self) -> int:
        """The number of requests that wait to be handled."""
        ...

    @property
    def in_progress(self) -> int:
        """The number of requests that are being handled."""
        ...

    @property
    def dropped(self) -> int:
        """The number of requests that did not fit and were answered with 503."""
        ...

    @property
    def ended(self) -> bool:
        """Whether no more requests arrive."""
        ...

    @property
    def stats(self) -> EndpointStats:
        """The statistics, without data of `stats_data`."""
        ...

    def next(self, timeout: Seconds | None = None) -> ServiceRequest:
        """Return the next request; raise TimeoutExpired, or InvalidState after the last one.

        A timeout of 0 polls: it returns a request only if there is one.
        """
        ...

    def __iter__(self) -> EndpointRequests: ...
    def __repr__(self) -> str: ...

class EndpointGroup:
    """Endpoints with a common prefix of their subjects. Returned by `add_group`."""

    inner: _endpoint.EndpointGroup
    port: BlockingPort

    def __init__(self, inner: _endpoint.EndpointGroup, port: BlockingPort) -> None: ...
    @property
    def prefix(self) -> str:
        """The prefix of the subjects; "" for none."""
        ...

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
        ...

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
        ...

    def add_group(self, name: str, *, queue_group: str | None = "") -> EndpointGroup:
        """Return a group whose endpoints are below this prefix; `queue_group` is their default."""
        ...
