"""Calls of services."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsproto.errors import NatsError

from .coroutines import call

if TYPE_CHECKING:
    from jetstream import ServiceRequest

    from .stage import Stage


async def _echo(request: ServiceRequest) -> None:
    await request.respond(request.data)


@call(
    "Services.ping",
    "Services.info",
    "Services.stats",
    "Services.request",
)
async def discover(on: Stage) -> None:
    """Ask a service of another client."""
    service = on.friendly_service()
    service.add_endpoint("echo", _echo)
    await service.start()
    task = on.start(service.run)

    async def use() -> None:
        options: Any = {"timeout": on.timeout, "stall": min(on.timeout, 0.05)}
        await on.services.ping("sweep", **options)
        await on.services.info("sweep", **options)
        await on.services.stats("sweep", **options)
        await on.services.request("echo", b"1", timeout=on.timeout)

    await on(use())
    await service.stop()
    await task.result()


@call(
    "Service.__aenter__",
    "Service.__aexit__",
    "Service.start",
    "Service.stop",
    "Service.stopped",
    "Service.stats",
    "Endpoint.next",
    "Endpoint.take",
    "EndpointRequests.__anext__",
    "ServiceRequest.respond",
    "ServiceRequest.respond_json",
    "ServiceRequest.respond_error",
    "ServiceRequest.fail",
)
async def serve(on: Stage) -> None:
    """The start of a block may take five seconds."""

    async def use() -> None:
        async with on.service(drain_timeout=on.timeout) as service:
            endpoint = service.add_endpoint("sweep")
            await service.stats()
            for _ in range(4):
                await on.client.publish("sweep", reply="sweep.reply")
            request = await endpoint.next(on.timeout)
            await request.respond_json([1])
            await (await endpoint.next(on.timeout)).respond(b"1")
            async for request in endpoint:
                await request.respond_error(400, "no")
                break
            await (await endpoint.next(on.timeout)).fail(ValueError())
            await service.stop(timeout=on.timeout)
        await service.stopped(on.timeout)

    await on(use())


@call("Service.run")
async def run_service(on: Stage) -> None:
    async def use() -> None:
        async with on.service(drain_timeout=on.timeout) as service:

            async def handle(request: ServiceRequest) -> None:
                await request.respond(b"1")
                await service.stop(timeout=on.timeout)

            service.add_endpoint("sweep", handle)
            await on.client.publish("sweep", reply="sweep.reply")
            await service.run()

    await on(use())


@call("ServiceEvents.next", "ServiceEvents.__anext__")
async def service_events(on: Stage) -> None:
    async def use() -> None:
        async with on.service(drain_timeout=on.timeout) as service:
            with suppress(NatsError):
                await service.events.next(min(on.timeout, 0.05))
            await service.stop(timeout=on.timeout)
            async for _ in service.events:
                pass

    await on(use())
