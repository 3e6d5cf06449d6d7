"""Services without async and await: handlers are ordinary functions."""

from __future__ import annotations

from jetstream.services import discovery as _discovery
from jetstream.services import endpoint as _endpoint
from jetstream.services import service as _service
from jetstream.services.callout import NAME, CalloutHandler
from jetstream.services.names import PREFIX
from jetstream.services.responses import ServiceStats
from jetstream.services.runner import ServiceRunner, sync_call
from natsproto.auth.callout import SUBJECT
from natsproto.blocking import Client
from natsproto.errors import InvalidValue, UserRejected
from natsproto.port import (
    blocking,
    blocking_next,
    run_sync,
)
from natsproto.wire.text import shorten
from natsproto.workers import check_sync

from .endpoints import Endpoint, EndpointGroup, ServiceRequest

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from typing_extensions import Self

    from jetstream.services.callout import User
    from jetstream.services.responses import ServiceInfo
    from natsproto.auth.auth_request import AuthRequest
    from natsproto.auth.callout import AuthCallout
    from natsproto.durations import Seconds
    from natsproto.port import BlockingPort


class ServiceEvents:
    """The events of a service. The iteration ends after ServiceStopped."""

    def __init__(self, inner: _service.ServiceEvents, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    next = blocking(_service.ServiceEvents.next)
    __next__ = blocking_next(_service.ServiceEvents.__anext__)

    def __iter__(self) -> Self:
        return self


class Service(EndpointGroup):
    """One instance of a service. Returned by `add_service`."""

    def __init__(self, inner: _service.Service, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._service = inner
        #: RequestFailed, StatsFailed, ResponseTruncated, ServiceStopped; iterate, or call `next`.
        self.events: ServiceEvents = ServiceEvents(inner.events, port)

    @property
    def name(self) -> str:
        """The name of the service, which all its instances have."""
        return self._service.name

    @property
    def id(self) -> str:
        """The id of this instance."""
        return self._service.id

    @property
    def version(self) -> str:
        """The version."""
        return self._service.version

    @property
    def state(self) -> str:
        """NEW, RUNNING, STOPPING or STOPPED."""
        return self._service.state

    @property
    def error(self) -> Exception | None:
        """Why the service ended; None while it runs, or if it was ended on purpose."""
        return self._service.error

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints, in the order in which they were added."""
        return [Endpoint(each, self.port) for each in self._service.endpoints]

    def info(self) -> ServiceInfo:
        """Return the service's response to INFO."""
        with self.port.lock:
            return self._service.info()

    def stats(self) -> ServiceStats:
        """Return the service's response to STATS."""
        return ServiceStats.from_json(run_sync(self._runner().stats()))

    def reset(self) -> None:
        """Set the statistics of all endpoints to zero."""
        with self.port.lock:
            self._service.reset()

    def start(self, timeout: Seconds = 5.0) -> None:
        """Subscribe to all subjects, and wait until the server has processed that.

        Raises PermissionDenied if the server denies one of the subjects.
        """
        with self.port.lock:
            run_sync(self._service.start(timeout))

    def run(self) -> None:
        """Call the handlers of all endpoints, until the service has stopped.

        With a client of natsproto.adapters.threads, each endpoint has as many threads as its
        `concurrency`; otherwise all handlers run in this thread, one after the other. Returns after
        the last answer. Raises the error that ended the service. If a handler raises ServiceError,
        the request is answered with it; any other exception is a 500. Both are counted, and
        reported by `events`.
        """
        run_sync(self._runner().run())

    def stop(self, error: Exception | None = None, *, timeout: Seconds = 10.0) -> None:
        """Accept no more requests; return when those in flight have arrived.

        They are still answered: `run`, `stopped` and the end of the block wait for that. A handler
        may call this, too. `run` then raises this `error`, and `stopped` returns it.
        """
        with self.port.lock:
            run_sync(self._service.stop(error, timeout=timeout))

    def stopped(self, timeout: Seconds | None = None) -> Exception | None:
        """Wait until the service has stopped and every request is answered.

        Returns the error that ended the service; None if it was ended on purpose. With a timeout of
        0, it raises TimeoutExpired unless the service has stopped.
        """
        with self.port.lock:
            return run_sync(self._service.stopped(timeout))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        run_sync(self._runner().close(kind is not None, self._service.drain_timeout))

    def _runner(self) -> ServiceRunner:
        return ServiceRunner(
            self._service.hub, self.port, sync_call(self._facade), self._service.stats_data
        )

    def _facade(self, argument: Any) -> object:
        if isinstance(argument, _endpoint.Endpoint):
            return Endpoint(argument, self.port)
        return ServiceRequest(argument, self.port)

    def __repr__(self) -> str:
        return repr(self.inner)


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
    """Return a service: `with add_service(client, name=..., version=...) as service`.

    The arguments are those of jetstream.add_service.
    """
    _check_client(client, "add_service")
    function: Any = stats_data
    one_thread = client.port.alone  # before the lock is used: no call is active
    with client.port.lock:
        inner = _service.add_service(
            client.inner,
            name=name,
            version=version,
            description=description,
            metadata=metadata,
            queue_group=queue_group,
            stats_data=function,
            prefix=prefix,
            drain_timeout=drain_timeout,
        )
        inner.hub.one_thread = one_thread
        return Service(inner, client.port)


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
    handler = CalloutHandler(callout, authorize, service.port.utc_ns)

    def handle(request: ServiceRequest) -> None:
        asked = callout.read(request.data, request.headers)
        try:
            user: object = authorize(asked)
            check_sync(user, authorize, "D-SERVICE-18", "function")
            answer = callout.accept(asked, user, handler.now())
        except Exception as error:
            request.respond(callout.settle(asked, error, handler.now()))
            if isinstance(error, UserRejected):
                return
            raise  # D-CALLOUT-5
        request.respond(answer)

    return service.add_endpoint(NAME, handle, subject=SUBJECT, concurrency=concurrency)


class Services:
    """The services of an account: `Services(client).ping()`.

    A call asks all services, those with a given name, or one instance by name and id. Because the
    number of services is not known, it waits for `stall` seconds after each response, and for
    `timeout` seconds in total.
    """

    def __init__(self, client: Client, *, prefix: str = PREFIX, timeout: Seconds = 2.0) -> None:
        _check_client(client, "Services")
        self.inner: _discovery.Services = _discovery.Services(
            client.inner, prefix=prefix, timeout=timeout
        )
        self.port: BlockingPort = client.port

    ping = blocking(_discovery.Services.ping)
    info = blocking(_discovery.Services.info)
    stats = blocking(_discovery.Services.stats)
    request = blocking(_discovery.Services.request)


def _check_client(client: object, name: str) -> None:
    if not isinstance(client, Client):
        raise InvalidValue(
            "client is not one of natsproto.adapters.blocking or .threads: %s; for others, use"
            " jetstream.%s" % (shorten(client), name)
        )
