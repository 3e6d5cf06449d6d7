"""What only the adapter with a thread has to care for: many callers, its end, forks."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from natsproto.adapters.threads import connect
from natsproto.errors import ConnectionClosed, NatsError
from tests.adapters.test_blocking import in_child
from tests.core import ROOT


def run_all(works) -> None:
    """Each in a thread of its own; the first failure of any is raised."""
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
def test_the_end_wakes_everybody(server, end):
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


def test_the_end_comes_from_many(server):
    with connect(server.url) as client:
        run_all([client.close] * 8)


def test_an_interpreter_that_forgets_it_can_end(server):
    code = "import sys; from natsproto.adapters.threads import connect; connect(sys.argv[1])"
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", code, server.url], cwd=ROOT, check=True, timeout=10)
    assert time.monotonic() - begin < 5


def test_it_sleeps_when_there_is_nothing_to_do(server, monkeypatch):
    with connect(server.url) as client:
        turns = []
        step = client.port._step
        monkeypatch.setattr(client.port, "_step", lambda ready: (turns.append(ready), step(ready)))
        client.flush()
        time.sleep(0.2)
        del turns[:]
        time.sleep(0.3)
        assert turns == []


def test_fork(server):
    with connect(server.url) as client:
        sub = client.subscribe("a")

        def child():
            for call in (lambda: client.publish("a"), client.flush, sub.next, client.close):
                with pytest.raises(ConnectionClosed, match="before the fork"):
                    call()
            with client:
                pass  # its end has nothing to say

        in_child(child)
        client.publish("a", b"1")
        assert sub.next(timeout=5).data == b"1"
        assert client.stats.connects == 1


def test_a_crash_of_the_thread_is_told(server, monkeypatch):
    """A mistake of ours must not leave callers waiting."""
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


def test_callers_outlive_many_servers(own_server):
    """Every call ends, one way or the other, and the client works in the end."""
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


def test_a_bell_that_nobody_silences(server):
    """While there is always something to read, the bell is not: it must not fill up and block."""
    with connect(server.url) as client:
        port = client.port

        def ring():
            with port.lock:
                for _ in range(10_000):
                    port._asleep = True
                    port.flush_soon()

        ringing = threading.Thread(target=ring, daemon=True)
        ringing.start()
        ringing.join(10)
        assert not ringing.is_alive()
        client.flush(5.0)
