"""The adapters on an event loop: how blocks end, idle loops, forks."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings

import pytest

from natsproto.adapters import asyncio as on_asyncio
from natsproto.adapters.driver import HUGE_READ_SIZE, READ_SIZE
from natsproto.errors import ConnectFailed, ConnectionClosed, InvalidState, NatsError
from natsproto.port import run_sync
from natsproto.testing import free_port
from tests.adapters.runtimes import Runtime
from tests.adapters.test_blocking import in_child


@pytest.mark.parametrize("error", [ValueError, ConnectionClosed, KeyboardInterrupt])
def test_the_error_of_a_block_is_raised_unchanged(runtime, server, error):
    mine = error("mine")

    async def main():
        with pytest.raises(error) as caught:
            async with runtime.connect(server.url) as client:
                raise mine
        assert caught.value is mine
        assert client.state == "CLOSED"

    runtime.run(main)


def test_the_error_of_connect_is_raised_unchanged(runtime):
    async def main():
        with pytest.raises(ConnectFailed):
            async with runtime.connect(f"nats://127.0.0.1:{free_port()}"):
                raise AssertionError("there is no server")

    runtime.run(main)


def test_a_name_that_cannot_be_encoded_for_dns(runtime):
    async def main():
        with pytest.raises(ConnectFailed):
            async with runtime.connect("nats://%s.example:4222" % ("x" * 70), connect_timeout=20):
                raise AssertionError("there is no server")

    begin = time.monotonic()
    runtime.run(main)
    assert time.monotonic() - begin < 10


def test_a_canceled_block_ends_soon(runtime, own_server):
    """This holds even with a frozen server, where nothing can be flushed."""

    async def hang():
        async with runtime.connect(own_server.url) as client:
            await client.publish("a", bytes(100))
            clients.append(client)
            await runtime.sleep(60)

    async def main():
        task = runtime.start(hang)
        while not clients:
            await runtime.sleep(0.01)
        own_server.freeze()
        begin = time.monotonic()
        await task.stop()
        assert time.monotonic() - begin < 1.5
        assert clients[0].state == "CLOSED"

    clients = []
    try:
        runtime.run(main)
    finally:
        own_server.thaw()


def test_a_canceled_block_sends_its_messages(runtime, server):
    async def publish():
        async with runtime.connect(server.url) as client:
            await client.publish("a", b"1")
            begun.append(client)
            await runtime.sleep(60)

    async def main():
        async with runtime.connect(server.url) as watcher:
            sub = await watcher.subscribe("a")
            await watcher.flush()
            task = runtime.start(publish)
            while not begun:
                await runtime.sleep(0.001)
            await task.stop()
            assert (await sub.next(timeout=5)).data == b"1"

    begun = []
    runtime.run(main)


def test_an_idle_client_sleeps(runtime, server, monkeypatch):
    async def main():
        async with runtime.connect(server.url) as client:
            await client.flush()
            turns = []
            port = client.session.port
            real = port.pump
            monkeypatch.setattr(port, "pump", lambda: (turns.append(None), real()))
            await runtime.sleep(0.3)
            assert len(turns) <= 1

    runtime.run(main)


def test_reconnecting_leaks_nothing(runtime, server):
    async def main():
        async with runtime.connect(server.url, name="mover") as client:
            for _ in range(20):
                await client.force_reconnect()
                await client.flush()
            others = [each["name"] for each in server.monitor("/connz")["connections"]]
            assert others.count("mover") == 1

    runtime.run(main)


def test_await_connect(server):
    async def main():
        client = await on_asyncio.connect(server.url)
        await client.flush()
        await client.close()

    asyncio.run(main())


def calls(client, sub):
    """Return every call that could reach the port."""
    return [
        lambda: client.publish("a", b"not ours"),
        lambda: client.publish("a", b"not ours", headers={"K": "v"}),
        lambda: client.subscribe("b"),
        lambda: client.request("a"),
        lambda: client.request_many("a"),
        lambda: client.flush(),
        lambda: client.force_reconnect(),
        lambda: sub.next(timeout=1),
        # These cannot lose anything once the client is closed.
        lambda: client.events.next(timeout=1),
        lambda: client.drain(),
        lambda: client.close(),
    ]


def fork_while(client, sub):
    """Fork a child that tries every call, and then leaves the block of the client."""

    async def leave_block():
        async with client:
            pass

    def child():
        for _ in range(2):
            for call in calls(client, sub)[:-3]:
                with pytest.raises(NatsError, match="before the fork"):
                    run_sync(call())
        run_sync(leave_block())

    in_child(child)


@pytest.mark.rule("D-CONN-32")
@pytest.mark.parametrize("tls", [False, True])
def test_a_fork(runtime, server, tls_server, tls):
    """Calls raise in the child, and the parent is not affected."""
    url, options = (tls_server[0].url, tls_server[1]) if tls else (server.url, {})

    async def main():
        async with runtime.connect(url, **options) as client:
            sub = await client.subscribe("a")
            await client.flush()
            await client.publish("a", b"0")
            fork_while(client, sub)
            for number in range(1, 200):
                await client.publish("a", b"%d" % number)
            await client.flush()
            assert sub.pending == 200
            assert [(await sub.next(5)).data for _ in range(200)] == [b"%d" % n for n in range(200)]
            assert client.stats.connects == 1

    runtime.run(main)


@pytest.mark.rule("D-CONN-33")
def test_after_its_loop_was_closed(server):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of asyncio, for the transport
        use_after_its_loop_was_closed(server)
        gc.collect()


def use_after_its_loop_was_closed(server):
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(connect_to(server))
    sub = loop.run_until_complete(client.subscribe("a"))
    loop.close()

    async def use():
        for _ in range(2):
            for call in calls(client, sub)[:-3]:
                with pytest.raises(ConnectionClosed, match="event loop of this client is closed"):
                    await call()

    asyncio.run(use())


async def connect_to(server):
    return await on_asyncio.connect(server.url)


@pytest.mark.rule("D-CONN-33")
def test_on_another_loop(server):
    async def use(client, sub):
        for call in calls(client, sub):
            with pytest.raises(InvalidState, match="belongs to another event loop"):
                await call()

    async def main():
        async with on_asyncio.connect(server.url) as client:
            sub = await client.subscribe("a")
            await client.flush()
            sent = client.stats.out_msgs
            await asyncio.get_running_loop().run_in_executor(
                None, lambda: asyncio.run(use(client, sub))
            )
            assert client.stats.out_msgs == sent
            await client.publish("a", b"ours")
            await client.flush()
            assert (await sub.next(5)).data == b"ours"
            assert sub.pending == 0
            assert len(client.session.connection.subscriptions.by_sid) == 1

    asyncio.run(main())


def test_the_adapter_of_trio_on_asyncio():
    from natsproto.adapters.trio import connect

    async def main():
        async with connect():
            pass

    with pytest.raises(InvalidState, match="must be called in a trio task"):
        asyncio.run(main())


def test_a_timer_of_trio_that_is_moved_forward(server):
    """The first deadline is that of a PING, minutes away; a timeout is earlier."""
    trio = pytest.importorskip("trio")
    from natsproto.adapters.trio import connect

    async def main():
        async with connect(server.url) as client:
            sub = await client.subscribe("a")
            with trio.fail_after(5), pytest.raises(Exception, match="in time"):
                await sub.next(timeout=0.05)

    trio.run(main)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_buffer_is_large_only_while_large_messages_arrive(loop, server):
    """A connection that is idle again keeps no more than before."""
    kept = []

    async def main():
        async with (
            on_asyncio.connect(server.url) as client,
            on_asyncio.connect(server.url) as other,
        ):
            port = client.session.port
            assert isinstance(port, on_asyncio.AsyncioPort)
            sub = await client.subscribe("a", max_msgs=10_000, max_bytes=1 << 28)
            await client.flush()
            assert buffer_size(port) == READ_SIZE
            for _ in range(200):
                await other.publish("a", bytes(16_384))
            for _ in range(200):
                await sub.next(10.0)
                kept.append(buffer_size(port))
            await client.flush()
            await client.flush()
            assert buffer_size(port) == READ_SIZE

    Runtime(loop).run(main)
    assert HUGE_READ_SIZE in kept


def buffer_size(port: on_asyncio.AsyncioPort) -> int:
    assert port._protocol is not None
    return len(port._protocol._buffer)


class Recorder:
    """A transport that keeps a list of the writes."""

    def __init__(self, transport) -> None:
        self._transport = transport
        self.writes: list[bytes] = []

    def write(self, data) -> None:
        self.writes.append(bytes(data))
        self._transport.write(data)

    def __getattr__(self, name):
        return getattr(self._transport, name)


@pytest.mark.parametrize("within_task", [False, True])
@pytest.mark.parametrize("count", [1, 20])
def test_responses_to_the_messages_of_a_read_are_one_write(server, count, within_task):
    """Sent by the callers that the read has woken; that to a single message is sent at once."""

    async def main():
        async with on_asyncio.connect(server.url) as client:
            subscription = await client.subscribe("a")
            await client.flush()
            protocol = client.session.port._protocol
            recorder = protocol.transport = Recorder(protocol.transport)
            taking = asyncio.ensure_future(take(client, subscription, recorder))
            await asyncio.sleep(0)
            data = b"MSG a 1 1\r\nx\r\n" * count
            if within_task:
                protocol.receive(data)
            else:
                asyncio.get_running_loop().call_soon(protocol.receive, data)
            assert await taking == (1 if count == 1 else 0)
            await asyncio.sleep(0)
            assert [data.count(b"PUB b ") for data in recorder.writes] == [count]

    async def take(client, subscription, recorder):
        for _ in range(count):
            await subscription.next()
            await client.publish("b")
        return len(recorder.writes)

    asyncio.run(main())


class Takers:
    """Tasks that each wait for a message of a subscription, and note when they continue."""

    def __init__(self, client) -> None:
        self.protocol = client.session.port._protocol
        self.client = client
        self.noted: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, *works) -> None:
        for sid, work in enumerate(works, 1):
            sub = await self.client.subscribe("a%d" % sid)
            self.tasks.append(asyncio.ensure_future(self._take("a%d" % sid, sub, work)))
        await asyncio.sleep(0)

    async def _take(self, name, sub, work) -> None:
        await sub.next()
        self.noted.append(name)
        work()

    def receive(self) -> None:
        """Report a read with a message for each of them."""
        parts = [b"MSG a%d %d 0\r\n\r\n" % (sid, sid) for sid in range(1, len(self.tasks) + 1)]
        self.protocol.receive(b"".join(parts))
        self.noted.append("end of the read")


def nothing() -> None:
    pass


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_callers_that_a_read_has_woken_run_within_its_callback(server, loop):
    async def main():
        async with on_asyncio.connect(server.url) as client:
            takers = Takers(client)
            await takers.start(nothing, nothing)
            asyncio.get_running_loop().call_soon(takers.receive)
            await asyncio.gather(*takers.tasks)
            assert takers.noted == ["a1", "a2", "end of the read"]

    Runtime(loop).run(main)


def test_a_task_that_reports_a_read_is_not_interrupted(server):
    async def main():
        async with on_asyncio.connect(server.url) as client:
            takers = Takers(client)
            await takers.start(nothing, nothing)
            takers.receive()
            await asyncio.gather(*takers.tasks)
            assert takers.noted == ["end of the read", "a1", "a2"]

    asyncio.run(main())


def test_callers_that_are_woken_at_two_times_in_a_read(server):
    """A pump may run within another one, as when a logging handler publishes."""

    async def main():
        async with on_asyncio.connect(server.url) as client:
            takers = Takers(client)
            await takers.start(nothing, nothing)
            port = client.session.port
            wake = port.wake

            def wake_one_at_a_time(waiters):
                for waiter in waiters:
                    wake([waiter])

            port.wake = wake_one_at_a_time
            asyncio.get_running_loop().call_soon(takers.receive)
            await asyncio.wait_for(asyncio.gather(*takers.tasks), 10)
            assert takers.noted == ["a1", "a2", "end of the read"]

    asyncio.run(main())


@pytest.mark.parametrize("within_task", [False, True])
def test_a_caller_that_is_canceled_after_it_was_woken(server, within_task):
    """By another one that the same read has woken; its message stays in the queue."""

    async def main():
        async with on_asyncio.connect(server.url) as client:
            takers = Takers(client)
            await takers.start(lambda: takers.tasks[1].cancel("mine"), nothing)
            if within_task:
                takers.receive()
            else:
                asyncio.get_running_loop().call_soon(takers.receive)
            await takers.tasks[0]
            with pytest.raises(asyncio.CancelledError, match="mine"):
                await takers.tasks[1]
            assert "a2" not in takers.noted
            mailbox = client.session.connection.subscriptions.by_sid[2]
            assert (mailbox.pending(), mailbox.waiters) == (1, [])

    asyncio.run(main())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_woken_caller_that_ends_the_loop(server, loop, error):
    """The others that the same read has woken have run by then."""
    tasks = []

    async def main():
        async with on_asyncio.connect(server.url) as client:
            subs = [await client.subscribe("ends") for _ in range(2)]
            await client.flush()
            for sub, ends in zip(subs, [True, False], strict=True):
                tasks.append(asyncio.ensure_future(take(sub, ends)))
            await asyncio.sleep(0)
            await client.publish("ends")
            await asyncio.sleep(30)

    async def take(sub, ends):
        await sub.next()
        if ends:
            raise error("mine")

    run = asyncio.run if loop == "asyncio" else pytest.importorskip("uvloop").run
    with pytest.raises(error, match="mine"):
        run(main())
    assert isinstance(tasks[0].exception(), error)
    assert tasks[1].result() is None
