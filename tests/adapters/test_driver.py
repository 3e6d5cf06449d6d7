"""The driver: its imports, the options that it checks, and the order of its work."""

from __future__ import annotations

import subprocess
import sys

import pytest

from natsproto.adapters import driver
from natsproto.adapters.driver import (
    FORKED,
    HUGE_READ_SIZE,
    LARGE_READ_SIZE,
    READ_SIZE,
    Driver,
    SystemRng,
    make_connection,
    run_worker,
    try_addresses,
)
from natsproto.auth.challenge import Challenge
from natsproto.connection.effects import Dial, Sign, StartTls
from natsproto.connection.waitable import Waitable
from natsproto.errors import ConnectionClosed, InvalidState, InvalidValue
from natsproto.options import Options
from natsproto.port import run_sync
from tests.connection.support import PONG, Script, info
from tests.core import ROOT

MISSING_ON_MICROPYTHON = [
    "abc",
    "asyncio",
    "collections.abc",
    "contextlib",
    "dataclasses",
    "difflib",
    "enum",
    "inspect",
    "logging",
    "pathlib",
    "random",
    "re",
    "socket",
    "ssl",
    "threading",
    "typing",
]


def test_the_driver_imports_nothing_that_micropython_lacks():
    code = f"""
import os, sys  # CPython's os imports abc; MicroPython has one of its own
sys.path.insert(0, {str(ROOT)!r})
for name in {MISSING_ON_MICROPYTHON!r}:
    sys.modules[name] = None  # an import of it fails
from natsproto.adapters.driver import Driver, make_connection
print(make_connection("nats://a", {{"name": "device"}}).options.name)
for name in {MISSING_ON_MICROPYTHON!r}:
    del sys.modules[name]  # the end of the interpreter looks for some of them
"""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("device\n", "")


LAZY = {"ssl", "inspect", "difflib", "pathlib"}


@pytest.mark.parametrize("adapter", ["blocking", "threads"])
def test_adapters_import_rarely_used_modules_on_demand(adapter):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import natsproto.adapters.{adapter}
print(*sys.modules)
"""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert LAZY.isdisjoint(run.stdout.split())


class Recorder(Driver):
    """A driver that records its calls."""

    def __init__(self, connection):
        super().__init__(connection)
        self.time = 0.0
        self.log = []

    def now(self):
        return self.time

    def dial(self, effect):
        self.log.append(effect)

    start_tls = sign = dial

    def hang_up(self):
        self.log.append("hang up")

    def send(self):
        for piece in self.connection.data_to_send():
            self.log += [line.split()[0] for line in piece.splitlines()]

    def set_timer(self, deadline):
        self.log.append(deadline)

    def pump_soon(self):
        self.log.append("pump soon")

    def taken(self):
        log, self.log = self.log, []
        return log


def start(host=(), **options):
    """Return a driver whose connection has begun to connect."""
    given = {"max_reconnects": 1, **options}
    made = Recorder(make_connection("nats://a", given, rng=Script(), host=host))
    made.connection.connect(0.0)
    made.pump()
    return made


def wait_for(made: Recorder, waitable: Waitable) -> None:
    waitable.waiters.append(lambda: made.log.append("woken"))


def test_a_lifecycle_and_the_order_of_the_outputs():
    made = start()
    assert made.taken() == [Dial("a", 4222, True), 5.0]
    made.time = 1.0
    made.on_opened()
    made.on_data(info())
    assert made.taken() == [b"CONNECT", b"PING"]  # the timer is set already
    wait_for(made, made.connection.opened)
    made.on_data(PONG)
    assert made.taken() == ["woken"]
    assert made.connection.opened.waiters == []
    made.connection.publish("a", b"1")
    made.pump()
    assert made.taken()[:2] == [b"PUB", b"1"]
    made.time = 9.0
    made.on_closed(OSError("reset"))
    assert made.taken()[0] == Dial("a", 4222, True)
    made.time = 14.0
    made.on_timer()
    assert made.taken()[0] == "hang up"


def test_the_timer_is_set_to_earlier_times_only_until_it_fires():
    made = start()
    assert made.taken() == [Dial("a", 4222, True), 5.0]
    waitable = Waitable()
    for deadline, expected in [(7.0, []), (3.0, [3.0]), (4.0, [])]:
        made.connection.wake_at(waitable, deadline)
        made.pump()
        assert made.taken() == expected
    made.time = 3.0
    made.on_timer()
    assert made.taken() == [5.0]


def test_effects_are_applied_before_data_is_sent():
    made = start(tls=True)
    made.on_opened()
    made.taken()
    made.on_data(info(tls_required=True))
    assert made.taken() == [StartTls("a")]
    made.on_tls()
    assert made.taken() == [b"CONNECT", b"PING"]


@pytest.mark.rule("D-AUTH-14")
def test_an_adapter_that_signs():
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    made = start(("host_signing",), host_signing=True, nkey=key, sign=print)
    made.on_opened()
    made.taken()
    made.on_data(info(nonce="n"))
    [sign] = made.taken()
    assert sign.challenge.nonce == b"n"
    made.on_signed(bytes(64))
    assert made.taken() == [b"CONNECT", b"PING"]


def test_an_error_is_reported_without_its_traceback():
    """Its frames would keep their variables alive."""
    with pytest.raises(OSError, match="refused") as caught:
        raise OSError("refused")
    error = caught.value
    assert error.__traceback__ is not None
    start().on_closed(error)
    assert error.__traceback__ is None


def test_work_of_finalizers_runs_before_effects():
    made = start()
    made.taken()
    made.run_soon(lambda: made.connection.close(0.0))
    made.run_soon(lambda: made.log.append("second"))
    assert made.taken() == ["pump soon", "pump soon"]
    made.pump()
    assert made.taken()[:2] == ["second", "hang up"]
    assert made.connection.closed


def test_an_iterator_keeps_the_loop_for_a_while():
    made = start()
    made.time = 1.0
    made.on_opened()
    made.on_data(info() + PONG)
    made.time = 1.01
    assert not made.turn_is_over()
    made.time = 1.03
    assert made.turn_is_over()
    assert not made.turn_is_over()  # another turn has begun


def test_a_warning_names_the_caller():
    made = start()
    with pytest.warns(ResourceWarning, match="messages were not stopped"):
        made.warn("messages were not stopped")


def test_in_the_child_of_a_fork_the_connection_is_closed():
    made = start()
    made.on_fork()
    assert made.connection.closed.endswith(FORKED)
    assert isinstance(made.connection.opened.error, ConnectionClosed)


def test_an_adapter_has_to_implement_these_methods():
    bare = Driver(make_connection("nats://a", {}))
    calls = [
        bare.now,
        lambda: bare.dial(Dial("a", 1, False)),
        lambda: bare.start_tls(StartTls("a")),
        lambda: bare.sign(Sign(Challenge({}, b"n"))),
        bare.hang_up,
        bare.send,
        lambda: bare.set_timer(1.0),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError):
            call()
    bare.pump_soon()  # this one is optional


# Options


def credentials(connection) -> str:
    """Return the JWT that the connection would send now."""
    fields = connection.options.auth.connect_fields("", connection.options.servers[0])
    return fields["jwt"]


CREDS = """-----BEGIN NATS USER JWT-----
%s
------END NATS USER JWT------
-----BEGIN USER NKEY SEED-----
SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU
------END USER NKEY SEED------
"""


@pytest.mark.parametrize("form", [str, lambda path: path])
def test_credentials_are_read_again_from_their_file(tmp_path, form):
    pytest.importorskip("cryptography")
    path = tmp_path / "user.creds"
    path.write_text(CREDS % "first", encoding="utf-8")
    options = {"creds": form(path)}
    connection = make_connection("nats://a", options)
    assert credentials(connection) == "first"
    path.write_text(CREDS % "second", encoding="utf-8")
    assert credentials(connection) == "second"
    assert options == {"creds": form(path)}


@pytest.mark.parametrize("name", ["missing.creds", "", "a\0b"])
def test_a_credentials_file_that_does_not_exist(tmp_path, name):
    with pytest.raises(InvalidValue, match="creds file does not exist: "):
        make_connection("nats://a", {"creds": str(tmp_path / name)})


UNKNOWN = [  # name, the error
    ("timeout", "option does not exist: 'timeout'; did you mean 'connect_timeout'?"),
    ("zzz", "option does not exist: 'zzz'"),
    ("error_cb", "option does not exist: 'error_cb'; iterate client.events"),
    ("dont_randomize", "option does not exist: 'dont_randomize'; use shuffle=False"),
]


@pytest.mark.parametrize(("name", "message"), UNKNOWN)
def test_an_unknown_option(name, message):
    with pytest.raises(InvalidValue) as caught:
        make_connection("nats://a", {"name": "x", name: 1})
    assert str(caught.value) == message


def test_another_type_error_is_not_hidden(monkeypatch):
    def fail(**options):
        raise TypeError("a bug")

    fail.__kwdefaults__ = {"servers": ""}
    monkeypatch.setattr(Options, "__init__", lambda self, **options: fail(**options))
    with pytest.raises(TypeError, match="a bug"):
        make_connection("nats://a", {})


@pytest.mark.rule("D-OPT-16")
def test_without_ssl_no_context_is_accepted(monkeypatch):
    monkeypatch.setitem(sys.modules, "ssl", None)
    with pytest.raises(InvalidValue, match="tls needs the module ssl"):
        make_connection("nats://a", {"tls": object()})
    assert make_connection("nats://a", {"tls": True}).options.tls is True


# Helpers


def test_random_numbers():
    rng = SystemRng()
    assert all(0.0 <= rng.random() < 1.0 for _ in range(1000))
    for limit in (1, 2, 255, 256, 257, 1 << 4096):
        assert all(0 <= rng.randrange(limit) < limit for _ in range(100))
    assert {rng.randrange(3) for _ in range(1000)} == {0, 1, 2}
    assert rng.randrange(1 << 4096) > 1 << 4000
    for items in ([], [1], list(range(100))):
        mixed = list(items)
        rng.shuffle(mixed)
        assert sorted(mixed) == items
    assert mixed != items


def test_without_random_numbers_of_the_system(monkeypatch):
    monkeypatch.delattr(driver.os, "urandom")
    assert SystemRng(bytes).randrange(10) == 0
    with pytest.raises(InvalidState, match="random numbers are not available: pass an rng"):
        SystemRng().random()


ADDRESSES = [  # addresses, those that accept, the one that is used
    (["a"], "a", "a"),
    (["a", "b", "c"], "bc", "b"),
    (["a", "b", "c"], "c", "c"),
]


@pytest.mark.parametrize(("addresses", "accept", "used"), ADDRESSES)
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_first_address_that_accepts_is_used(addresses, accept, used, shuffle):
    tried = []

    async def connect(address):
        tried.append(address)
        if address not in accept:
            raise OSError(address)

    run_sync(try_addresses(list(addresses), shuffle, connect))
    assert tried[-1] in accept
    assert set(tried[:-1]).isdisjoint(accept)
    if not shuffle:
        assert tried[-1] == used


def test_the_error_of_the_last_address_is_raised():
    async def connect(address):
        raise OSError(address)

    with pytest.raises(OSError, match="c"):
        run_sync(try_addresses(["a", "b", "c"], False, connect))


def test_a_worker_runs_to_its_end():
    done = []

    async def worker():
        done.append(True)

    run_worker(worker)
    assert done == [True]


def test_an_adapter_chooses_what_its_waiters_are():
    woken = []

    class Own(Recorder):
        def wake(self, waiters):
            woken.append(waiters)

    made = Own(make_connection("nats://a", {"max_reconnects": 1}, rng=Script()))
    made.connection.connect(0.0)
    made.pump()
    made.connection.opened.waiters += ["first", "second"]
    made.on_opened()
    made.on_data(info())
    made.on_data(PONG)
    assert woken == [["first", "second"]]  # and not called for waitables without waiters
    assert made.connection.opened.waiters == []


def messages(size: int, total: int) -> bytes:
    """Return at least `total` bytes, in messages that take `size` bytes each."""
    payload = size - len(b"MSG a 1 \r\n\r\n") - len(str(size))
    frame = b"MSG a 1 %d\r\n%s\r\n" % (payload, bytes(payload))
    return frame * (-(-total // len(frame)))


READS = [  # case, (bytes of a message, bytes of a read) ..., the size of the next read
    ("small messages", [(30, READ_SIZE)], READ_SIZE),
    ("large messages", [(600, READ_SIZE)], LARGE_READ_SIZE),
    ("large messages, not a full read", [(600, READ_SIZE // 2)], READ_SIZE),
    ("the last read of many", [(600, LARGE_READ_SIZE), (600, 6000)], READ_SIZE),
    ("medium messages", [(400, READ_SIZE)], READ_SIZE),
    ("medium messages after large ones", [(600, READ_SIZE), (400, READ_SIZE)], LARGE_READ_SIZE),
    ("small messages after large ones", [(600, READ_SIZE), (30, LARGE_READ_SIZE)], READ_SIZE),
    ("huge messages", [(8192, READ_SIZE)], HUGE_READ_SIZE),
    (
        "large messages after huge ones",
        [(9000, HUGE_READ_SIZE), (8000, READ_SIZE)],
        LARGE_READ_SIZE,
    ),
    ("a part of one message", [(1 << 20, 1 << 20)], HUGE_READ_SIZE),
]


@pytest.mark.parametrize(("case", "reads", "expected"), READS, ids=[row[0] for row in READS])
def test_the_read_size_follows_the_messages(case, reads, expected):
    made = start()
    made.on_opened()
    made.on_data(info())
    made.on_data(PONG)
    assert made.read_size == READ_SIZE
    for size, total in reads:
        data = messages(size, total)
        made.on_data(data[:READ_SIZE] if size > READ_SIZE else data)
    assert made.read_size == expected
