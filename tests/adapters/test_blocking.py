"""The adapter without an event loop or a thread: its calls, signals and forks."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from natsproto.adapters import _sockets, blocking, threads
from natsproto.adapters.blocking import BlockingPort, connect
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidValue,
    MessagesUnconfirmed,
    TimeoutExpired,
)
from natsproto.testing import Server, free_port
from natsproto.testing.peers import Listener

INFO = b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1000}\r\n'


@pytest.fixture
def watcher(server):
    """Yield a client that receives messages independently of the client under test."""
    with threads.connect(server.url, max_msgs=200_000) as watcher:
        yield watcher


def test_a_publish_is_sent_when_it_returns(server, watcher):
    sub = watcher.subscribe("a")
    watcher.flush()
    with connect(server.url) as client:
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"
        client.publish("a", bytes(1_000_000))
        assert len(sub.next(timeout=5).data) == 1_000_000


def test_when_an_acknowledgment_joins_others(server):
    """Only behind a cork, and while the last look at the socket is recent (D-RECON-16)."""
    with connect(server.url) as client:
        port = client.port
        assert isinstance(port, BlockingPort)
        assert not port.joins
        with client.corked():
            assert not port.joins  # there are no others
            client.publish("a")
            port._look_at = port.now() + 60
            assert port.joins
            with port.lock:
                assert not port.joins  # another call is active
            port._look_at = port.now()
            assert not port.joins
            port._look_at = port.now() + 60
            port.connection.outbound.size = HIGH_WATER + 1
            assert not port.joins  # they have to be sent first


def test_corked(server, watcher):
    sub = watcher.subscribe("a")
    watcher.flush()
    with connect(server.url) as client:
        with client.corked(), client.corked():
            client.publish("a", b"1")
            with pytest.raises(TimeoutExpired):
                sub.next(timeout=0.05)
        assert sub.next(timeout=5).data == b"1"
        with client.corked():
            client.publish("a", b"2")
            client.flush()  # a call that waits ends the cork
            assert sub.next(timeout=5).data == b"2"
            for _ in range(30):
                client.publish("a", bytes(100_000))
            assert len(sub.next(timeout=5).data) == 100_000  # more than a megabyte


def test_writing_and_reading_at_the_same_time(server):
    """More data than all buffers hold is sent, and received while it is being sent."""
    size, count = 64_000, 500
    line = b"MSG a 1 64000\r\n\r\n"  # it counts as well, and all of them may wait at a time
    with connect(server.url, max_bytes=(len(line) + size) * count) as client:
        sub = client.subscribe("a")
        for number in range(count):
            client.publish("a", b"%06d" % number + bytes(size - 6))
        for number in range(count):
            assert sub.next(timeout=5).data[:6] == b"%06d" % number
        assert sub.dropped == 0


def test_one_thread_at_a_time(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")
        waiter = threading.Thread(target=sub.next)
        waiter.start()
        while not client.port._user:
            time.sleep(0.001)
        assert not client.port.alone  # even a publish that joins others then takes the lock
        with pytest.raises(InvalidState, match="in use by another thread"):
            client.publish("a")
        # A client in use does not even answer PINGs, so another thread has to end the wait.
        with connect(server.url) as other:
            other.publish("a")
        waiter.join(5)
        assert client.port.alone
        client.publish("a")
        assert sub.next(timeout=5).data == b""


def test_publishing_alone_reconnects(own_server, monkeypatch):
    """No call waits; the messages are kept until a server is available again."""
    monkeypatch.setattr(blocking, "_LOOK", 0.0)
    with connect(own_server.url, reconnect_wait=0.01) as client:
        own_server.kill()
        client.publish("a", b"0")
        assert client.state != "CONNECTED"
        own_server.restart()
        with threads.connect(own_server.url) as watcher:
            sub = watcher.subscribe("a")
            watcher.flush()
            number = 0
            while client.state != "CONNECTED":
                number += 1
                client.publish("a", b"%d" % number)
                time.sleep(0.001)
            for expected in range(number + 1):
                assert sub.next(timeout=5).data == b"%d" % expected


IMPATIENT = {"ping_interval": "100ms", "ping_max": 1}


@pytest.mark.rule("D-RECON-15", "D-RECON-16")
@pytest.mark.parametrize("count", [1, 3])
def test_a_publish_after_the_server_has_hung_up_on_an_idle_client(count):
    """The server gets no answer to its PINGs between calls."""
    with Server(config=IMPATIENT) as server, threads.connect(server.url) as watcher:
        sub = watcher.subscribe("a")
        watcher.flush()
        client = connect(server.url)
        while len(server.monitor("/connz")["connections"]) > 1:
            time.sleep(0.01)
        for number in range(count):
            client.publish("a", b"%d" % number)
            assert sub.next(timeout=5).data == b"%d" % number  # no other call is made
        assert (client.state, client.stats.reconnects) == ("CONNECTED", 1)
        client.close()


@pytest.mark.rule("D-RECON-16")
def test_a_publish_after_the_last_message_of_a_server(monkeypatch):
    """The server's last message is one read, and the end of the transport is another."""
    monkeypatch.setattr(blocking, "_LOOK", 0.0)
    with Listener(INFO, (b"PING\r\n", b"PONG\r\nPING\r\n")) as dying, Server() as server:
        client = connect([f"nats://{dying.address}", server.url], shuffle=False)
        dying.close()  # it has hung up when this returns
        with threads.connect(server.url) as watcher:
            sub = watcher.subscribe("a")
            watcher.flush()
            client.publish("a", b"1")
            assert sub.next(timeout=5).data == b"1"
        client.close()


@pytest.mark.rule("D-RECON-15", "D-RECON-16")
@pytest.mark.parametrize("ends_with_publish", [True, False])
def test_corked_publishes_after_the_server_has_hung_up(own_server, ends_with_publish):
    """A cork that lasts longer than a few milliseconds still reads, and nothing is lost."""
    with connect(own_server.url, reconnect_wait=0.01) as client, client.corked():
        for number in range(3):
            client.publish("a", b"%d" % number)
        own_server.kill()
        own_server.restart()
        with threads.connect(own_server.url) as watcher:
            sub = watcher.subscribe("a")
            watcher.flush()
            if ends_with_publish:
                client.publish("a", b"3")
                assert client.stats.reconnects == 1
            client.flush()
            for number in range(3 + ends_with_publish):
                assert sub.next(timeout=5).data == b"%d" % number


@pytest.mark.rule("D-RECON-15")
def test_a_publish_waits_for_one_attempt_to_connect_at_most(server, deaf_url):
    with connect(
        server.url, connect_timeout=0.3, reconnect_wait=60, reconnect_wait_max=60
    ) as client:
        client.set_servers(deaf_url)
        client.force_reconnect()
        begin = time.monotonic()
        client.publish("a", b"1")
        assert 0.2 <= time.monotonic() - begin < 2
        assert client.state == "WAITING"
        begin = time.monotonic()
        client.publish("a", b"2")  # nothing is in progress now
        assert time.monotonic() - begin < 0.2
        with pytest.raises(MessagesUnconfirmed):
            client.close(0.1)


def test_data_is_read_from_time_to_time_while_only_publishing(server, monkeypatch):
    monkeypatch.setattr(blocking, "_LOOK", 0.0)
    with connect(server.url) as client:
        sub = client.subscribe("a")
        client.publish("a", b"1")
        while not sub.pending:
            client.publish("b")
        assert sub.next(timeout=0).data == b"1"


def test_waiting_on_a_closed_connection(server):
    client = connect(server.url)
    client.close()
    with pytest.raises(ConnectionClosed):
        client.flush()
    with pytest.raises(InvalidState, match="nothing to wait for"):
        client.port._turn()


def test_rejected_arguments():
    with pytest.raises(InvalidValue):
        connect("http://127.0.0.1")
    begin = time.monotonic()
    with pytest.raises(ConnectionClosed, match="refused"):
        connect(f"nats://127.0.0.1:{free_port()}")
    with pytest.raises(ConnectionClosed, match="no server could be reached"):
        connect("nats://nowhere.invalid:4222", connect_timeout=2)
    with pytest.raises(ConnectionClosed, match="no server could be reached"):
        connect("nats://%s.example:4222" % ("x" * 70))  # no label of DNS is that long
    assert time.monotonic() - begin < 5


@pytest.fixture
def deaf_url():
    """Yield the URL of a server that never answers an attempt to connect."""
    with ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # until its queue is full
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        yield "nats://127.0.0.1:%d" % deaf.getsockname()[1]


def test_connecting_keeps_its_timeout(deaf_url):
    begin = time.monotonic()
    with pytest.raises(ConnectionClosed, match="did not provide a connection within"):
        connect(deaf_url, connect_timeout=0.2)
    assert 0.2 <= time.monotonic() - begin < 2


def test_other_timeouts_hold_during_an_attempt_to_connect(server, deaf_url):
    with connect(server.url, connect_timeout=20) as client:
        client.set_servers(deaf_url)
        sub = client.subscribe("a")
        client.force_reconnect()
        begin = time.monotonic()
        with pytest.raises(TimeoutExpired):
            sub.next(timeout=0.2)
        assert 0.2 <= time.monotonic() - begin < 2


def test_connecting_can_be_interrupted(deaf_url):
    assert interrupted(lambda: connect(deaf_url, connect_timeout=20))


@pytest.mark.parametrize("adapter", [blocking, threads])
def test_waiting_without_poll(server, monkeypatch, adapter):
    """Windows has only select."""
    monkeypatch.setattr(adapter, "wait_for", _sockets._wait_on_windows)
    with adapter.connect(server.url) as client:
        sub = client.subscribe("a")
        client.publish("a", bytes(500_000))
        assert len(sub.next(timeout=5).data) == 500_000
        with pytest.raises(TimeoutExpired):
            sub.next(timeout=0.05)
        client.force_reconnect()
        client.flush()
    with pytest.raises(ConnectionClosed, match="refused"):
        adapter.connect(f"nats://127.0.0.1:{free_port()}")
    assert _sockets._wait_on_windows(None, None, 0.01) is False


# Signals. The tests run in the main thread, the one that gets them.


def interrupted(work) -> bool:
    """Interrupt the call after a moment, as Ctrl-C does; it must not end by itself."""
    main = threading.main_thread().ident
    assert main is not None
    pause = random.uniform(0.0, 0.003)
    over = threading.Event()

    def interrupt() -> None:
        time.sleep(pause)
        signal.pthread_kill(main, signal.SIGINT)
        # Python misses a signal that arrives just before a system call, so send it again, as a user
        # would.
        while not over.wait(0.2):
            signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        work()
    except KeyboardInterrupt:
        over.set()
        thread.join()
        return True
    return False


def test_interrupts_at_any_moment(server, watcher):
    """The connection survives: every message arrives once, in order, and complete."""
    seen = watcher.subscribe("out")
    watcher.flush()
    accepted = interrupts = 0
    with connect(server.url, max_msgs=200_000) as client:
        sub = client.subscribe("in")
        client.flush()
        for number in range(2000):
            watcher.publish("in", b"%d" % number)
        watcher.flush()
        got: list[int] = []

        def work() -> None:
            nonlocal accepted
            while True:
                client.publish("out", b"%d" % accepted)
                accepted += 1
                client.flush(5)
                got.append(int(sub.next(5).data))

        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            interrupts += interrupted(work)
        client.flush()
        assert interrupts > 10
        assert client.stats.connects == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        client.publish("out", b"end")
    numbers = []
    while (data := seen.next(timeout=5).data) != b"end":
        numbers.append(int(data))
    # An interrupted message is sent or not; if not, the next one has the same number.
    assert numbers == sorted(numbers)
    assert set(numbers) >= set(range(accepted))
    assert got == sorted(set(got))


def test_calls_that_are_interrupted_at_their_edges(server, watcher):
    """After an interrupt before a call begins or after it ends, the next call recovers."""
    sub = watcher.subscribe("a")
    watcher.flush()
    with connect(server.url) as client:
        port = client.port
        port.connection.publish("a", b"1")  # accepted, but interrupted before it is sent
        port._user = threading.get_ident()
        client.publish("a", b"2")
        assert [sub.next(timeout=5).data for _ in range(2)] == [b"1", b"2"]
        cork = client.corked()
        cork.__enter__()
        client.publish("a", b"3")
        del cork  # its block was never entered
        client.publish("a", b"4")
        client.flush()
        assert [sub.next(timeout=5).data for _ in range(2)] == [b"3", b"4"]


# A coroutine that was created at the moment of an interrupt is never run, and Python warns.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_interrupts_while_no_call_waits(server):
    rounds, each = 50, 100
    with connect(server.url, max_msgs=200_000) as client:
        sub = client.subscribe("a")
        got: list[int] = []

        def take() -> None:
            data = sub.next().data
            got.append(int(data))

        def work() -> None:
            while True:
                take()

        for number in range(rounds):
            with client.corked():
                for place in range(each):
                    client.publish("a", b"%d" % (number * each + place))
            client.flush()
            assert interrupted(work)
        while sub.pending:
            take()
        # A message taken at the moment of an interrupt is lost, as with any iterator.
        assert got == sorted(set(got))
        assert len(got) >= rounds * each - rounds
        assert client.stats.connects == 1


def test_an_interrupt_ends_a_wait_at_once(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")
        main = threading.main_thread().ident
        threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sub.next(timeout=10)
        assert time.monotonic() - begin < 2
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"
        assert client.stats.connects == 1


class Alarm(Exception):
    """Raised by a signal handler, at the worst moment."""


MOMENTS = [
    # whose,      method,            before or after it
    ("wire", "send", "before"),
    ("wire", "send", "after"),
    ("wire", "receive", "before"),
    ("wire", "receive", "after"),
    ("connection", "data_to_send", "after"),
    ("connection", "receive_data", "before"),
    ("connection", "receive_data", "after"),
    ("connection", "take_ready", "before"),
]


@pytest.mark.parametrize(("whose", "method", "when"), MOMENTS)
def test_exceptions_of_other_handlers(server, monkeypatch, whose, method, when):
    """Exceptions of other signal handlers are not deferred; the client may reconnect."""
    with connect(server.url, reconnect_wait=0.01) as client:
        sub = client.subscribe("a")
        client.flush()
        target = client.port._transport if whose == "wire" else client.port.connection
        real = getattr(target, method)

        def interrupted(itself, *args):
            monkeypatch.undo()
            if when == "after":
                real(*args)
            raise Alarm

        monkeypatch.setattr(type(target), method, interrupted)
        with pytest.raises(Alarm):
            client.flush()
        client.flush(5)
        assert client.stats.connects == 2
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"


# Forks


def in_child(work) -> None:
    """Run the function in a child process; fail if it raises."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.write(write, b"ok")
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        assert pipe.read().decode() == "ok"
    os.waitpid(pid, 0)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.rule("D-RECON-13")
def test_fork(server, tls_server, tls):
    server, options = tls_server if tls else (server, {})
    with connect(server.url, **options) as client, threads.connect(server.url, **options) as other:
        service = other.subscribe("service")
        sub = client.subscribe("a")
        client.flush()
        other.flush()

        def answer(count):
            for _ in range(count):
                request = service.next(timeout=5)
                other.publish(request.reply, b"for " + request.data)

        def child():
            assert client.request("service", b"child", timeout=5).data == b"for child"
            client.publish("a", b"of child")
            assert sub.next(timeout=5).data == b"of child"
            assert client.stats.connects == 2
            client.close()

        server_thread = threading.Thread(target=answer, args=[3])
        server_thread.start()
        # Both send the same number, but the answers must not be mixed up.
        assert client.request("service", b"first", timeout=5).data == b"for first"
        in_child(child)
        assert client.request("service", b"parent", timeout=5).data == b"for parent"
        assert sub.next(timeout=5).data == b"of child"
        assert client.stats.connects == 1
        server_thread.join(5)


def test_fork_sends_nothing_twice(server, watcher):
    sub = watcher.subscribe("a")
    watcher.flush()
    with connect(server.url) as client:
        with client.corked():
            client.publish("a", b"1")
            in_child(client.flush)
        client.publish("a", b"2")
        assert [sub.next(timeout=5).data for _ in range(2)] == [b"1", b"2"]
        watcher.flush()
        assert sub.pending == 0
