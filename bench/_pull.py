"""One client that pulls from a stream; pull.py starts it.

    python bench/_pull.py CLIENT SCENARIO URL STREAM CONSUMER COUNT SIZE

The arguments and the result are described in _client.py. Every client reads the payload, and one
header in the scenario `headers`.
"""

from __future__ import annotations

import sys
from typing import Any

from _client import Clock, main
from _contenders import Contender, natsproto
from _peers import NatsCore, NatsPy, Natsrpy, nats_py
from _raw import Raw, pub

HEADER = "Order-Id"
LARGE = 256 * 1024


def buffer_of(size: int) -> int:
    """Return the buffer of consume: the server drops clients for which 64 MiB are waiting."""
    return 500 if size < LARGE else 20


def warm_up(size: int) -> int:
    """Return the number of messages that are taken before the measured ones."""
    return 500 if size < LARGE else 20


class Puller(Contender):
    """A client that pulls: `fetch` in batches, `consume` continuously.

    Both take exactly `count` messages and return the last payload. `bind` selects the consumer;
    with `batch` 0 it is for `consume`, whose buffer is `buffer`.
    """

    buffer = 500

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        raise NotImplementedError

    async def fetch(self, batch: int, count: int) -> bytes:
        """Fetch and acknowledge each message."""
        raise NotImplementedError

    async def consume(self, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        async for msg in self._messages:
            data = msg.data
            if header:
                assert msg.headers.get(HEADER)
            if ack:
                await msg.ack()
            count -= 1
            if not count:
                break
        return data

    _consumer: Any
    _messages: Any


class Ours(Puller):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from jetstream import JetStream

        self._consumer = await JetStream(self.client).consumer(stream, consumer)
        if not batch:
            self._messages = self._consumer.consume(max_messages=self.buffer)

    async def fetch(self, batch: int, count: int) -> bytes:
        data = b""
        while count > 0:
            for msg in await self._consumer.fetch(batch, expires=5.0):
                data = msg.data
                await msg.ack()
                count -= 1
        return data


class OursBlocking(Puller):
    """The blocking client, corked: otherwise each acknowledgment is a system call."""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from jetstream.blocking import JetStream

        self._consumer = JetStream(self.client).consumer(stream, consumer)
        if not batch:
            self._messages = self._consumer.consume(max_messages=self.buffer)

    async def fetch(self, batch: int, count: int) -> bytes:
        data = b""
        with self.client.corked():
            while count > 0:
                for msg in self._consumer.fetch(batch, expires=5.0):
                    data = msg.data
                    msg.ack()
                    count -= 1
        return data

    async def consume(self, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        with self.client.corked():
            for msg in self._messages:
                data = msg.data
                if header:
                    assert msg.headers.get(HEADER)
                if ack:
                    msg.ack()
                count -= 1
                if not count:
                    break
        return data


class PullNatsPy(Puller, NatsPy):
    """nats-py, which has no continuous consume: its users fetch in a loop."""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        self._consumer = await self.client.jetstream().pull_subscribe_bind(consumer, stream)

    async def fetch(self, batch: int, count: int) -> bytes:
        return await self._pull(batch, count, True, False)

    async def consume(self, count: int, ack: bool, header: bool) -> bytes:
        return await self._pull(self.buffer, count, ack, header)

    async def _pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        while count:
            for msg in await self._consumer.fetch(min(batch, count), timeout=5):
                data = msg.data
                if header:
                    assert msg.headers.get(HEADER)
                if ack:
                    await msg.ack()
                count -= 1
        return data


class PullNatsCore(Puller, NatsCore):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from nats.jetstream import new

        self._consumer = await new(self.client).get_consumer(stream, consumer)
        if not batch:
            self._messages = await self._consumer.messages(max_messages=self.buffer)

    async def fetch(self, batch: int, count: int) -> bytes:
        data = b""
        while count > 0:
            async for msg in await self._consumer.fetch(max_messages=batch, max_wait=5.0):
                data = msg.data
                await msg.ack()
                count -= 1
        return data


class PullNatsrpy(Puller, Natsrpy):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        js = await self.client.jetstream()
        self._consumer = await (await js.streams.get(stream)).consumers.get_pull(consumer)
        if not batch:
            self._messages = await self._consumer.consume().__aenter__()

    async def fetch(self, batch: int, count: int) -> bytes:
        data = b""
        while count > 0:
            for msg in await self._consumer.fetch(max_messages=batch, expires=5.0):
                data = msg.payload
                await msg.ack()
                count -= 1
        return data

    async def consume(self, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        async for msg in self._messages:
            data = msg.payload
            if header:
                assert msg.headers[HEADER]
            if ack:
                await msg.ack()
            count -= 1
            if not count:
                break
        return data


class PullRaw(Puller, Raw):
    """A raw socket with acknowledgments encoded beforehand, which counts the starts of messages."""

    _asked = _taken = 0
    _acks: list[bytes]
    _tail = b""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}".encode()
        ack = b"PUB $JS.ACK.%s.%s.1.%%d.%%d.0.0 4\r\n+ACK\r\n"
        self._ack = ack % (stream.encode(), consumer.encode())
        self._acks = [self._ack % (n, n) for n in range(1, int(sys.argv[6]) + 501)]
        self._begin = b"MSG pull." + stream.encode() + b" "
        self._socket.sendall(b"SUB _INBOX.raw.* 1\r\n")

    async def fetch(self, batch: int, count: int) -> bytes:
        return self._pull(batch, 0, count, True)

    async def consume(self, count: int, ack: bool, header: bool) -> bytes:
        return self._pull(self.buffer, self.buffer // 2 - 1, count, ack)

    def _pull(self, most: int, least: int, count: int, ack: bool) -> bytes:
        """Request more when at most `least` messages are due."""
        end = self._taken + count
        while self._taken < end:
            open_ = self._asked - self._taken
            if open_ <= least:
                self._ask(most - open_)
            data = self._tail + self._socket.recv(64 * 1024)
            new = data.count(self._begin)
            cut = len(self._begin) - 1
            self._tail = data[-cut:]
            if ack and new:
                self._socket.sendall(b"".join(self._acks[self._taken : self._taken + new]))
            self._taken += new
        return b""

    def _ask(self, number: int) -> None:
        body = b'{"batch":%d,"expires":5000000000}' % number
        self._socket.sendall(pub(body, self._next + b" _INBOX.raw.1"))
        self._asked += number

    async def flush(self) -> None:
        self._socket.sendall(b"PING\r\n")
        data = self._tail
        while b"PONG\r\n" not in data:
            data = data[-5:] + self._socket.recv(64 * 1024)


# In the order of the tables.
CONTENDERS = {
    **natsproto(Ours, OursBlocking),
    **nats_py(PullNatsPy),
    "nats-core": PullNatsCore,
    "natsrpy uvloop": PullNatsrpy,
    "raw socket": PullRaw,
}
# How each is pulled: fetches of so many or 0, acknowledged or not, whether a header is read.
KINDS = {
    "fetch100": (100, True, False),
    "fetch500": (500, True, False),
    "consume": (0, True, False),
    "none": (0, False, False),
    "unread": (0, True, False),
    "headers": (0, True, True),
}


async def measure(
    peer: Puller, scenario: str, stream: str, consumer: str, count_text: str, size: str
) -> dict[str, float]:
    count = int(count_text)
    ahead = warm_up(int(size))
    peer.buffer = buffer_of(int(size))
    batch, ack, header = KINDS[scenario]

    async def pull(count: int) -> bytes:
        return await (peer.fetch(batch, count) if batch else peer.consume(count, ack, header))

    await peer.bind(stream, consumer, batch)
    await pull(ahead)
    clock = Clock()
    last = await pull(count)
    await peer.flush()  # the acknowledgements are out
    result = clock.stop(count)
    if last:
        # Messages are numbered: a client that took this many, and this one last, has lost and
        # duplicated none.
        result["lost"] = int(last[:8]) + 1 - ahead - count
    return result


if __name__ == "__main__":
    main(CONTENDERS, measure)
