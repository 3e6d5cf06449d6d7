"""What concerns only the adapter `poll`: its loop, its tasks, and that nothing blocks."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
import time

import pytest

from natsproto.adapters import _lookup
from natsproto.adapters.poll import Loop, TaskCanceled, connect, sleep
from natsproto.errors import ConnectFailed, ConnectionClosed, InvalidState, NoResponders
from natsproto.testing import free_port

# Far above what a call of `poll` takes on a busy machine, far below what it would wait for.
AT_ONCE = 5.0


def poll_until(loop, condition):
    """Poll as a game does, and check that no call takes long; return the number of calls."""
    deadline = time.monotonic() + 20
    calls = 0
    while not condition():
        calls += 1
        assert time.monotonic() < deadline
        began = time.monotonic()
        loop.poll()
        assert time.monotonic() - began < AT_ONCE
        time.sleep(0.001)  # the rest of a frame
    return calls


def result_of(loop, coroutine):
    task = loop.start(coroutine)
    poll_until(loop, lambda: task.done)
    return task.result()


@pytest.fixture
def client(server):
    client = connect(server.url)
    assert client.run(client.loop.start(client.flush()).ended()) is None
    yield client
    client.run(client.close())


def test_a_client_connects_between_frames(server):
    client = connect(server.url)
    assert client.state == "NEW"
    got = []

    async def play():
        sub = await client.subscribe("greet")
        await client.publish("greet", b"hello")
        got.append((await sub.next(timeout=5)).data)
        return len(got)

    task = client.start(play())
    with pytest.raises(InvalidState, match="task has not ended"):
        task.result()
    poll_until(client, lambda: task.done)
    assert (task.result(), got) == (1, [b"hello"])
    assert client.opening.result().state == "CONNECTED"
    assert client.run(client.drain()) is None
    assert client.state == "CLOSED"
    assert client.loop.ports == []
    assert client.fileno() == -1
    assert client.wants() == (False, False)


def test_without_a_server():
    client = connect(f"nats://127.0.0.1:{free_port()}")
    poll_until(client, lambda: client.opening.done)
    with pytest.raises(ConnectFailed):
        client.opening.result()
    assert client.next_deadline() is None
    with pytest.raises(InvalidState, match="nothing to wait for"):
        client.loop.wait()

    async def publish():
        await client.publish("a")

    with pytest.raises(ConnectionClosed):
        result_of(client, publish())


@pytest.mark.rule("D-POLL-3")
def test_an_error_that_nothing_takes_is_printed(monkeypatch):
    """Not only those of `connect`: a task that nothing awaits must not fail in silence."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(type(args.exc_value)))
    loop = Loop()
    opening = [connect(f"nats://127.0.0.1:{free_port()}", loop=loop).opening]
    poll_until(loop, lambda: opening[0].done)
    opening.clear()
    gc.collect()
    assert seen == [ConnectFailed]
    task = loop.start(sleep(30))
    loop.poll()
    task.cancel()
    loop.poll()
    assert task.done
    del task  # it was canceled: that is what its owner wanted
    closed = connect(f"nats://127.0.0.1:{free_port()}", loop=loop)
    loop.run(closed.close())
    del closed
    gc.collect()
    assert len(seen) == 1


@pytest.mark.rule("D-POLL-1")
def test_a_slow_lookup_does_not_block(server, monkeypatch):
    released = threading.Event()
    look_up = _lookup.look_up

    def slow(effect):
        released.wait(20)
        return look_up(effect)

    monkeypatch.setattr(_lookup, "look_up", slow)
    client = connect(f"nats://localhost:{server.port}", connect_timeout=10)
    frames = []

    def some():
        frames.append(client.next_deadline())
        return len(frames) > 20

    poll_until(client, some)
    assert client.state == "DIALING"
    assert max(frames) - time.monotonic() < 0.1  # an owner with select looks again soon
    released.set()
    poll_until(client, lambda: client.opening.done)
    assert client.state == "CONNECTED"
    client.run(client.close())


@pytest.mark.rule("D-POLL-1", "D-CLOCK-3")
def test_a_lookup_that_takes_too_long_is_used_by_the_next_attempt(server, monkeypatch):
    released = threading.Event()
    look_up = _lookup.look_up
    lookups = []

    def slow(effect):
        lookups.append(effect)
        released.wait(20)
        return look_up(effect)

    monkeypatch.setattr(_lookup, "look_up", slow)
    client = connect(
        f"nats://localhost:{server.port}",
        connect_timeout=0.05,
        retry_on_first_connect=True,
        reconnect_wait=0.01,
    )
    dials = set()

    def again():
        effect = client.session.port._dialing
        dials.add(id(effect)) if effect is not None else None
        return len(dials) > 1

    poll_until(client, again)
    assert len(lookups) == 1  # one for each name
    released.set()
    poll_until(client, lambda: client.state == "CONNECTED")
    client.run(client.close())


@pytest.mark.rule("D-POLL-1")
def test_a_server_that_never_answers_does_not_block():
    """The queue of the listener is full: the system tries to connect until it is told to stop."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        url = "nats://127.0.0.1:%d" % listener.getsockname()[1]
        client = connect(url, connect_timeout=0.5)
        assert poll_until(client, lambda: client.opening.done) > 10
        with pytest.raises(ConnectFailed):
            client.opening.result()


@pytest.mark.rule("D-POLL-1")
def test_files_are_read_in_threads(client):
    """`run_blocking` returns its result or error to the task; other tasks run in the meantime."""
    released = threading.Event()
    ticks = []

    async def tick():
        while not released.is_set():
            ticks.append(client.loop.next_deadline())
            if len(ticks) == 5:
                released.set()
            await sleep(0)

    async def call():
        return await client.session.port.run_blocking(lambda: released.wait(20))

    task = client.start(call())
    ticker = client.start(tick())
    poll_until(client, lambda: task.done and ticker.done)
    assert task.result() is True

    async def fail():
        await client.session.port.run_blocking(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        client.run(fail())


@pytest.mark.rule("D-POLL-2")
@pytest.mark.parametrize("longest", [0.0, 0.005])
def test_queues_do_not_overflow_however_short_the_calls_are(server, longest):
    """Each message is larger than a checkpoint's share of a read; the queue holds one read."""
    client, other = connect(server.url), connect(server.url)
    count = 50_000
    got = []

    async def receive():
        async with client:
            sub = await client.subscribe("many", max_msgs=20_000)
            await client.flush()
            flood = other.start(send())
            async for msg in sub:
                got.append(msg.data)
                if len(got) == count:
                    break
            assert sub.dropped == 0
            await flood

    async def send():
        async with other:
            for number in range(count):
                await other.publish("many", b"%d" % number)

    task = client.start(receive())
    deadline = time.monotonic() + 60
    while not task.done:
        assert time.monotonic() < deadline
        client.poll(longest)
        other.poll(longest)
    task.result()
    assert got == [b"%d" % number for number in range(count)]


def test_poll_ends_although_there_is_more_to_do():
    loop = Loop()

    async def busy():
        while True:
            await sleep(0)

    task = loop.start(busy())
    began = time.monotonic()
    for _ in range(20):
        loop.poll()
    assert time.monotonic() - began < AT_ONCE  # sleep(0) lasts until the next call
    assert loop.next_deadline() <= time.monotonic()

    async def endless():
        while True:
            await loop.start(nothing())

    async def nothing():
        pass

    other = loop.start(endless())
    began = time.monotonic()
    assert loop.poll(0.02)
    assert 0.02 <= time.monotonic() - began < AT_ONCE
    for each in (task, other):
        each.cancel()
    while loop.poll():
        pass
    assert task.done
    assert other.done


def test_sleep_waits_for_its_time():
    loop = Loop()
    order = []

    async def rest(seconds):
        began = time.monotonic()
        await sleep(seconds)
        assert time.monotonic() - began >= seconds
        order.append(seconds)

    tasks = [loop.start(rest(seconds)) for seconds in (0.06, 0.0, 0.03)]
    forgotten = loop.start(rest(30))
    loop.poll()
    forgotten.cancel()
    poll_until(loop, lambda: all(task.done for task in tasks))
    assert order == [0.0, 0.03, 0.06]
    assert forgotten.done
    assert loop.next_deadline() is None


def test_tasks_can_wait_for_each_other(client):
    async def fail():
        await client.request("nobody.there")

    async def watch():
        task = client.start(fail())
        with pytest.raises(NoResponders):
            await task
        await task.ended()
        return await client.start(client.flush())

    assert result_of(client, watch()) is None


def test_a_canceled_task(client):
    events = []

    async def wait():
        sub = await client.subscribe("never")
        try:
            await sub.next()
        except TaskCanceled:
            events.append("canceled")
            await client.flush()  # it may still wait
            raise

    task = client.start(wait())
    never_began = client.start(wait())
    never_began.cancel()
    poll_until(client, lambda: client.session.connection.subscriptions)
    client.run(client.flush())
    task.cancel()
    poll_until(client, lambda: task.done)
    task.cancel()  # harmless
    assert events == ["canceled"]
    for each in (task, never_began):
        with pytest.raises(TaskCanceled):
            each.result()


def test_canceling_connect_leaves_nothing_open():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        url = "nats://127.0.0.1:%d" % listener.getsockname()[1]
        loop = Loop()

        async def enter():
            async with connect(url, connect_timeout=20):
                raise AssertionError("there is no server")

        task = loop.start(enter())
        poll_until(loop, lambda: loop.ports and loop.ports[0].fileno() >= 0)
        conn, _ = listener.accept()
        with conn:
            conn.settimeout(10)
            task.cancel()
            poll_until(loop, lambda: task.done)
            assert loop.ports == []
            assert conn.recv(100) == b""


def test_leaving_a_canceled_block_sends_what_it_has_published(server, client):
    async def main():
        sub = await client.subscribe("last.words")
        await client.flush()
        task = client.start(publish())
        first = await sub.next(timeout=5)
        task.cancel()
        await task.ended()
        return [first.data, (await sub.next(timeout=5)).data]

    async def publish():
        async with connect(server.url) as other:
            await other.publish("last.words", b"1")
            try:
                await sleep(30)
            finally:
                await other.publish("last.words", b"2")

    assert result_of(client, main()) == [b"1", b"2"]


def test_clients_made_in_a_task_share_its_loop(server):
    loop = Loop()

    async def main():
        async with connect(server.url) as one, connect(server.url) as two:
            assert one.loop is two.loop is loop
            assert len(loop.ports) == 2
        three = await connect(server.url)
        await three.close()

    loop.run(main())
    assert loop.ports == []
    client = connect(server.url, loop=loop)
    assert client.loop is loop
    client.run(client.close())


@pytest.mark.rule("D-POLL-4")
def test_the_wrong_places(client):
    async def poll():
        client.poll()

    with pytest.raises(InvalidState, match="poll was called by a task"):
        client.run(poll())

    async def foreign():
        await asyncio.sleep(0)

    with pytest.raises(InvalidState, match="another event loop: None"):
        client.run(foreign())

    async def on_asyncio():
        await client.flush()

    with pytest.raises(InvalidState, match=r"passed to its `start` \(D-POLL-4\)"):
        asyncio.run(on_asyncio())
    client.run(client.flush())  # no harm was done


def test_an_owner_that_waits_with_select(server):
    """`fileno`, `wants` and `next_deadline` are all that is needed: no call is in vain for long."""
    client = connect(server.url)
    polls = []

    async def main():
        sub = await client.subscribe("a")
        for number in range(100):
            await client.publish("a", b"%d" % number)
            assert (await sub.next(timeout=5)).data == b"%d" % number
        await client.close()

    task = client.start(main())
    while not task.done:
        client.poll()
        polls.append(client.state)
        if task.done:
            break
        reads, writes = client.wants()
        deadline = client.next_deadline()
        assert deadline is not None
        select.select(
            [client.fileno()] if reads else [],
            [client.fileno()] if writes else [],
            [],
            max(0.0, deadline - time.monotonic()),
        )
    task.result()
    assert len(polls) < 1000


def test_an_idle_client_waits(client):
    """Without anything to do, the next deadline is that of a PING."""
    assert not client.poll()
    assert client.next_deadline() - time.monotonic() > 1
    assert client.wants() == (True, False)
    began = time.monotonic()
    client.loop.wait(0.05)
    assert time.monotonic() - began >= 0.04


def test_a_full_socket_is_waited_for(own_server):
    """Publishers wait for room; the owner is told to wait for the socket to be writable."""
    client = connect(own_server.url)
    poll_until(client, lambda: client.opening.done)
    done = []

    async def publish():
        for _ in range(100):
            await client.publish("a", bytes(900_000))
            done.append(None)
        await client.flush(timeout=20)

    own_server.freeze()
    try:
        task = client.start(publish())
        poll_until(client, lambda: client.wants() == (True, True))
        for _ in range(20):
            client.poll()
        assert len(done) < 100
    finally:
        own_server.thaw()
    client.run(task.ended())
    task.result()
    client.run(client.close())


def test_ctrl_c_does_not_tear_the_connection(server):
    """It comes while the core works, and is raised when that is done."""
    steps = []

    def interrupt(step):
        steps.append(step)
        if len(steps) == 3:
            signal.raise_signal(signal.SIGINT)

    client = connect(server.url, trace=interrupt)
    with pytest.raises(KeyboardInterrupt):
        poll_until(client, lambda: client.opening.done)
    poll_until(client, lambda: client.opening.done)
    assert client.state == "CONNECTED"
    assert client.stats.connects == 1
    client.run(client.close())


def test_ctrl_c_twice_ends_a_task_that_does_not_end():
    loop = Loop()
    ended = []

    async def once():
        signal.raise_signal(signal.SIGINT)
        ended.append("once")

    async def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        ended.append("twice")

    task = loop.start(once())
    with pytest.raises(KeyboardInterrupt):
        loop.poll()
    assert task.done
    task.result()
    task = loop.start(twice())
    with pytest.raises(KeyboardInterrupt):
        loop.poll()
    assert ended == ["once"]
    with pytest.raises(KeyboardInterrupt):
        task.result()
    assert not loop.poll()


def test_a_fork(client):
    pid = os.fork()
    if not pid:
        try:
            client.run(client.flush())
        except ConnectionClosed:
            os._exit(client.fileno() + 8)  # -1: its copy of the socket is closed
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    client.run(client.flush())
    assert client.stats.connects == 1


def test_work_of_finalizers_is_done_in_the_next_poll(client):
    done = []
    client.session.port.run_soon(lambda: done.append(threading.get_ident()))
    assert client.next_deadline() <= time.monotonic()
    client.poll()
    assert done == [threading.get_ident()]
