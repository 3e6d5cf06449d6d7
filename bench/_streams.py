"""One client publishing to a stream, in a process of its own: streams.py starts it.

    python bench/_streams.py CLIENT SCENARIO URL COUNT SIZE

Its last line is the result in JSON, or `absent` if the library is not installed. Each client is
used in the form that its own users write; loops that are measured call the library directly.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import _contenders as core
from _measure import WARM_UP, Clock, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SUBJECT = "stream.orders.new"
WINDOW = 1000


class Ours(core.Contender):
    """natsproto's JetStream on an event loop."""

    async def open(self, url: str) -> None:
        from jetstream import JetStream

        await super().open(url)
        self.js = JetStream(self.client)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return await timed(self.js.publish, data, count)

    async def window(self, data: bytes, count: int) -> None:
        async with self.js.publisher(max_pending=WINDOW) as window:
            publish = window.publish
            for _ in range(count):
                await publish(SUBJECT, data)

    async def load(self, data: bytes, count: int) -> None:
        async with self.js.fast_batch() as batch:
            add = batch.add
            for _ in range(count):
                await add(SUBJECT, data)


class OnAsyncio(Ours, core.OnAsyncio):
    pass


class OnUvloop(Ours, core.OnUvloop):
    pass


class OnTrio(Ours, core.OnTrio):
    pass


class Blocking(core.Blocking):
    async def open(self, url: str) -> None:
        from jetstream.blocking import JetStream

        await super().open(url)
        self.js = JetStream(self.client)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.js.publish(SUBJECT, data)
            times.append(time.perf_counter() - start)
        return times

    async def window(self, data: bytes, count: int) -> None:
        with self.js.publisher(max_pending=WINDOW) as window, self.client.corked():
            publish = window.publish
            for _ in range(count):
                publish(SUBJECT, data)

    async def load(self, data: bytes, count: int) -> None:
        with self.js.fast_batch() as batch, self.client.corked():
            add = batch.add
            for _ in range(count):
                add(SUBJECT, data)


class Threads(Blocking, core.Threads):
    pass


class NatsPy(core.NatsPy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.js = self.client.jetstream(publish_async_max_pending=WINDOW)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return await timed(self.js.publish, data, count)

    async def window(self, data: bytes, count: int) -> None:
        publish = self.js.publish_async
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.js.publish_async_completed()


class NatsPyUvloop(NatsPy):
    run = staticmethod(core.on_uvloop)


class NatsJetStream(core.NatsCore):
    """It has no window: as many publishes are awaited together."""

    async def open(self, url: str) -> None:
        from nats.jetstream import new

        await super().open(url)
        self.js = new(self.client)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return await timed(self.js.publish, data, count)

    async def window(self, data: bytes, count: int) -> None:
        await together(lambda: self.js.publish(SUBJECT, data), count)


class Natsrpy(core.Natsrpy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.js = await self.client.jetstream(max_ack_inflight=WINDOW)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            await self.js.publish(SUBJECT, data, wait=True)
            times.append(time.perf_counter() - start)
        return times

    async def window(self, data: bytes, count: int) -> None:
        await together(lambda: self.js.publish(SUBJECT, data, wait=True), count)


class Raw(core.Raw):
    """Bytes encoded beforehand; of the answers only the ends are counted."""

    async def open(self, url: str) -> None:
        await super().open(url)
        self._socket.sendall(b"SUB _INBOX.raw.* 1\r\n")

    async def sequential(self, data: bytes, count: int) -> list[float]:
        frame = core.pub(data, SUBJECT.encode() + b" _INBOX.raw.1")
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self._socket.sendall(frame)
            answer = b""
            while not answer.endswith(b"}\r\n"):
                answer += self._socket.recv(64 * 1024)
            times.append(time.perf_counter() - start)
        return times

    async def window(self, data: bytes, count: int) -> None:
        half = WINDOW // 2
        frames = core.pub(data, SUBJECT.encode() + b" _INBOX.raw.1") * half
        sent = acknowledged = 0
        tail = b""
        while acknowledged < count:
            while sent < count and sent - acknowledged <= half:
                self._socket.sendall(frames)
                sent += half
            data = tail + self._socket.recv(64 * 1024)
            acknowledged += data.count(b"}\r\n")
            tail = data[-2:] if not data.endswith(b"}\r\n") else b""


async def timed(publish: Callable[..., Awaitable[object]], data: bytes, count: int) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await publish(SUBJECT, data)
        times.append(time.perf_counter() - start)
    return times


async def together(publish: Callable[[], Awaitable[object]], count: int) -> None:
    for _ in range(count // WINDOW):
        await asyncio.gather(*[publish() for _ in range(WINDOW)])


# In the order of the tables; the number is as in _contenders.py.
CONTENDERS: dict[str, tuple[type[core.Contender], int]] = {
    "natsproto asyncio": (OnAsyncio, 3),
    "natsproto uvloop": (OnUvloop, 3),
    "natsproto trio": (OnTrio, 3),
    "natsproto blocking": (Blocking, 3),
    "natsproto threads": (Threads, 2),
    "nats-py": (NatsPy, 1),
    "nats-py uvloop": (NatsPyUvloop, 1),
    "nats-jetstream": (NatsJetStream, 1),
    "natsrpy uvloop": (Natsrpy, 1),
    "raw socket": (Raw, 6),
}


async def main(peer: Any) -> None:
    _, _, scenario, url, count_text, size = sys.argv
    count = int(count_text)
    data = bytes(int(size))
    try:
        await peer.open(url)
    except ImportError:
        say("absent")
        return
    if scenario == "sequential":
        await peer.sequential(data, max(20, count // WARM_UP))
        clock = Clock()
        times = sorted(await peer.sequential(data, count))
        result = clock.stop(count)
        result["p50"] = times[count // 2] * 1e6
        result["p99"] = times[count * 99 // 100] * 1e6
    else:
        work = getattr(peer, scenario, peer.window)  # only natsproto has fast batches to load by
        await work(data, WINDOW * 2)
        clock = Clock()
        await work(data, count)
        result = clock.stop(count)
    say(json.dumps(result))
    await peer.close()


if __name__ == "__main__":
    contender = CONTENDERS[sys.argv[1]][0]()
    try:
        contender.run(main(contender))
    except ImportError:  # of the event loop
        say("absent")
