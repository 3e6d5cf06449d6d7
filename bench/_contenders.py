"""The clients that core.py compares: the same few calls of each, in the form its own users write.

Loops that are measured call the library directly. Those of a blocking client are coroutines here
that never suspend, so that one driver runs all of them. A contender whose library is not installed
raises ImportError when it is made.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from natsproto.port import run_sync

SUBJECT = "bench.orders.new"
SERVICE = "bench.service"
NO_LIMIT = 1 << 40  # nobody is to drop messages for want of room


class Contender:
    """Messages are taken until an empty one comes, which only the other side's last one is."""

    run: Any = staticmethod(asyncio.run)
    client: Any

    async def open(self, url: str) -> None:
        raise NotImplementedError

    async def publish(self, data: bytes, count: int) -> None:
        """Publish that many and wait until the server has seen them."""
        raise NotImplementedError

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        raise NotImplementedError

    async def take(self, subscription: Any) -> int:
        """Iterate; returns how many came before the empty one."""
        raise NotImplementedError

    async def subscribe_callback(self) -> Any:
        """The same with a callback, where the library has such a thing."""
        return await self.subscribe()

    async def take_callback(self, subscription: Any) -> int:
        return await self.take(subscription)

    async def request(self, data: bytes, count: int) -> list[float]:
        """One request after the other; returns how long each took."""
        raise NotImplementedError

    async def flush(self) -> None:
        await self.client.flush()

    async def close(self) -> None:
        await self.client.close()


class OnAsyncio(Contender):
    """natsproto on asyncio."""

    async def open(self, url: str) -> None:
        from natsproto.adapters.asyncio import connect

        self.client = await connect(url)

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.client.flush(60.0)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(subject, max_msgs=NO_LIMIT, max_bytes=NO_LIMIT)

    async def take(self, subscription: Any) -> int:
        count = 0
        async for msg in subscription:
            if not msg.data:
                break
            count += 1
        assert not subscription.dropped
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            msg = await self.client.request(SERVICE, data)
            times.append(time.perf_counter() - start)
            assert msg.data == data
        return times


def on_uvloop(main: Any) -> Any:
    import uvloop

    return uvloop.run(main)


class OnUvloop(OnAsyncio):
    run = staticmethod(on_uvloop)


class OnTrio(OnAsyncio):
    """natsproto on trio."""

    @staticmethod
    def run(main: Any) -> Any:
        import trio

        async def wait_for() -> Any:
            return await main

        return trio.run(wait_for)

    async def open(self, url: str) -> None:
        from natsproto.adapters.trio import connect

        self._opening = connect(url)
        self.client = await self._opening.__aenter__()

    async def close(self) -> None:
        await self._opening.__aexit__(None, None, None)


class Blocking(Contender):
    """natsproto without an event loop."""

    run = staticmethod(run_sync)

    async def open(self, url: str) -> None:
        from natsproto.adapters.blocking import connect

        self.client = connect(url)

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        with self.client.corked():  # else each of them is a system call
            for _ in range(count):
                publish(SUBJECT, data)
        self.client.flush(60.0)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return self.client.subscribe(subject, max_msgs=NO_LIMIT, max_bytes=NO_LIMIT)

    async def take(self, subscription: Any) -> int:
        count = 0
        for msg in subscription:
            if not msg.data:
                break
            count += 1
        assert not subscription.dropped
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            msg = self.client.request(SERVICE, data)
            times.append(time.perf_counter() - start)
            assert msg.data == data
        return times

    async def flush(self) -> None:
        self.client.flush()

    async def close(self) -> None:
        self.client.close()


class Threads(Blocking):
    """natsproto with a thread that does the I/O."""

    async def open(self, url: str) -> None:
        from natsproto.adapters.threads import connect

        self.client = connect(url)


class NatsPy(Contender):
    async def open(self, url: str) -> None:
        import nats

        self.client = await nats.connect(url)

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.client.flush(60)

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(
            subject, pending_msgs_limit=NO_LIMIT, pending_bytes_limit=NO_LIMIT
        )

    async def take(self, subscription: Any) -> int:
        count = 0
        async for msg in subscription.messages:
            if not msg.data:
                break
            count += 1
        return count

    async def subscribe_callback(self) -> Any:
        results: asyncio.Queue[int] = asyncio.Queue()
        count = 0

        async def callback(msg: Any) -> None:
            nonlocal count
            if msg.data:
                count += 1
            else:
                results.put_nowait(count)
                count = 0

        await self.client.subscribe(
            SUBJECT, cb=callback, pending_msgs_limit=NO_LIMIT, pending_bytes_limit=NO_LIMIT
        )
        return results

    async def take_callback(self, subscription: Any) -> int:
        count: int = await subscription.get()
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            msg = await self.client.request(SERVICE, data, timeout=2.0)
            times.append(time.perf_counter() - start)
            assert msg.data == data
        return times


class NatsPyUvloop(NatsPy):
    run = staticmethod(on_uvloop)


class NatsCore(Contender):
    async def open(self, url: str) -> None:
        from nats.client import connect

        self.client = await connect(url)

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.client.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(
            subject, max_pending_messages=None, max_pending_bytes=None
        )

    async def take(self, subscription: Any) -> int:
        count = 0
        async for msg in subscription:
            if not msg.data:
                break
            count += 1
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            msg = await self.client.request(SERVICE, data, timeout=2.0)
            times.append(time.perf_counter() - start)
            assert msg.data == data
        return times


class Natsrpy(Contender):
    """Written in Rust, awaited from asyncio."""

    run = staticmethod(on_uvloop)

    async def open(self, url: str) -> None:
        from natsrpy import Nats

        self.client = Nats([url])
        await self.client.startup()

    async def publish(self, data: bytes, count: int) -> None:
        publish = self.client.publish
        for _ in range(count):
            await publish(SUBJECT, data)
        await self.client.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        return await self.client.subscribe(subject).detatch()

    async def take(self, subscription: Any) -> int:
        count = 0
        async for msg in subscription:
            if not msg.payload:
                break
            count += 1
        return count

    async def request(self, data: bytes, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            msg = await self.client.request(SERVICE, data, timeout=2.0)
            times.append(time.perf_counter() - start)
            assert msg.payload == data
        return times

    async def close(self) -> None:
        await self.client.shutdown()


class Raw(Contender):
    """A blocking socket, bytes encoded beforehand, nothing parsed: what the others could reach."""

    run = staticmethod(run_sync)

    async def open(self, url: str) -> None:
        self._socket, _ = dial(url)
        self._rest = b""

    async def publish(self, data: bytes, count: int) -> None:
        send_many(self._socket, pub(data), count)
        await self.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        self._socket.sendall(b"SUB %s 1\r\n" % subject.encode())

    async def take(self, subscription: Any) -> int:
        """Counts the bytes up to the empty message, and how many messages that makes."""
        end = b"MSG %s 1 0\r\n\r\n" % SUBJECT.encode()
        frame = total = 0
        tail = self._rest
        while True:
            data = self._socket.recv(64 * 1024)
            total += len(data)
            if not frame:
                head, _, _ = (tail + data).partition(b"\r\n")
                frame = len(head) + 2 + int(head.split(b" ")[-1]) + 2
            tail = (tail + data)[-len(end) :] if len(data) < len(end) else data[-len(end) :]
            if tail == end:
                return (total - len(end)) // frame

    async def request(self, data: bytes, count: int) -> list[float]:
        self._socket.sendall(b"SUB _INBOX.raw.* 9\r\n")
        question = pub(data, SERVICE.encode() + b" _INBOX.raw.1")
        answer = len(b"MSG _INBOX.raw.1 9 %d\r\n%s\r\n" % (len(data), data))
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self._socket.sendall(question)
            got = 0
            while got < answer:
                got += len(self._socket.recv(64 * 1024))
            times.append(time.perf_counter() - start)
        return times

    async def flush(self) -> None:
        self._socket.sendall(b"PING\r\n")
        data = b""
        while not data.endswith(b"PONG\r\n"):
            data += self._socket.recv(64 * 1024)

    async def close(self) -> None:
        self._socket.close()


def dial(url: str) -> tuple[socket.socket, bytes]:
    """A socket that has said CONNECT and has been answered, and the server's INFO."""
    host, _, port = url.rpartition("/")[2].partition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    info = sock.recv(64 * 1024)
    sock.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
    assert sock.recv(64 * 1024) == b"PONG\r\n"
    return sock, info


def pub(data: bytes, subject: bytes = SUBJECT.encode()) -> bytes:
    return b"PUB %s %d\r\n%s\r\n" % (subject, len(data), data)


def send_many(sock: socket.socket, frame: bytes, count: int) -> None:
    """The same frame so many times, in writes of about 64 KiB."""
    group = max(1, 64 * 1024 // len(frame))
    block = frame * group
    for _ in range(count // group):
        sock.sendall(block)
    sock.sendall(frame * (count % group))


# In the order of the tables. The number says how many times as many messages as nats-py it gets,
# so that all take about the same time.
CONTENDERS: dict[str, tuple[type[Contender], int]] = {
    "natsproto asyncio": (OnAsyncio, 4),
    "natsproto uvloop": (OnUvloop, 4),
    "natsproto trio": (OnTrio, 4),
    "natsproto blocking": (Blocking, 4),
    "natsproto threads": (Threads, 2),
    "nats-py": (NatsPy, 1),
    "nats-py uvloop": (NatsPyUvloop, 1),
    "nats-core": (NatsCore, 2),
    "natsrpy uvloop": (Natsrpy, 1),
    "raw socket": (Raw, 16),
}
