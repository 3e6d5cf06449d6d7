"""A cluster whose members talk to each other through proxies, which can be cut.

Each member knows the others only by the addresses of its own proxies: one proxy for each direction
of each pair. The members advertise an address where nobody listens, so they find no other way.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsproto.testing import Cluster, Server
from natsproto.testing.server import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

OPEN = "open"
CUT = "cut"  # connections break, and new ones are refused
HOLE = "hole"  # data disappears, in both directions
SLOW = "slow"  # data arrives in small pieces, with pauses
PIECE = 512
PAUSE = 0.002


class Proxy:
    """Forwards connections to one port, as its state says. It lives in the loop of Proxies."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.port = 0
        self.state = OPEN
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        await self.change(CUT)

    async def change(self, state: str) -> None:
        """Take another state. After a hole the connections are useless, so they end then."""
        before, self.state = self.state, state
        if state == CUT or (before == HOLE and state == OPEN):
            for writer in self._writers:
                writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.state in (OPEN, SLOW):
                up, down = await asyncio.open_connection(HOST, self.target)
                self._writers.add(down)
                await asyncio.gather(self._copy(reader, down), self._copy_back(up, writer))
                self._writers.discard(down)
        except OSError:
            pass  # the member is down
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE if self.state == SLOW else 65536):
                if self.state == SLOW:
                    await asyncio.sleep(PAUSE)
                if self.state != HOLE:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()

    async def _copy_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward what the target sends."""
        await self._copy(reader, writer)


class Proxies:
    """All proxies, in a thread with an event loop."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[int, int], Proxy] = {}
        self._proxies: list[Proxy] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a coroutine in the loop of the proxies."""

        async def run() -> None:
            await work()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10.0)

    def add(self, source: int, target: int, port: int) -> str:
        """Return the address by which a member reaches another one."""
        proxy = self.pairs[source, target] = Proxy(port)
        return self.start(proxy)

    def start(self, proxy: Proxy) -> str:
        """Start a proxy, and return its address."""
        self.call(proxy.start)
        self._proxies.append(proxy)
        return f"nats://{HOST}:{proxy.port}"

    def change(self, state: str, *members: int) -> None:
        """Change the links between these members and the others, or all if none is given."""
        for (source, target), proxy in self.pairs.items():
            if not members or (source in members) != (target in members):
                self.call(lambda proxy=proxy: proxy.change(state))  # type: ignore[misc]

    def stop(self) -> None:
        """Close everything. Stopping again has no effect."""
        if self._loop.is_closed():
            return
        for proxy in self._proxies:
            self.call(proxy.close)
        self.call(self._end_connections)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()

    async def _end_connections(self) -> None:
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ProxiedCluster(Cluster):
    """A cluster of three whose routes pass through `proxies`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.proxies = Proxies()
        super().__init__(3, config=config)

    def _member(
        self, number: int, route: str, routes: list[str], config: str | Mapping[str, Any]
    ) -> Server:
        others = [
            self.proxies.add(number, other, int(address.rpartition(":")[2]))
            for other, address in enumerate(routes, 1)
            if address != route
        ]
        cluster = {
            "name": "test",
            "listen": route.removeprefix("nats://"),
            "advertise": f"{HOST}:{free_port()}",
            "routes": others,
        }
        return Server(name=f"s{number}", jetstream=True, config=config, cluster=cluster)

    def stop(self) -> None:
        super().stop()
        self.proxies.stop()
