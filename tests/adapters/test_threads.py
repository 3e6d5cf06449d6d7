"""The adapter with a thread: many callers, its end, and forks."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from jetstream import message as _message
from jetstream.blocking import JsMsg
from natsproto.adapters import _interrupts, _lookup
from natsproto.adapters import threads as on_threads
from natsproto.adapters._mutex import Mutex
from natsproto.adapters.threads import connect
from natsproto.errors import (
    ConnectFailed,
    ConnectionClosed,
    MessagesUnconfirmed,
    NatsError,
    TimeoutExpired,
)
from natsproto.events import Disconnected
from natsproto.wire.frames import Msg
from tests.adapters.test_blocking import in_child
from tests.core import ROOT


def run_all(works) -> None:
    """Run each in its own thread; raise the first failure."""
    failures: list[BaseException] = []

    def run(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(30)
    if failures:
        raise failures[0]


def test_many_publishers_keep_their_order(server):
    publishers, each = 8, 5000
    with connect(server.url, max_msgs=publishers * each) as client:
        sub = client.subscribe("a")
        client.flush()

        def publish(who):
            for number in range(each):
                client.publish("a", b"%d %d" % (who, number))

        run_all([lambda who=who: publish(who) for who in range(publishers)])
        expected = [0] * publishers
        for _ in range(publishers * each):
            who, number = map(int, sub.next(timeout=5).data.split())
            assert number == expected[who]
            expected[who] += 1
        assert expected == [each] * publishers


def test_many_requests_at_once(server):
    with connect(server.url) as client, connect(server.url) as service:
        sub = service.subscribe("service")
        service.flush()

        def serve():
            for msg in sub:
                service.publish(msg.reply, msg.data)

        def ask(who):
            for number in range(50):
                question = b"%d %d" % (who, number)
                assert client.request("service", question, timeout=10).data == question

        server_thread = threading.Thread(target=serve)
        server_thread.start()
        run_all([lambda who=who: ask(who) for who in range(8)])
        sub.unsubscribe()
        server_thread.join(5)
        assert not server_thread.is_alive()


def test_several_readers_share_a_subscription(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")
        got = []

        def read():
            for msg in sub:
                number = int(msg.data)
                got.append(number)

        def write():
            for number in range(1000):
                client.publish("a", b"%d" % number)
            client.flush()
            while sub.pending:
                time.sleep(0.001)
            sub.unsubscribe()

        run_all([read, read, read, write])
        assert sorted(got) == list(range(1000))


@pytest.mark.parametrize("end", ["close", "drain"])
def test_closing_wakes_all_waiting_calls(server, end):
    with connect(server.url) as client:
        waiting = threading.Barrier(4)
        outcomes = []

        def wait(call):
            waiting.wait(5)
            try:
                outcomes.append(call())
            except NatsError as error:
                outcomes.append(error)

        sub = client.subscribe("a")
        silent = client.subscribe("silent")
        calls = [
            lambda: list(sub),
            lambda: client.request("silent", timeout=20),
            lambda: list(client.events)[-1:],
        ]
        running = [threading.Thread(target=wait, args=[call]) for call in calls]
        for thread in running:
            thread.start()
        waiting.wait(5)
        assert silent.next(timeout=5).reply
        getattr(client, end)()
        for thread in running:
            thread.join(5)
            assert not thread.is_alive()
        assert len(outcomes) == 3
        assert client.port._thread.is_alive() is False


def test_closing_from_many_threads(server):
    with connect(server.url) as client:
        run_all([client.close] * 8)


def test_the_program_ends_without_closing_its_client(server):
    code = "import sys; from natsproto.adapters.threads import connect; connect(sys.argv[1])"
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", code, server.url], cwd=ROOT, check=True, timeout=10)
    assert time.monotonic() - begin < 5


def received(server, code, *args, **options):
    """Return the messages that the program publishes to `a`; its first argument is the URL."""
    with connect(server.url, max_msgs=200_000) as watcher:
        sub = watcher.subscribe("a")
        watcher.flush()
        command = [sys.executable, "-X", "dev", "-c", code, server.url, *args]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=20, **options
        )
        watcher.flush()
        return [sub.next(timeout=5).data for _ in range(sub.pending)], done


FORGETFUL = """
import sys
from natsproto.adapters.threads import connect
client = connect(sys.argv[1])
for number in range(int(sys.argv[2])):
    client.publish("a", b"%d" % number)
"""


@pytest.mark.rule("D-CONN-30")
@pytest.mark.parametrize("count", [1, 10, 1000, 100_000])
def test_published_messages_are_sent_at_the_end_of_the_program(server, count):
    got, done = received(server, FORGETFUL, str(count))
    assert got == [b"%d" % number for number in range(count)]
    assert (done.returncode, done.stderr) == (0, "")


CUT_OFF = """
import sys
from natsproto.adapters.threads import connect
from natsproto.events import Disconnected
from natsproto.testing import Server
server = Server()
other = connect(sys.argv[1])
client = connect(server.url, max_reconnects=-1)
server.stop()
while not isinstance(client.events.next(5), Disconnected):
    pass
client.publish("a", b"lost")
other.publish("a", b"1")
"""


@pytest.mark.rule("D-CONN-30")
def test_unsent_messages_are_reported_at_the_end_of_the_program(server):
    begin = time.monotonic()
    got, done = received(server, CUT_OFF)
    assert "MessagesUnconfirmed" in done.stderr
    assert got == [b"1"]
    assert "1 not sent, 0 sent and in doubt" in done.stderr
    assert time.monotonic() - begin < 10


def drop(holder):
    """Drop the items of the list, and wait until the thread of their port has ended."""
    thread = holder[0].port._thread
    holder.clear()
    deadline = time.monotonic() + 10
    while thread.is_alive():
        assert time.monotonic() < deadline
        gc.collect()  # repeated, because the thread may be busy right now
        thread.join(0.05)


@pytest.mark.rule("D-CONN-31")
@pytest.mark.parametrize("cycle", [False, True])
def test_a_dropped_client_is_closed_with_a_warning(server, cycle):
    with connect(server.url) as watcher:
        sub = watcher.subscribe("a")
        watcher.flush()
        before = len(os.listdir("/dev/fd"))
        holder = [connect(server.url)]
        for number in range(1000):
            holder[0].publish("a", b"%d" % number)
        if cycle:
            holder[0].port.itself = holder[0].port
        with pytest.warns(ResourceWarning) as seen:
            drop(holder)
        assert [str(each.message) for each in seen] == ["a client was not closed"]
        for number in range(1000):
            assert sub.next(timeout=5).data == b"%d" % number
        assert len(os.listdir("/dev/fd")) == before


@pytest.mark.rule("D-CONN-31")
def test_a_dropped_client_that_cannot_send_reports_it(own_server, monkeypatch):
    crashes = []
    monkeypatch.setattr(threading, "excepthook", crashes.append)
    monkeypatch.setattr(on_threads, "CLOSE", 0.1)
    holder = [connect(own_server.url, max_reconnects=-1)]
    own_server.kill()
    while not isinstance(holder[0].events.next(5), Disconnected):
        pass
    holder[0].publish("a")
    with pytest.warns(ResourceWarning, match="not closed"):
        drop(holder)
    assert [(each.exc_type, each.exc_value.unsent) for each in crashes] == [
        (MessagesUnconfirmed, 1)
    ]


@pytest.mark.rule("D-CONN-31")
def test_a_client_lives_as_long_as_its_subscriptions(server):
    holder = [connect(server.url).subscribe("a")]
    gc.collect()
    with connect(server.url) as other:
        while not holder[0].pending:  # its subscription may be in flight
            other.publish("a", b"1")
            other.flush()
    with pytest.warns(ResourceWarning, match="not closed"):
        drop(holder)


@pytest.fixture
def slow_names(monkeypatch):
    """Yield a name server that answers when the test allows it."""
    allowed = threading.Event()
    real = socket.getaddrinfo
    asked = []

    def getaddrinfo(host, *args, **kwargs):
        if host in ("slow.example", b"slow.example"):
            asked.append(host)
            allowed.wait(10)
            host = "127.0.0.1"
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield allowed, asked
    allowed.set()


@pytest.mark.rule("D-CLOCK-3")
def test_a_slow_name_server_does_not_delay_timeouts(server, slow_names):
    allowed, asked = slow_names
    url = f"nats://slow.example:{server.port}"
    begin = time.monotonic()
    with pytest.raises(ConnectFailed, match="did not provide a connection within"):
        connect(url, connect_timeout=0.2)
    assert 0.2 <= time.monotonic() - begin < 2
    with connect(
        server.url, connect_timeout=0.2, reconnect_wait=0.01, reconnect_wait_max=0.01
    ) as client:
        client.set_servers(url)
        client.force_reconnect()
        begin = time.monotonic()
        with pytest.raises(TimeoutExpired):
            client.request("nobody", timeout=0.5)
        assert 0.5 <= time.monotonic() - begin < 2
        assert len(asked) == 2  # for each client; a later attempt waits for the same answer
        allowed.set()
        client.flush(5)
        assert client.stats.reconnects == 1


@pytest.mark.rule("D-CLOCK-3")
def test_a_name_is_looked_up_where_no_thread_can_be_started(server, monkeypatch):
    """The interpreter starts no threads at its end."""
    real = threading.Thread.start

    def start(thread):
        if thread.name == "natsproto-lookup":
            raise RuntimeError("can't create new thread at interpreter shutdown")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with connect(f"nats://localhost:{server.port}") as client:
        client.flush()


ADDRESSES = [
    ("127.0.0.1", (socket.AF_INET, ("127.0.0.1", 4222))),
    ("::1", (socket.AF_INET6, ("::1", 4222, 0, 0))),
    ("localhost", None),
    ("127.1", None),
    ("\0", None),
    ("fe80::1%lo", None),
]


@pytest.mark.parametrize(("host", "expected"), ADDRESSES)
def test_addresses_are_distinguished_from_names(host, expected):
    entry = _lookup._numeric(host, 4222)
    assert (entry and (entry[0], entry[4])) == expected


class Alarm(Exception):
    """Raised by a signal handler."""


@pytest.fixture
def delivered():
    """Yield a socket that has a byte for each signal, as soon as the system has delivered it."""
    here, there = socket.socketpair()
    there.setblocking(False)
    before = signal.set_wakeup_fd(there.fileno())
    with here, there:
        yield here
        signal.set_wakeup_fd(before)


@pytest.mark.rule("D-CLOCK-4")
def test_a_handler_that_raises_while_a_call_acquires_the_lock_again(delivered):
    mutex = Mutex()
    woken = threading.Lock()
    woken.acquire()
    main = threading.main_thread().ident

    def raise_alarm(*_):
        raise Alarm

    def wake_and_interrupt():
        with mutex.lock:  # as soon as the other one sleeps
            woken.release()
            deadline = time.monotonic() + 5
            while sys._current_frames()[main].f_code.co_name != "_regain":
                assert time.monotonic() < deadline
                time.sleep(0.001)
            signal.pthread_kill(main, signal.SIGALRM)
            delivered.recv(1)

    before = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        with mutex.lock:
            other = threading.Thread(target=wake_and_interrupt)
            other.start()
            with pytest.raises(Alarm):
                mutex.sleep(woken)
            assert mutex.lock._is_owned()
        assert not mutex.lock._is_owned()
        other.join()
    finally:
        signal.signal(signal.SIGALRM, before)


# A coroutine that was created at the moment of an alarm is never run, and Python warns.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.rule("D-CLOCK-4")
def test_handlers_that_raise_at_any_moment(server):
    """Whatever the handlers interrupt, their exception is raised, and the client stays usable."""
    cuts = 0

    def raise_alarm(*_):
        raise Alarm

    def work():
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.002))
        while True:
            client.flush(5)

    before = signal.signal(signal.SIGALRM, raise_alarm)
    with connect(server.url) as client:
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                with pytest.raises(Alarm):
                    work()
                cuts += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        client.flush(5)
        assert client.stats.connects == 1
    assert cuts > 100


def answered(server):
    """Return a client that responds to requests to `a`, and the list of what it received."""
    responder = connect(server.url)
    sub = responder.subscribe("a")
    responder.flush()
    seen: list[bytes] = []

    def respond():
        for msg in sub:
            seen.append(msg.data)
            responder.respond(msg, msg.data)

    threading.Thread(target=respond).start()
    return responder, seen


def test_a_request_is_sent_by_the_thread_that_waits_for_it(server, monkeypatch):
    senders: list[int] = []
    send = on_threads.ThreadsPort.send

    def noted(port):
        if port is client.port and port.connection.outbound.frames:
            senders.append(threading.get_ident())
        send(port)

    responder, _ = answered(server)
    with responder, connect(server.url) as client:
        client.request("a", timeout=20)  # the thread learns of this timeout
        monkeypatch.setattr(on_threads.ThreadsPort, "send", noted)
        client.request("a", timeout=20)
        assert senders == [threading.get_ident()]
        client.publish("b", b"1")  # the thread joins it with others
        client.request("a", b"2", timeout=20)
        assert senders[1] != threading.get_ident()


@pytest.mark.rule("REQ-4")
def test_the_thread_is_woken_for_an_earlier_timeout(server):
    with connect(server.url) as silent, connect(server.url) as client:
        silent.subscribe("a")
        silent.flush()
        client.subscribe("b")
        client.flush(timeout=20)
        start = time.monotonic()
        with pytest.raises(TimeoutExpired):
            client.request("a", timeout=0.05)
        assert time.monotonic() - start < 10


MOMENTS = [
    # where a handler raises, how often the message arrives, whether the connection is lost
    ("before", {0, 1}, False),
    ("within", {1}, True),
    ("after", {1}, False),
]


@pytest.mark.rule("D-CLOCK-4")
@pytest.mark.parametrize(("when", "arrives", "lost"), MOMENTS)
def test_a_handler_that_raises_while_a_request_is_sent(server, monkeypatch, when, arrives, lost):
    """A message is never sent twice, and never in part."""
    responder, seen = answered(server)
    with responder, connect(server.url, reconnect_wait=0.01) as client:
        client.request("a", timeout=20)
        real = client.port._transport.send

        def interrupted(transport, take):
            monkeypatch.undo()
            if when != "before":
                pieces = take()
                real(lambda: pieces and [pieces.pop()])
                if when == "within":
                    transport.unsent.append(b"the message, which is not removed yet")
            raise Alarm

        monkeypatch.setattr(type(client.port._transport), "send", interrupted)
        with pytest.raises(Alarm):
            client.request("a", b"1", timeout=20)
        assert client.request("a", b"2", timeout=20).data == b"2"
        assert client.stats.connects == (2 if lost else 1)
    assert seen.count(b"1") in arrives
    assert seen.count(b"2") == 1


ACK = "$JS.ACK.S.C.1.1.1.1.0"


def publish(client):
    client.publish(ACK, b"1")


def respond(client):
    client.respond(Msg(b"a", 1, ACK.encode()), b"1")


def acknowledge(client):
    message = _message.JsMsg(Msg(b"a", 1, ACK.encode()), client.inner.session)
    JsMsg(message, client.port).ack()


@pytest.mark.rule("D-CLOCK-4")
@pytest.mark.parametrize("call", [publish, respond, acknowledge])
@pytest.mark.parametrize("moment", ["flush_soon", "pump_soon"])
def test_a_handler_that_raises_before_the_thread_is_woken(server, monkeypatch, call, moment):
    """The messages that others publish later join those that were queued, and are sent."""
    with connect(server.url) as other, connect(server.url) as client:
        sub = other.subscribe(ACK)
        other.flush()
        deadline = time.monotonic() + 20
        while not client.port._polling:
            assert time.monotonic() < deadline
            time.sleep(0.001)

        def interrupted(port):
            monkeypatch.undo()
            raise Alarm

        monkeypatch.setattr(on_threads.ThreadsPort, moment, interrupted)
        with pytest.raises(Alarm):
            call(client)
        client.publish(ACK, b"2")
        # Soon: the server's first PING after two seconds would wake the thread.
        sub.next(timeout=1)
        assert sub.next(timeout=1).data == b"2"


def lend(client, timeout=20):
    """Make requests until the thread has lent the socket to their caller."""
    deadline = time.monotonic() + 20
    while not client.port._lent:  # a machine that is busy makes pauses between requests
        assert time.monotonic() < deadline
        client.request("a", timeout=timeout)


def test_a_lone_caller_reads_its_responses(server, monkeypatch):
    monkeypatch.setattr(on_threads, "_PATIENCE", 20.0)  # the machine may be busy
    monkeypatch.setattr(on_threads, "_LOAN", 20.0)
    readers: list[int] = []
    on_data = on_threads.ThreadsPort.on_data

    def noted(port, data):
        if port is client.port:
            readers.append(threading.get_ident())
        on_data(port, data)

    responder, _ = answered(server)
    with responder, connect(server.url) as client:
        client.request("a", timeout=20)  # while others have to be awaited, the thread reads
        monkeypatch.setattr(on_threads.ThreadsPort, "on_data", noted)
        client.request("a", timeout=20)
        assert threading.get_ident() not in readers
        lend(client)
        client.request("a", timeout=20)
        assert readers[-1] == threading.get_ident()
        client.flush(20)  # the thread takes the socket back
        del readers[:]
        client.request("a", timeout=20)
        assert threading.get_ident() not in readers


def test_a_lone_caller_leaves_a_late_response_to_the_thread(server):
    responder, seen = answered(server)
    with responder, connect(server.url) as client:
        lend(client)
        with connect(server.url) as other:
            late = other.subscribe("late")
            other.flush()
            asking = threading.Thread(target=lambda: seen.append(client.request("late").data))
            asking.start()
            msg = late.next(timeout=20)
            deadline = time.monotonic() + 20
            while client.port._lent:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            other.respond(msg, b"late")
            asking.join(20)
    assert seen[-1] == b"late"


def test_a_lone_caller_reads_for_others_until_it_leaves(server, monkeypatch):
    """Others that begin to wait get their messages, from the caller first and then the thread."""
    monkeypatch.setattr(on_threads, "_PATIENCE", 20.0)
    responder, _ = answered(server)
    with responder, connect(server.url) as client, connect(server.url) as other:
        silent = other.subscribe("silent")
        sub = client.subscribe("b")
        client.flush()
        other.flush()
        lend(client)
        asking = threading.Thread(target=lambda: client.request("silent", timeout=20))
        asking.start()
        msg = silent.next(timeout=20)  # the caller reads by now, or will
        for number in (b"1", b"2"):
            other.publish("b", number)
            assert sub.next(timeout=20).data == number
            other.respond(msg)
            asking.join(20)


def test_a_transport_that_another_thread_drops_before_its_reader_waits(server, monkeypatch):
    monkeypatch.setattr(on_threads, "_PATIENCE", 20.0)
    monkeypatch.setattr(on_threads, "_LOAN", 20.0)

    def wait_late(transport, wakeup, timeout):
        if threading.current_thread() is threading.main_thread():
            monkeypatch.setattr(on_threads, "wait_for", wait_for)
            dropping = threading.Thread(target=client.force_reconnect)
            dropping.start()
            dropping.join(20)
            deadline = time.monotonic() + 20
            while transport.fileno() >= 0:  # the thread does it
                assert time.monotonic() < deadline
                time.sleep(0.001)
        return wait_for(transport, wakeup, timeout)

    wait_for = on_threads.wait_for
    responder, _ = answered(server)
    with responder, connect(server.url, reconnect_wait=0.01) as client:
        lend(client, 1)
        monkeypatch.setattr(on_threads, "wait_for", wait_late)
        with suppress(TimeoutExpired):  # the response may arrive between two connections
            client.request("a", timeout=1)
        assert on_threads.wait_for is wait_for
        assert client.request("a", b"2", timeout=20).data == b"2"


def test_a_loan_ends_when_it_is_not_used(server):
    responder, _ = answered(server)
    with responder, connect(server.url) as client:
        lend(client)
        turns = []
        turn = client.port.turn
        client.port.turn = lambda ready: (turns.append(ready), turn(ready))[1]
        time.sleep(0.5)  # nothing happens in the meantime
        assert not client.port._lent
        assert len(turns) <= 3
        del client.port.turn


def test_a_lost_connection_is_noticed_while_the_socket_is_lent(own_server):
    responder, _ = answered(own_server)
    with responder, connect(own_server.url, reconnect_wait=0.01) as client:
        events = client.events
        lend(client)
        own_server.kill()
        own_server.restart()
        while not isinstance(events.next(timeout=20), Disconnected):
            pass
        client.flush(20)


@pytest.mark.rule("D-CLOCK-4")
@pytest.mark.parametrize(
    ("number", "error", "lost"),
    [(signal.SIGALRM, Alarm, True), (signal.SIGINT, KeyboardInterrupt, False)],
)
def test_a_handler_that_raises_while_a_caller_reads(server, monkeypatch, number, error, lost):
    """Ctrl-C is raised when the data is handled; after another exception the client reconnects."""

    def raise_alarm(*_):
        raise Alarm

    def interrupted(port, data):
        if port is client.port and threading.current_thread() is threading.main_thread():
            monkeypatch.undo()
            signal.raise_signal(number)
        on_data(port, data)

    before = signal.signal(signal.SIGALRM, raise_alarm)
    responder, _ = answered(server)
    on_data = on_threads.ThreadsPort.on_data
    try:
        with responder, connect(server.url, reconnect_wait=0.01) as client:
            lend(client)
            monkeypatch.setattr(on_threads.ThreadsPort, "on_data", interrupted)

            def ask():
                while True:
                    client.request("a", timeout=20)

            with pytest.raises(error):
                ask()
            assert client.request("a", b"2", timeout=20).data == b"2"
            assert client.stats.connects == (2 if lost else 1)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.rule("D-CLOCK-4")
def test_a_handler_that_raises_while_another_one_is_restored(monkeypatch):
    """Python runs the handlers of pending signals before it sets one."""

    def interrupted(*_):
        monkeypatch.undo()
        raise Alarm

    interrupts = _interrupts.Interrupts()
    interrupts.defer()
    monkeypatch.setattr(_interrupts, "_set_handler", interrupted)
    with pytest.raises(Alarm):
        interrupts.allow()
    other = threading.Thread(target=interrupts.allow)  # only the main thread may set handlers
    other.start()
    other.join()
    interrupts.defer()
    interrupts.allow()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.rule("D-CLOCK-4")
def test_handlers_that_raise_at_any_moment_of_requests(server):
    """Whatever the handlers interrupt, their exception is raised, and the client stays usable."""
    cuts = 0

    def raise_alarm(*_):
        raise Alarm

    def work():
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.01))
        while True:
            client.request("a", timeout=20)

    before = signal.signal(signal.SIGALRM, raise_alarm)
    responder, _ = answered(server)
    with responder, connect(server.url, reconnect_wait=0.001) as client:
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                with pytest.raises(Alarm):
                    work()
                cuts += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert client.request("a", b"2", timeout=20).data == b"2"
    assert cuts > 50


def test_the_thread_sleeps_when_there_is_nothing_to_do(server, monkeypatch):
    with connect(server.url) as client:
        turns = []
        step = client.port._step
        monkeypatch.setattr(client.port, "_step", lambda ready: (turns.append(ready), step(ready)))
        client.flush()
        del turns[:]
        time.sleep(0.3)  # nothing happens in the meantime
        assert len(turns) <= 1  # the end of the transport that delivered the answer to the flush


def test_fork(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")

        def child():
            for call in (lambda: client.publish("a"), client.flush, sub.next, client.close):
                with pytest.raises(ConnectionClosed, match="before the fork"):
                    call()
            with client:
                pass  # its end is not reported

        in_child(child)
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"
        assert client.stats.connects == 1


def test_a_crash_of_the_thread_is_reported(server, monkeypatch):
    """A bug in the adapter must not leave callers waiting."""
    crashes = []
    monkeypatch.setattr(threading, "excepthook", crashes.append)
    with connect(server.url) as client:

        def crash(ready):
            raise ZeroDivisionError

        monkeypatch.setattr(client.port, "_step", crash)
        with pytest.raises(ConnectionClosed):
            client.flush()
        assert client.state == "CLOSED"
    assert [crash.exc_type for crash in crashes] == [ZeroDivisionError]


def test_an_interrupt_ends_a_wait(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")
        main = threading.main_thread().ident
        timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sub.next(timeout=10)
        timer.join()
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"
        assert client.stats.connects == 1


def test_calls_during_many_restarts_of_the_server(own_server):
    """Every call returns or raises, and the client works in the end."""
    with connect(own_server.url, reconnect_wait=0.01, reconnect_wait_max=0.02) as client:
        sub = client.subscribe("service")
        over = threading.Event()
        answers = []

        def serve():
            for msg in sub:
                client.publish(msg.reply, msg.data)

        def ask():
            while not over.is_set():
                with suppress(NatsError):
                    answers.append(client.request("service", b"?", timeout=0.5).data)

        def shake():
            for number in range(1, 6):
                time.sleep(0.1)
                own_server.kill()
                own_server.restart()
                # On a slow machine it would miss one.
                deadline = time.monotonic() + 5
                while client.stats.reconnects < number and time.monotonic() < deadline:
                    with suppress(NatsError):
                        client.flush(1)
            over.set()

        service = threading.Thread(target=serve)
        service.start()
        run_all([ask, ask, ask, shake])
        assert client.request("service", b"!", timeout=5).data == b"!"
        assert client.stats.reconnects == 5
        assert len(answers) > 10
        sub.unsubscribe()
        service.join(5)
        assert not service.is_alive()


def test_a_wakeup_socket_that_is_full(server):
    """It is read only when there is nothing else to do, so it fills up; that must not block."""
    with connect(server.url) as client:
        port = client.port

        def ring():
            with port.lock:
                for _ in range(10_000):
                    port._polling = True
                    port.flush_soon()

        ringing = threading.Thread(target=ring, daemon=True)
        ringing.start()
        ringing.join(10)
        assert not ringing.is_alive()
        client.flush(5.0)
