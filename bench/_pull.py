"""One client pulling from a stream, in a process of its own: pull.py starts it.

    python bench/_pull.py CLIENT SCENARIO URL STREAM CONSUMER COUNT

Its last line is the result in JSON, or `absent` if the library is not installed. Each client is
used in the form that its own users write; loops that are measured call the library directly. All of
them read the payload, and one header where there are some.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import _contenders as core
from _measure import Clock, say

BUFFER = 500  # of consume
HEADER = "Order-Id"
WARM_UP = 500


class Puller(core.Contender):
    """`pull` takes exactly so many messages and returns the last payload.

    `batch`: by fetches of that many; 0: as they come, by what the library has for that.
    """

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        raise NotImplementedError

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        raise NotImplementedError


class Ours(Puller):
    """natsproto's JetStream on an event loop."""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from jetstream import JetStream

        self._consumer = await JetStream(self.client).consumer(stream, consumer)
        if not batch:
            self._messages = self._consumer.consume(max_messages=BUFFER)

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        if batch:
            taken = 0
            while taken < count:
                for msg in await self._consumer.fetch(batch, expires=5.0):
                    data = msg.data
                    await msg.ack()
                    taken += 1
            return data
        async for msg in self._messages:
            data = msg.data
            if header:
                assert msg.headers is not None
                assert msg.headers[HEADER]
            if ack:
                await msg.ack()
            count -= 1
            if not count:
                break
        return data


class OnAsyncio(Ours, core.OnAsyncio):
    pass


class OnUvloop(Ours, core.OnUvloop):
    pass


class OnTrio(Ours, core.OnTrio):
    pass


class Blocking(Puller, core.Blocking):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from jetstream.blocking import JetStream

        self._consumer = JetStream(self.client).consumer(stream, consumer)
        if not batch:
            self._messages = self._consumer.consume(max_messages=BUFFER)

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        with self.client.corked():  # else each acknowledgement is a system call
            if batch:
                taken = 0
                while taken < count:
                    for msg in self._consumer.fetch(batch, expires=5.0):
                        data = msg.data
                        msg.ack()
                        taken += 1
                return data
            for msg in self._messages:
                data = msg.data
                if header:
                    assert msg.headers is not None
                    assert msg.headers[HEADER]
                if ack:
                    msg.ack()
                count -= 1
                if not count:
                    break
        return data


class Threads(Blocking, core.Threads):
    pass


class NatsPy(Puller, core.NatsPy):
    """It has nothing for a stream of messages: its users fetch in a loop."""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        self._sub = await self.client.jetstream().pull_subscribe_bind(consumer, stream)

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        while count:
            for msg in await self._sub.fetch(min(batch or BUFFER, count), timeout=5):
                data = msg.data
                if header:
                    assert msg.headers[HEADER]
                if ack:
                    await msg.ack()
                count -= 1
        return data


class NatsPyUvloop(NatsPy):
    run = staticmethod(core.on_uvloop)


class NatsJetStream(Puller, core.NatsCore):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        from nats.jetstream import new

        js = new(self.client)
        self._consumer: Any = await js.get_consumer(stream, consumer)
        if not batch:
            self._messages = await self._consumer.messages(max_messages=BUFFER)

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        while batch and count:
            async for msg in await self._consumer.fetch(max_messages=batch, max_wait=5.0):
                data = msg.data
                await msg.ack()
                count -= 1
        if batch:
            return data
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


class Natsrpy(Puller, core.Natsrpy):
    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        js = await self.client.jetstream()
        found = await js.streams.get(stream)
        self._consumer: Any = await found.consumers.get_pull(consumer)
        if not batch:
            self._messages = await self._consumer.consume().__aenter__()

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        data = b""
        while batch and count:
            for msg in await self._consumer.fetch(max_messages=batch, expires=5.0):
                data = msg.payload
                await msg.ack()
                count -= 1
        if batch:
            return data
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


class Raw(Puller, core.Raw):
    """Acknowledgements encoded beforehand; of the messages only the beginnings are counted."""

    _asked = _taken = 0
    _acks: list[bytes]
    _tail = b""

    async def bind(self, stream: str, consumer: str, batch: int) -> None:
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}".encode()
        ack = b"PUB $JS.ACK.%s.%s.1.%%d.%%d.0.0 4\r\n+ACK\r\n"
        self._ack = ack % (stream.encode(), consumer.encode())
        self._acks = [self._ack % (n, n) for n in range(1, int(sys.argv[6]) + WARM_UP + 1)]
        self._begin = b"MSG pull." + stream.encode() + b" "
        self._socket.sendall(b"SUB _INBOX.raw.* 1\r\n")

    async def pull(self, batch: int, count: int, ack: bool, header: bool) -> bytes:
        end = self._taken + count
        most = batch or BUFFER
        while self._taken < end:
            open_ = self._asked - self._taken
            if open_ == 0 or (not batch and open_ < most // 2):
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
        self._socket.sendall(core.pub(body, self._next + b" _INBOX.raw.1"))
        self._asked += number

    async def flush(self) -> None:
        self._socket.sendall(b"PING\r\n")
        data = self._tail
        while b"PONG\r\n" not in data:
            data = data[-5:] + self._socket.recv(64 * 1024)


# In the order of the tables; the number is as in _contenders.py.
CONTENDERS: dict[str, tuple[type[Puller], int]] = {
    "natsproto asyncio": (OnAsyncio, 4),
    "natsproto uvloop": (OnUvloop, 4),
    "natsproto trio": (OnTrio, 4),
    "natsproto blocking": (Blocking, 4),
    "natsproto threads": (Threads, 4),
    "nats-py": (NatsPy, 1),
    "nats-py uvloop": (NatsPyUvloop, 1),
    "nats-jetstream": (NatsJetStream, 1),
    "natsrpy uvloop": (Natsrpy, 1),
    "raw socket": (Raw, 4),
}
# How each is pulled: fetches of so many or 0, acknowledged or not, whether there are headers.
KINDS = {
    "fetch100": (100, True, False),
    "fetch500": (500, True, False),
    "consume": (0, True, False),
    "none": (0, False, False),
    "headers": (0, True, True),
}


async def main(peer: Puller) -> None:
    _, _, scenario, url, stream, consumer, count = sys.argv
    try:
        await peer.open(url)
    except ImportError:
        say("absent")
        return
    batch, ack, header = KINDS[scenario]
    await peer.bind(stream, consumer, batch)
    await peer.pull(batch, WARM_UP, ack, header)
    clock = Clock()
    last = await peer.pull(batch, int(count), ack, header)
    await peer.flush()  # the acknowledgements are out
    result: dict[str, Any] = clock.stop(int(count))
    if last:
        # Messages are numbered: whoever took so many, and this one last, has lost and doubled none.
        result["lost"] = int(last[:8]) + 1 - WARM_UP - int(count)
    say(json.dumps(result))
    await peer.close()


if __name__ == "__main__":
    contender = CONTENDERS[sys.argv[1]][0]()
    try:
        contender.run(main(contender))
    except ImportError:  # of the event loop
        say("absent")
