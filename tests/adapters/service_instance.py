"""One instance of a service, as a program: it stops at SIGTERM, and reports what it has handled.

Argument: the URL of a server.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from jetstream import add_service
from natsproto.adapters.asyncio import connect


async def main(url: str) -> None:
    async with (
        connect(url) as client,
        add_service(client, name="worker", version="1.0.0") as service,
    ):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: asyncio.ensure_future(service.stop()))

        @service.endpoint(concurrency=4)
        async def work(request: Any) -> bytes:
            await asyncio.sleep(0.005)
            return bytes(request.data)

        await client.flush()
        print("ready", flush=True)
        await service.run()
        [endpoint] = service.endpoints
        print(endpoint.stats.num_requests, endpoint.stats.num_errors, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
