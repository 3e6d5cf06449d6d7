"""The context of a check: clients, servers, and a separate subject."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from natsproto.errors import NatsError

from .certificates import Certificates
from .cluster import Cluster
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.events import Event
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.subscription import Subscription

    from .runner import Connect, Runner, Task

Result = TypeVar("Result")
AnEvent = TypeVar("AnEvent", bound="Event")
AnError = TypeVar("AnError", bound=NatsError)

#: How long a check waits for something that must happen. It happens much sooner, or never.
WAIT = 12.0
#: Well below WAIT: a call that has no reason to wait returns within this time.
SOON = 1.5

_numbers = itertools.count(1)


class Servers:
    """The servers that checks share: one for each configuration, started on first use."""

    def __init__(self, binary: str | None = None) -> None:
        self.binary = binary
        self.directory: Path = Path(tempfile.mkdtemp(prefix="nats-checks-"))
        self._servers: dict[str, Server] = {}
        self._cluster: Cluster | None = None

    @property
    def version(self) -> tuple[int, ...]:
        """Return the version of the servers, as in (2, 11, 0)."""
        return self.get({}).version

    @functools.cached_property
    def certificates(self) -> Certificates:
        """Return the authority that signs the certificates of this run."""
        return Certificates(self.directory)

    def get(self, config: Mapping[str, Any]) -> Server:
        """Return the server with this configuration; leave it as you found it."""
        key = json.dumps(config, sort_keys=True)
        if key not in self._servers:
            self._servers[key] = Server(config=config, binary=self.binary)
        return self._servers[key]

    def cluster(self) -> Cluster:
        """Return the cluster of three with JetStream; leave it complete and empty."""
        if self._cluster is None:
            self._cluster = Cluster(3, binary=self.binary)
        return self._cluster

    def stop(self) -> None:
        """Stop all servers and remove their files."""
        for server in self._servers.values():
            server.stop()
        if self._cluster is not None:
            self._cluster.stop()
        self._servers.clear()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Context:
    """The tools of one check. Everything that it opens or starts is closed when it ends."""

    def __init__(self, connect: Connect, runner: Runner, servers: Servers) -> None:
        #: A subject that no other check uses, nor any subject below it.
        self.subject: str = f"check.{next(_numbers)}"
        self._connect = connect
        self._runner = runner
        self._servers = servers
        self._clients = AsyncExitStack()
        self._own = ExitStack()
        self._tasks: list[Task[Any]] = []
        self._deferred: list[Callable[[], Coroutine[Any, Any, object]]] = []

    @property
    def server(self) -> Server:
        """Return a server that other checks use, too: do not stop it."""
        return self._servers.get({})

    @property
    def certificates(self) -> Certificates:
        """Return the authority that signs the certificates of this run."""
        return self._servers.certificates

    def path(self, text: str) -> str:
        """Write the text to a new file and return its path."""
        path = self._servers.directory / f"file-{next(_numbers)}"
        path.write_text(text)
        return str(path)

    def shared_server(self, **config: Any) -> Server:
        """Return a server with this configuration that other checks use, too."""
        return self._servers.get(config)

    def own_server(self, **config: Any) -> Server:
        """Start a server for this check alone, which may stop it."""
        server = Server(config=config, binary=self._servers.binary)
        return self._own.enter_context(server)

    def own_cluster(self, n: int = 3, *, jetstream: bool = False, **config: Any) -> Cluster:
        """Start a cluster for this check alone, which may kill its members."""
        cluster = Cluster(n, jetstream=jetstream, config=config, binary=self._servers.binary)
        return self._own.enter_context(cluster)

    def shared_cluster(self) -> Cluster:
        """Return a cluster with JetStream that other checks use, too.

        Its members must keep running, and streams must be deleted: each one is a Raft group that
        costs all members CPU time. A check that does more harm needs a cluster of its own.
        """
        return self._servers.cluster()

    def defer(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Await `work()` when the check ends, while its clients are still connected."""
        self._deferred.append(work)

    def enter(self, resource: Any) -> Any:
        """Enter a context that ends with the check, after the clients are closed."""
        return self._own.enter_context(resource)

    async def connect(
        self, servers: ServersLike | Server, **options: Unpack[OptionsDict]
    ) -> Client:
        """Connect a client that reconnects quickly. Only the check may call this, not its tasks."""
        fast: OptionsDict = {"reconnect_wait": 0.02, "reconnect_wait_max": 0.1}
        fast.update(options)
        where = servers.url if isinstance(servers, Server) else servers
        return await self._clients.enter_async_context(
            self._runner.open(self._connect, where, fast)
        )

    async def client(self, **options: Unpack[OptionsDict]) -> Client:
        """Connect a client to the server that all checks share."""
        return await self.connect(self.server, **options)

    async def pair(self, server: Server | None = None) -> tuple[Client, Client]:
        """Connect two clients to the same server."""
        server = server or self.server
        return await self.connect(server), await self.connect(server)

    def start(self, work: Callable[..., Coroutine[Any, Any, Result]], *args: Any) -> Task[Result]:
        """Run `work(*args)` next to the check, in a task or a thread. Its waits must be bounded.

        Until it ends, the check must not use the clients that it uses, unless the check is
        declared with `shares`.
        """
        task = self._runner.start(lambda: work(*args))
        self._tasks.append(task)
        return task

    async def close(self) -> None:
        """Stop the tasks, run the deferred work, and close the clients and servers of the check."""
        try:
            for task in self._tasks:
                await task.stop()
            try:
                for work in self._deferred:
                    await work()
            finally:
                await self._clients.aclose()
        finally:
            self._own.close()


async def next_event(client: Client, kind: type[AnEvent], timeout: float = WAIT) -> AnEvent:
    """Return the next event of this kind and discard those before it."""
    deadline = time.monotonic() + timeout
    while True:
        event = await client.events.next(max(0.0, deadline - time.monotonic()))
        if isinstance(event, kind):
            return event


async def take(sub: Subscription, count: int) -> list[bytes]:
    """Return the payloads of the next messages."""
    return [(await sub.next(WAIT)).data for _ in range(count)]


async def arrived(sender: Client, receiver: Client) -> None:
    """Wait until everything that the sender has published has reached the receiver."""
    await sender.flush(WAIT)
    await receiver.flush(WAIT)


async def answer(client: Client, sub: Subscription, count: int) -> None:
    """Answer this many requests with their own payload."""
    for _ in range(count):
        msg = await sub.next(WAIT)
        await client.respond(msg, msg.data, headers=msg.headers)
    await client.flush(WAIT)


class Caught(list[AnError]):
    """The error that `raises` has caught."""

    @property
    def error(self) -> AnError:
        """Return the error."""
        return self[0]


@contextmanager
def raises(kind: type[AnError], within: float = WAIT) -> Generator[Caught[AnError], None, None]:
    """Assert that the block raises this kind of error within this time."""
    caught: Caught[AnError] = Caught()
    begin = time.monotonic()
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"{kind.__name__} was not raised"
    took = time.monotonic() - begin
    assert took < within, f"{kind.__name__} came after {took:.2f} s, not within {within} s"
