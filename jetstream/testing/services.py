"""Helpers for the checks of services: a service whose handlers run next to the check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jetstream
import jetstream.blocking
from jetstream.errors import ServiceError
from jetstream.services.errors import service_error
from natsproto.testing.blocking_view import View, add_twins, view_of, viewed
from natsproto.testing.context import WAIT, Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jetstream import Service, Services
    from natsproto.client import Client
    from natsproto.testing.runner import Task
    from natsproto.testing.server import Server
    from natsproto.wire.frames import Msg

add_twins(
    [
        *(jetstream.Service, jetstream.Services, jetstream.ServiceEvents),
        *(jetstream.Endpoint, jetstream.EndpointGroup, jetstream.EndpointRequests),
        jetstream.ServiceRequest,
    ]
)


def service_of(client: Client, **options: Any) -> Service:
    """Return a service on the client of a check, with the options of jetstream.add_service."""
    if isinstance(client, View):
        made: Service = viewed(jetstream.blocking.add_service)(client, **options)
        return made
    return jetstream.add_service(client, **options)


def services_of(client: Client, **options: Any) -> Services:
    """Return the services that the client of a check can find."""
    if isinstance(client, View):
        made: Services = view_of(jetstream.blocking.Services(client.inner, **options))
        return made
    return jetstream.Services(client, **options)


class Served:
    """A service on a client of its own, and another client to send requests.

    While `run` is active, the check must not use the service, unless it shares clients: a request
    to `stop` ends it.
    """

    def __init__(self, ctx: Context, service: Service, client: Client, asker: Client) -> None:
        self.ctx = ctx
        self.service = service
        #: The client of the service.
        self.client = client
        #: The client that sends requests.
        self.asker = asker
        self.services: Services = services_of(asker)
        self._stop = f"{ctx.subject}.stop.{service.id}"
        self._task: Task[None] | None = None

    async def run(self) -> Served:
        """Start the service, if necessary, and run its handlers."""
        service = self.service

        async def stop(request: Any) -> bytes:
            if request.data:
                return b"running"
            await service.stop()
            return b"stopping"

        service.add_endpoint("stop", stop, subject=self._stop)
        if service.state == "NEW":
            await service.start()
        await self.client.flush(WAIT)
        self._task = self.ctx.start(service.run)
        reply = await self.ask(self._stop, b"?", absolute=True)
        assert reply.data == b"running"
        return self

    async def stop(self) -> None:
        """Stop the service by a request, and wait for the end of `run`."""
        reply = await self.ask(self._stop, absolute=True)
        assert reply.data == b"stopping"
        await self.ended()

    async def ended(self) -> None:
        """Wait for the end of `run`, and raise its error."""
        assert self._task is not None
        await self._task.result()

    def subject(self, name: str) -> str:
        """Return a subject of this check."""
        return f"{self.ctx.subject}.{name}"

    async def ask(self, name: str, data: bytes = b"", absolute: bool = False, **more: Any) -> Msg:
        """Send a request to an endpoint below the subject of the check."""
        subject = name if absolute else self.subject(name)
        return await self.asker.request(subject, data, timeout=WAIT, **more)

    async def error_of(self, name: str, data: bytes = b"") -> ServiceError:
        """Send a request that is answered with an error, and return the error."""
        error = service_error(await self.ask(name, data))
        assert error is not None
        return error

    async def stats_of(self, name: str) -> Any:
        """Return the statistics of an endpoint."""
        [found] = await self.services.stats(self.service.name, self.service.id, timeout=WAIT)
        [endpoint] = [each for each in found.endpoints if each.name == name]
        return endpoint


async def new_service(ctx: Context, *, server: Server | None = None, **options: Any) -> Served:
    """Return a service that is not started, and has a name of its own."""
    client, asker = await ctx.pair(server)
    return Served(ctx, service_of(client, **settings(ctx, options)), client, asker)


def settings(ctx: Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a service of this check."""
    return {"name": ctx.subject.replace(".", "-"), "version": "1.2.3", **options}


async def serve(
    ctx: Context, endpoints: Mapping[str, Callable[[Any], Any] | None], **options: Any
) -> Served:
    """Return a service with these endpoints, below the subject of the check, that runs."""
    served = await new_service(ctx, **options)
    group = served.service.add_group(ctx.subject)
    for name, handler in endpoints.items():
        group.add_endpoint(name, handler)
    return await served.run()
