"""The fourth pane: a client of a real server, over the WebSocket of the page."""

from __future__ import annotations

import asyncio
import json

import js

from jetstream import JetStream
from jetstream.tools.explore.host import RNG, WebSocketTransport
from natsproto.adapters.micropython import connect
from natsproto.errors import NatsError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.client import Client

_STREAM = "EXPLORER"
_SUBJECT = "explorer.>"


def _report(kind: str, text: str, **more: Any) -> None:
    row: dict[str, Any] = {"kind": kind, "text": text}
    row.update(more)
    js.host_report(json.dumps(row))


class Live:
    """One client, which publishes to a stream in memory and consumes from it."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self._messages: Any = None
        self._tasks: list[Any] = []
        self._count = 0

    async def connect(self, url: str) -> None:
        """Connect, create the stream, and begin to consume; reports show the progress."""
        await self.close()
        scheme, _, rest = url.partition("://")
        if scheme not in ("ws", "wss") or not rest:
            _report("error", "the URL of a server's WebSocket begins with ws:// or wss://")
            return
        WebSocketTransport.scheme = scheme
        if ":" not in rest:
            rest += ":443" if scheme == "wss" else ":80"
        try:
            self.client = await connect(
                "nats://" + rest,
                transport=WebSocketTransport,
                rng=RNG,
                ignore_discovered=True,
                reconnect_wait=0.5,
                name="explorer",
            )
            self._tasks = [asyncio.create_task(self._watch(self.client))]
            _report("state", self.client.state)
            js_api = JetStream(self.client)
            stream = await js_api.create_or_update_stream(
                name=_STREAM, subjects=[_SUBJECT], storage="memory", max_msgs=1000
            )
            consumer = await stream.create_consumer(inactive_threshold=60.0, deliver_policy="new")
            self._tasks.append(asyncio.create_task(self._consume(consumer)))
        except NatsError as error:
            _report("error", "%s: %s" % (type(error).__name__, error))

    async def _watch(self, client: Client) -> None:
        async for event in client.events:
            _report("event", "%s: %s" % (type(event).__name__, event.text))
            _report("state", client.state)

    async def _consume(self, consumer: Any) -> None:
        try:
            async with consumer.consume(max_messages=20, heartbeat=2.0, expires=10.0) as messages:
                self._messages = messages
                async for msg in messages:
                    seq = msg.metadata.stream_seq
                    _report("message", "%s: %s" % (msg.subject, msg.data.decode()), seq=seq)
                    await msg.ack()
        except NatsError as error:
            _report("error", "%s: %s" % (type(error).__name__, error))

    async def publish(self, text: str) -> None:
        """Publish a message with an acknowledgment."""
        if self.client is None:
            _report("error", "connect first")
            return
        self._count += 1
        try:
            ack = await JetStream(self.client).publish(
                "explorer.%d" % self._count, text.encode(), msg_id="explorer-%d" % self._count
            )
            _report("ack", "stored as message %d" % ack.seq, seq=ack.seq)
        except NatsError as error:
            _report("error", "%s: %s" % (type(error).__name__, error))

    def cut(self) -> None:
        """Break the connection, as a network does."""
        for transport in list(WebSocketTransport.opened):
            transport.close()

    def snapshot(self) -> str:
        """Return why the consumer waits, in one sentence."""
        return "" if self._messages is None else self._messages.snapshot().reason

    async def close(self) -> None:
        """Close the client."""
        client, self.client, self._messages = self.client, None, None
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        if client is not None:
            await client.close()
            _report("state", client.state)


live: Live = Live()
