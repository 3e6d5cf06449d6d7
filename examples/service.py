"""A service with two instances: requests, an error, discovery, statistics, and a graceful end.

Argument: the URL of a server, if it is not the usual one.
"""

from __future__ import annotations

import asyncio
import sys

from jetstream import ServiceError, ServiceRequest, Services, add_service
from natsproto.adapters.asyncio import connect

RATES = {"EUR": 1.0, "USD": 1.08, "JPY": 162.5}


async def convert(request: ServiceRequest) -> dict[str, float]:
    order = request.json()
    if order["to"] not in RATES:
        raise ServiceError(404, f"no rate for {order['to']}")
    await asyncio.sleep(0.01)  # as if the rates were fetched
    return {"amount": order["amount"] * RATES[order["to"]]}


async def serve(url: str, ready: asyncio.Event, leave: asyncio.Event) -> None:
    """Run one instance until it is asked to leave."""
    async with (
        connect(url) as client,
        add_service(client, name="exchange", version="1.0.0", metadata={"desk": "fx"}) as service,
    ):
        service.add_group("exchange").add_endpoint("convert", convert, concurrency=10)
        await client.flush()
        running = asyncio.create_task(service.run())
        ready.set()
        await leave.wait()
        await service.stop()
        await running  # every request that arrived is answered


async def main(url: str) -> None:
    ready = [asyncio.Event(), asyncio.Event()]
    leave = [asyncio.Event(), asyncio.Event()]
    instances = [
        asyncio.create_task(serve(url, *events)) for events in zip(ready, leave, strict=True)
    ]
    for event in ready:
        await event.wait()

    async with connect(url) as client:
        services = Services(client)
        pings = await services.ping("exchange")
        print(f"{len(pings)} instances of version {pings[0].version}")

        answer = await services.request("exchange.convert", b'{"amount": 10, "to": "USD"}')
        print(f"10 EUR in USD: {answer.data.decode()}")
        try:
            await services.request("exchange.convert", b'{"amount": 10, "to": "XAU"}')
        except ServiceError as error:
            print(f"an error: {error.code}, {error.text}")

        order = b'{"amount": 1, "to": "JPY"}'
        requests = [services.request("exchange.convert", order) for _ in range(100)]
        many = asyncio.gather(*requests)
        await client.flush()
        leave[0].set()  # one instance leaves in the middle of its work
        await instances[0]
        print(f"{len(await many)} answers, while an instance was stopped")

        [stats] = await services.stats("exchange")
        [endpoint] = stats.endpoints
        print(f"the other one handled {'some' if endpoint.num_requests else 'none'} of them")
        leave[1].set()
        await instances[1]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["nats://127.0.0.1:4222"]))
