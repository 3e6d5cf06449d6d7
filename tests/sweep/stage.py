"""The stage of a call: a client, another one that looks on, and what they find on the server."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream.testing.blocking_view import groups_of, jetstream_of
from jetstream.testing.services import service_of, services_of
from natsproto.errors import NatsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from jetstream import (
        ConsumerGroups,
        JetStream,
        KeyValue,
        ObjectStore,
        Service,
        Services,
        Stream,
    )
    from natsproto.client import Client
    from natsproto.testing.runner import Task

# Longer than any test: a consumer that is left does not go away by itself.
FOR_GOOD = 300.0
CHUNK = 1000

STREAM: Any = {
    "name": "S",
    "subjects": ["s.>"],
    "storage": "memory",
    "allow_direct": True,
    "allow_atomic": True,
    "allow_batched": True,
}
COUNTERS: Any = {
    "name": "COUNTERS",
    "subjects": ["count.>"],
    "storage": "memory",
    "allow_direct": True,
    "allow_msg_counter": True,
}
SCHEDULES: Any = {
    "name": "SCHEDULES",
    "subjects": ["later.>", "now.>"],
    "storage": "memory",
    "allow_msg_schedules": True,
    "allow_msg_ttl": True,
}


class Stage:
    """What a call works with. Calling it runs a coroutine in the way of the sweep.

    client, js   swept
    other        JetStream of another client, which is never swept
    timeout      for everything that takes one
    """

    def __init__(self, client: Client, other: Client, folder: Path, timeout: float) -> None:
        self.client = client
        self.folder = folder
        self.timeout = timeout
        #: Part of the names of what calls create, where several of them run at once.
        self.tag = ""
        self.js: JetStream = jetstream_of(client, timeout=timeout)
        self.friend = other
        self.other: JetStream = jetstream_of(other)
        self.groups: ConsumerGroups = groups_of(self.js)
        self.friendly_groups: ConsumerGroups = groups_of(self.other)
        self.services: Services = services_of(client, timeout=timeout)
        #: Calls that remove what a canceled creation may have left, on purpose.
        self.cleanups: list[Callable[[], Awaitable[object]]] = []
        self.stream: Stream
        self.kv: KeyValue
        self.store: ObjectStore

    async def __call__(self, work: Awaitable[Any]) -> Any:
        """Run the coroutine as the sweep wants it."""
        return await work

    def service(self, **options: Any) -> Service:
        """Return a service of the swept client."""
        return service_of(self.client, name="sweep", version="1.0.0", **options)

    async def settled(self) -> None:
        """Wait until the client has finished what a canceled call left it to do."""
        raise NotImplementedError

    def friendly_service(self, **options: Any) -> Service:
        """Return a service of the other client."""
        return service_of(self.friend, name="sweep", version="1.0.0", **options)

    def start(self, work: Callable[[], Any]) -> Task[Any]:
        """Run something next to the call."""
        raise NotImplementedError

    async def new_client(self, **options: Any) -> Client:
        """Return a further client, to be closed."""
        raise NotImplementedError

    def opening(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        """Return what connects a further client, to be used in `async with`."""
        raise NotImplementedError

    async def publish(self, count: int = 3) -> None:
        """Store messages in the stream; the swept client does not do it."""
        for number in range(count):
            await self.other.publish("s.a", b"%d" % number)

    def clean(self, *calls: Callable[[], Awaitable[object]]) -> None:
        """Make these calls at the end, and again until the server is as it was."""
        self.cleanups += calls

    async def clean_up(self) -> None:
        """Make the calls of `clean`; what they remove may be gone already."""
        for each in self.cleanups:
            with suppress(NatsError):
                await each()

    async def open(self) -> None:
        """Look up what `furnish` created, with the swept client."""
        self.stream = await self.js.stream("S")
        self.kv = await self.js.key_value("k")
        self.store = await self.js.object_store("o")


async def furnish(js: JetStream) -> None:
    """Create the streams, consumers and buckets that calls use and leave as they are."""
    stream = await js.create_stream(STREAM)
    await js.create_stream(COUNTERS)
    await js.create_stream(SCHEDULES)
    await js.create_stream(name="FILED", subjects=["filed"])
    await js.publish("filed", bytes(100_000))
    await js.add_to_counter("count.a", 1)
    for name in ("a", "b", "c"):
        await js.publish(f"s.{name}", b"first")
    await stream.create_consumer(durable_name="c", ack_wait=FOR_GOOD)
    await stream.create_consumer(
        durable_name="pinned", priority_groups=["g"], priority_policy="pinned_client"
    )
    kv = await js.create_key_value(
        bucket="k", storage="memory", history=3, limit_marker_ttl=FOR_GOOD
    )
    for key in ("a", "b"):
        await kv.put(key, b"1")
    store = await js.create_object_store(bucket="o", storage="memory")
    await store.put("a", bytes(3 * CHUNK), chunk_size=CHUNK)
