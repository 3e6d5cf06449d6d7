"""One client that publishes to a stream; streams.py starts it.

    python bench/_streams.py CLIENT SCENARIO URL COUNT SIZE

The arguments and the result are described in _client.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from _client import Clock, latency, main, timed, timed_plainly
from _contenders import Contender, natsproto
from _peers import NatsCore, NatsPy, Natsrpy, nats_py
from _raw import Raw, pub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SUBJECT = "stream.orders.new"
WINDOW = 1000


class Publishing(Contender):
    """A client that publishes: `js` is the object of its library, with calls that are awaited."""

    js: Any

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return await timed(self.js.publish, SUBJECT, data, count=count)

    async def window(self, data: bytes, count: int) -> None:
        raise NotImplementedError

    async def load(self, data: bytes, count: int) -> None:
        """Load a stream; only natsproto has fast batches for that."""
        await self.window(data, count)


class Ours(Publishing):
    async def open(self, url: str) -> None:
        from jetstream import JetStream

        await super().open(url)
        self.js = JetStream(self.client)

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


class OursBlocking(Contender):
    async def open(self, url: str) -> None:
        from jetstream.blocking import JetStream

        await super().open(url)
        self.js = JetStream(self.client)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(self.js.publish, SUBJECT, data, count=count)

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


class StreamsNatsPy(Publishing, NatsPy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.js = self.client.jetstream(publish_async_max_pending=WINDOW)

    async def window(self, data: bytes, count: int) -> None:
        publish = self.js.publish_async
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.js.publish_async_completed()


class StreamsNatsCore(Publishing, NatsCore):
    """nats-core, which has no window: as many publishes are awaited together."""

    async def open(self, url: str) -> None:
        from nats.jetstream import new

        await super().open(url)
        self.js = new(self.client)

    async def window(self, data: bytes, count: int) -> None:
        await together(lambda: self.js.publish(SUBJECT, data), count)


class StreamsNatsrpy(Publishing, Natsrpy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.js = await self.client.jetstream(max_ack_inflight=WINDOW)

    async def sequential(self, data: bytes, count: int) -> list[float]:
        return await timed(self.js.publish, SUBJECT, data, wait=True, count=count)

    async def window(self, data: bytes, count: int) -> None:
        await together(lambda: self.js.publish(SUBJECT, data, wait=True), count)


class StreamsRaw(Publishing, Raw):
    """A raw socket with bytes encoded beforehand, which counts the ends of the responses."""

    async def open(self, url: str) -> None:
        await super().open(url)
        self._socket.sendall(b"SUB _INBOX.raw.* 1\r\n")

    async def sequential(self, data: bytes, count: int) -> list[float]:
        frame = pub(data, SUBJECT.encode() + b" _INBOX.raw.1")

        def publish() -> None:
            self._socket.sendall(frame)
            answer = b""
            while not answer.endswith(b"}\r\n"):
                answer += self._socket.recv(64 * 1024)

        return timed_plainly(publish, count=count)

    async def window(self, data: bytes, count: int) -> None:
        half = WINDOW // 2
        frames = pub(data, SUBJECT.encode() + b" _INBOX.raw.1") * half
        sent = acknowledged = 0
        tail = b""
        while acknowledged < count:
            while sent < count and sent - acknowledged <= half:
                self._socket.sendall(frames)
                sent += half
            data = tail + self._socket.recv(64 * 1024)
            acknowledged += data.count(b"}\r\n")
            tail = data[-2:] if not data.endswith(b"}\r\n") else b""


async def together(publish: Callable[[], Awaitable[object]], count: int) -> None:
    for _ in range(count // WINDOW):
        await asyncio.gather(*[publish() for _ in range(WINDOW)])


# In the order of the tables.
CONTENDERS = {
    **natsproto(Ours, OursBlocking),
    **nats_py(StreamsNatsPy),
    "nats-core": StreamsNatsCore,
    "natsrpy uvloop": StreamsNatsrpy,
    "raw socket": StreamsRaw,
}


async def measure(peer: Any, scenario: str, count: str, size: str) -> dict[str, float]:
    data = bytes(int(size))
    work = getattr(peer, scenario)
    if scenario == "sequential":
        return await latency(work, data, int(count))
    await work(data, WINDOW * 2)
    clock = Clock()
    await work(data, int(count))
    return clock.stop(int(count))


if __name__ == "__main__":
    main(CONTENDERS, measure)
