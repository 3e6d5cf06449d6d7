"""trio: a task that waits alone reads the socket itself."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from natsproto.adapters import _trio_stream
from natsproto.adapters.trio import TrioPort, connect
from natsproto.errors import ConnectionClosed, InvalidState, TimeoutExpired
from natsproto.events import Disconnected


@pytest.fixture
def long_loans(monkeypatch):
    """Keep a loan from ending on a machine that is busy."""
    monkeypatch.setattr(_trio_stream, "_LOAN", 20.0)


@asynccontextmanager
async def lent(server, **options):
    """Yield a client whose reader has lent the socket, the stream, and a client that responds."""
    async with connect(server.url) as other, connect(server.url, **options) as client:
        sub = await other.subscribe("a")
        await other.flush()

        async def respond():
            async for msg in sub:
                await other.respond(msg, msg.data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(respond)
            stream = await lend(client)
            yield client, stream, other
            await sub.unsubscribe()


async def lend(client):
    """Make requests until the reader has lent the socket."""
    with trio.fail_after(20):
        while not client.session.port._stream.lent:
            await client.request("a", timeout=20)
    return client.session.port._stream


async def until(condition):
    """Wait until the condition holds."""
    with trio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - nothing reports it
            await trio.sleep(0.001)


def run(main, *args):
    """Run a test, for 30 seconds at most."""

    async def bounded():
        with trio.fail_after(30):
            await main(*args)

    trio.run(bounded)


@pytest.mark.usefixtures("long_loans")
def test_a_lone_task_reads_its_responses(server, monkeypatch):
    readers = []
    on_data = TrioPort.on_data

    def noted(port, data):
        readers.append((port, trio.lowlevel.current_task()))
        on_data(port, data)

    async def main():
        async with lent(server) as (client, _, _):
            monkeypatch.setattr(TrioPort, "on_data", noted)
            del readers[:]
            await client.request("a", timeout=20)
            own = [task for port, task in readers if port is client.session.port]
            assert own == [trio.lowlevel.current_task()]

    run(main)


@pytest.mark.usefixtures("long_loans")
def test_others_that_wait_get_their_messages(server):
    """From the task that reads, and then from the reader."""

    async def ask(client, done):
        await client.request("silent", timeout=20)
        done.set()

    async def main():
        async with lent(server) as (client, stream, other):
            silent = await other.subscribe("silent")
            await other.flush()
            sub = await client.subscribe("b")
            await client.flush()
            await lend(client)
            done = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, client, done)
                msg = await silent.next(timeout=20)
                assert stream._borrower
                await other.publish("b", b"1")
                assert (await sub.next(timeout=20)).data == b"1"
                nursery.start_soon(other.publish, "b", b"2")
                nursery.start_soon(other.respond, msg)
                assert (await sub.next(timeout=20)).data == b"2"
                await done.wait()
            assert (await client.request("a", b"3", timeout=20)).data == b"3"

    run(main)


@pytest.mark.usefixtures("long_loans")
def test_a_task_that_is_canceled_while_it_reads(server):
    async def main():
        async with lent(server) as (client, stream, other):
            silent = await other.subscribe("silent")
            await other.flush()
            await lend(client)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.request, "silent")
                    await silent.next(timeout=20)
                    assert stream._borrower
                    scope.cancel()
            assert scope.cancelled_caught
            assert not stream._borrower
            assert (await client.request("a", b"1", timeout=20)).data == b"1"

    run(main)


@pytest.mark.usefixtures("long_loans")
@pytest.mark.rule("REQ-4")
def test_a_timeout_ends_a_read(server):
    async def main():
        async with lent(server) as (client, _, other):
            await other.subscribe("silent")
            await other.flush()
            start = time.monotonic()
            for _ in range(3):
                await lend(client)
                with pytest.raises(TimeoutExpired):
                    await client.request("silent", timeout=0.05)
            assert time.monotonic() - start < 10
            assert (await client.request("a", b"1", timeout=20)).data == b"1"

    run(main)


def test_a_loan_ends_when_it_is_not_used(server):
    async def main():
        async with lent(server) as (client, stream, _):
            await until(lambda: not stream.lent)
            assert stream._lender is None
            assert (await client.request("a", b"1", timeout=20)).data == b"1"

    run(main)


def test_a_task_that_waits_for_long_gives_the_socket_back(server):
    """Until then nothing wakes the reader: no timer runs while a subscription is idle."""

    async def main():
        async with lent(server) as (client, stream, other):
            sub = await client.subscribe("b")
            await client.flush()
            await lend(client)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sub.next)
                await until(lambda: stream._asked)
                assert stream._borrower
                await other.publish("b")
            assert not stream.lent
            assert (await client.request("a", b"1", timeout=20)).data == b"1"

    run(main)


def test_a_loan_that_ends_in_the_turn_in_which_a_read_is_interrupted(server):
    """The next task that waits must not read until the interrupted one has returned."""
    clock = trio.testing.MockClock()

    async def main():
        async with lent(server) as (client, stream, _):
            for _ in range(20):  # the order of the tasks of a turn is random
                sub = await client.subscribe("b")
                await client.flush()
                await lend(client)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(read, sub)
                    while not stream._borrower:
                        await trio.lowlevel.checkpoint()
                    await sub.unsubscribe()
                    clock.jump(_trio_stream._LOAN)
                    await trio.lowlevel.checkpoint()
                    assert (await client.request("a", b"1")).data == b"1"

    async def read(sub):
        with pytest.raises(InvalidState):
            await sub.next()

    try:
        trio.run(main, clock=clock)
    except BaseException as error:
        while hasattr(error, "exceptions"):  # a group, whose traceback hides the error
            error = error.exceptions[0]
        raise error from None


@pytest.mark.parametrize("waits", [False, True])
def test_a_lost_connection_is_noticed(own_server, waits):
    async def main():
        async with (
            lent(own_server, reconnect_wait=0.01) as (client, stream, _),
            trio.open_nursery() as nursery,
        ):
            if waits:
                sub = await client.subscribe("b")
                await client.flush()
                await lend(client)
                nursery.start_soon(sub.next)
                await until(lambda: stream._borrower)
            own_server.kill()
            own_server.restart()
            while not isinstance(await client.events.next(timeout=20), Disconnected):
                pass
            await client.flush(20)
            nursery.cancel_scope.cancel()

    run(main)


@pytest.mark.usefixtures("long_loans")
@pytest.mark.parametrize("secure", [False, True])
def test_the_socket_is_not_lent_during_a_handshake(server, tls_server, secure):
    """Only the reader can secure it, and nothing else might read for a while."""
    server, options = tls_server if secure else (server, {})

    async def main():
        async with connect(server.url, reconnect_wait=0.01, **options) as client:
            for _ in range(_trio_stream._LONE):
                await client.flush(20)
            port = client.session.port
            assert port.lone >= _trio_stream._LONE
            await client.force_reconnect()
            while client.stats.connects < 2:
                assert port._stream is None or not port._stream.lent
                await trio.sleep(0.001)

    run(main)


@pytest.mark.usefixtures("long_loans")
def test_a_close_ends_a_read(server):
    async def main():
        outcomes = []

        async def ask(client):
            with pytest.raises(ConnectionClosed) as caught:
                await client.request("silent", timeout=20)
            outcomes.append(caught.value)

        async with lent(server) as (client, stream, other):
            await other.subscribe("silent")
            await other.flush()
            await lend(client)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, client)
                await until(lambda: stream._borrower)
                await client.close()
        assert len(outcomes) == 1

    run(main)


@pytest.mark.usefixtures("long_loans")
def test_a_writer_that_waits_for_room_while_a_read_is_interrupted(own_server):
    """The end of the read must not be taken for the end of the transport."""

    async def main():
        async with lent(own_server, max_pending_out=1 << 24) as (client, stream, other):
            await other.subscribe("silent")
            await other.flush()
            await lend(client)
            async with trio.open_nursery() as nursery:

                async def ask():
                    with pytest.raises(TimeoutExpired):
                        await client.request("silent", timeout=1)
                    nursery.cancel_scope.cancel()

                async def publish():
                    while True:
                        await client.publish("b", bytes(1 << 20))

                nursery.start_soon(ask)
                await until(lambda: stream._borrower)
                own_server.freeze()
                nursery.start_soon(publish)
            assert not stream.idle  # the writer still waits
            own_server.thaw()
            assert (await client.request("a", b"1", timeout=20)).data == b"1"
            assert client.stats.connects == 1

    run(main)
