"""One client that subscribes to a push consumer; push.py starts it.

    python bench/_push.py CLIENT SCENARIO URL COUNT AHEAD CONSUMER

The arguments and the result are described in _client.py. The consumer of the stream WARM has AHEAD
messages, the one of the stream PUSH has COUNT. The scenario is `iterator` or `callback`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from _client import Clock, main
from _contenders import Contender, natsproto
from _peers import NatsPy, nats_py


class Pushed(Contender):
    """A client with push consumers."""

    async def iterator(self, stream: str, consumer: str, count: int) -> bytes:
        """Take and acknowledge `count` messages one by one; return the last payload."""
        raise NotImplementedError

    async def callback(self, stream: str, consumer: str, count: int) -> bytes:
        """Do the same in a callback, if the library has them."""
        return await self.iterator(stream, consumer, count)


class Ours(Pushed):
    async def iterator(self, stream: str, consumer: str, count: int) -> bytes:
        from jetstream import JetStream

        data = b""
        subscription = await JetStream(self.client).subscribe(
            stream=stream,
            durable=consumer,
            bind=True,
            max_pending_messages=0,
            max_pending_bytes=0,
        )
        async with subscription as messages:
            async for msg in messages:
                data = msg.data
                await msg.ack()
                count -= 1
                if not count:
                    break
        return data


class OursBlocking(Pushed):
    async def iterator(self, stream: str, consumer: str, count: int) -> bytes:
        from jetstream.blocking import JetStream

        data = b""
        subscription = JetStream(self.client).subscribe(
            stream=stream,
            durable=consumer,
            bind=True,
            max_pending_messages=0,
            max_pending_bytes=0,
        )
        with subscription as messages, self.client.corked():
            for msg in messages:
                data = msg.data
                msg.ack()
                count -= 1
                if not count:
                    break
        return data


class PushNatsPy(Pushed, NatsPy):
    async def iterator(self, stream: str, consumer: str, count: int) -> bytes:
        data = b""
        subscription = await self._bind(stream, consumer, None)
        async for msg in subscription.messages:
            data = msg.data
            await msg.ack()
            count -= 1
            if not count:
                break
        await subscription.unsubscribe()
        return data

    async def callback(self, stream: str, consumer: str, count: int) -> bytes:
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def callback(msg: Any) -> None:
            nonlocal count
            await msg.ack()
            count -= 1
            if not count:
                done.set_result(msg.data)

        subscription = await self._bind(stream, consumer, callback)
        data = await done
        await subscription.unsubscribe()
        return data

    async def _bind(self, stream: str, consumer: str, callback: Any) -> Any:
        js = self.client.jetstream()
        info = await js.consumer_info(stream, consumer)
        return await js.subscribe_bind(
            stream, info.config, consumer, cb=callback, manual_ack=True, **self.limits
        )


# In the order of the tables. nats-core has no push consumers.
CONTENDERS = {**natsproto(Ours, OursBlocking), **nats_py(PushNatsPy)}


async def measure(
    peer: Any, scenario: str, count_text: str, ahead: str, consumer: str
) -> dict[str, float]:
    count = int(count_text)
    take = getattr(peer, scenario)
    await take("WARM", consumer, int(ahead))
    clock = Clock()
    last = await take("PUSH", consumer, count)
    await peer.flush()  # the acknowledgments are out
    result = clock.stop(count)
    result["lost"] = int(last[:8]) + 1 - count
    return result


if __name__ == "__main__":
    main(CONTENDERS, measure)
