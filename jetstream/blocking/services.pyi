# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable, Mapping

from typing_extensions import Self

from jetstream.blocking.endpoints import Endpoint, EndpointGroup
from jetstream.services import discovery as _discovery
from jetstream.services import service as _service
from jetstream.services.callout import User
from jetstream.services.discovery import ServiceResponses
from jetstream.services.responses import ServiceInfo, ServicePing, ServiceStats
from natsproto.auth.auth_request import AuthRequest
from natsproto.auth.callout import AuthCallout
from natsproto.blocking import Client
from natsproto.durations import Seconds
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike
from natsproto.wire.frames import Msg
from natsproto.wire.headers import HeadersLike
from natsproto.wire.record import Record

class ServiceEvents:
    """The events of a service. The iteration ends after ServiceStopped."""

    inner: _service.ServiceEvents
    port: BlockingPort

    def __init__(self, inner: _service.ServiceEvents, port: BlockingPort) -> None: ...
    def next(self, timeout: Seconds | None = None) -> Record:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def __next__(self) -> Record: ...
    def __iter__(self) -> Self: ...

class Service(EndpointGroup):
    """One instance of a service. Returned by `add_service`."""

    events: ServiceEvents

    def __init__(self, inner: _service.Service, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name of the service, which all its instances have."""
        ...

    @property
    def id(self) -> str:
        """The id of this instance."""
        ...

    @property
    def version(self) -> str:
        """The version."""
        ...

    @property
    def state(self) -> str:
        """NEW, RUNNING, STOPPING or STOPPED."""
        ...

    @property
    def error(self) -> Exception | None:
        """Why the service ended; None while it runs, or if it was ended on purpose."""
        ...

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints, in the order in which they were added."""
        ...

    def info(self) -> ServiceInfo:
        """Return the service's response to INFO."""
        ...

    def stats(self) -> ServiceStats:
        """Return the service's response to STATS."""
        ...

    def reset(self) -> None:
        """Set the statistics of all endpoints to zero."""
        ...

    def start(self, timeout: Seconds = 5.0) -> None:
        """Subscribe to all subjects, and wait until the server has processed that.

        Raises PermissionDenied if the server denies one of the subjects.
        """
        ...

    def run(self) -> None:
        """Call the handlers of all endpoints, until the service has stopped.

        With a client of natsproto.adapters.threads, each endpoint has as many threads as its
        `concurrency`; otherwise all handlers run in this thread, one after the other. Returns after
        the last answer. Raises the error that ended the service. If a handler raises ServiceError,
        the request is answered with it; any other exception is a 500. Both are counted, and
        reported by `events`.
        """
        ...

    def stop(self, error: Exception | None = None, *, timeout: Seconds = 10.0) -> None:
        """Accept no more requests; return when those in flight have arrived.

        They are still answered: `run`, `stopped` and the end of the block wait for that. A handler
        may call this, too. `run` then raises this `error`, and `stopped` returns it.
        """
        ...

    def stopped(self, timeout: Seconds | None = None) -> Exception | None:
        """Wait until the service has stopped and every request is answered.

        Returns the error that ended the service; None if it was ended on purpose. With a timeout of
        0, it raises TimeoutExpired unless the service has stopped.
        """
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

def add_service(
    client: Client,
    *,
    name: str,
    version: str,
    description: str = "",
    metadata: Mapping[str, str] | None = None,
    queue_group: str | None = "",
    stats_data: Callable[[Endpoint], object] | None = None,
    prefix: str = ...,
    drain_timeout: Seconds = 30.0,
) -> Service:
    """Return a service: `with add_service(client, name=..., version=...) as service`.

    The arguments are those of jetstream.add_service.
    """
    ...

def add_auth_callout(
    service: Service,
    callout: AuthCallout,
    authorize: Callable[[AuthRequest], User],
    *,
    concurrency: int = 1,
) -> Endpoint:
    """Add an endpoint that decides for servers whether a client may connect (ADR-26).

    The arguments are those of jetstream.add_auth_callout; `authorize` is an ordinary function.
    """
    ...

class Services:
    """The services of an account: `Services(client).ping()`.

    A call asks all services, those with a given name, or one instance by name and id. Because the
    number of services is not known, it waits for `stall` seconds after each response, and for
    `timeout` seconds in total.
    """

    inner: _discovery.Services
    port: BlockingPort

    def __init__(self, client: Client, *, prefix: str = ..., timeout: Seconds = 2.0) -> None: ...
    def ping(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServicePing]:
        """Return the instances that respond; `rtts` of the result has their round-trip times."""
        ...

    def info(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServiceInfo]:
        """Return the descriptions and endpoints of the instances that respond."""
        ...

    def stats(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServiceStats]:
        """Return the statistics of the instances that respond."""
        ...

    def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds | None = None,
        headers: HeadersLike | None = None,
    ) -> Msg:
        """Send a request to an endpoint and return the answer; raise it if it is a ServiceError."""
        ...
