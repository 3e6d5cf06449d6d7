"""The adapter for MicroPython, on CPython: its clock, its memory, and the conformance suite.

tests/micropython runs it on MicroPython itself. Here asyncio's streams are the transport.
"""

from __future__ import annotations

import asyncio

import pytest

from natsproto.adapters import micropython
from natsproto.adapters.driver import make_connection
from natsproto.adapters.micropython import SMALL, Clock, MicroPythonPort
from natsproto.errors import ConnectFailed, ConnectionLost, TimeoutExpired
from natsproto.events import Connected, Disconnected
from natsproto.options import Options
from natsproto.testing import CHECKS, AsyncioRunner
from natsproto.testing.suite import check_adapter

PERIOD = 1 << 30  # of ticks_ms on most boards
SERVER = Options()
# The suite was written for servers: the limits of a device would drop its messages.
LARGE = {name: getattr(SERVER, name) for name in SMALL}
# Without TLS, logs, processes and threads, which a device does not have.
LEFT_OUT = ("tls", "wss", "log", "fork", "thread", "trace", "websocket")
NAMES = [name for name in CHECKS if not any(word in name for word in LEFT_OUT)]


class StreamTransport:
    def __init__(self) -> None:
        self._writer = None

    async def open(self, host, port):
        self._reader, self._writer = await asyncio.open_connection(host, port)

    def start_tls(self, context, hostname):
        raise ValueError("there is no TLS in this test")

    async def read(self, size):
        return await self._reader.read(size)

    async def write(self, data):
        self._writer.write(data)
        await self._writer.drain()

    def close(self):
        if self._writer is not None:
            self._writer.close()


def connect(servers="nats://127.0.0.1:4222", **options):
    return micropython.connect(servers, transport=StreamTransport, **{**LARGE, **options})


def test_conformance():
    assert len(NAMES) > 160
    report = check_adapter(connect, AsyncioRunner(), checks=NAMES)
    assert (sorted(report.passed), report.skipped) == (sorted(NAMES), [])


def wrapped(end: int, start: int) -> int:
    """Return the difference of two values of a counter that wraps, as ticks_diff does."""
    return (end - start + PERIOD // 2) % PERIOD - PERIOD // 2


def test_the_clock_survives_the_wrap_of_its_counter():
    ticks = [PERIOD - 1500]
    clock = Clock(lambda: ticks[0], wrapped)
    seen = []
    for step in (0, 500, 999, 2, PERIOD // 2 - 1, PERIOD // 2 - 1):
        ticks[0] = (ticks[0] + step) % PERIOD
        seen.append(clock.now())
    days = (PERIOD // 2 - 1) / 1000
    assert seen == pytest.approx([0.0, 0.5, 1.499, 1.501, 1.501 + days, 1.501 + 2 * days])


def test_the_defaults_are_those_of_a_device():
    connecting = micropython.connect(transport=StreamTransport, max_msgs=5)
    options = connecting._connection.options
    assert (options.max_msgs, options.max_bytes) == (5, SMALL["max_bytes"])
    assert (options.max_pending_out, options.max_reconnects) == (SMALL["max_pending_out"], -1)


def test_short_times_are_measured_in_microseconds(monkeypatch):
    """time.time() of boards counts whole seconds, so a round trip would take none."""
    micros = [7_000_000]
    monkeypatch.setattr(micropython.port, "ticks_us", lambda: micros[0])
    port = MicroPythonPort(make_connection("nats://127.0.0.1:1", {}), StreamTransport)
    began = port.ticks()
    micros[0] += 250
    assert port.ticks() - began == pytest.approx(0.00025)


def test_a_plain_context_of_tls_is_required():
    """Without a certificate authority there is nothing to verify a server by."""
    with pytest.raises(ValueError, match="no certificate authority is known"):
        micropython.SocketTransport().start_tls(True, "host")


def test_a_certificate_is_verified():
    from ssl import CERT_REQUIRED

    trustme = pytest.importorskip("trustme")
    authority = trustme.CA().cert_pem.bytes().decode()
    context = micropython.tls_context(authority)
    assert context.verify_mode == CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1


class Scarce:
    """Makes a method raise MemoryError the next time it is called."""

    def __init__(self, owner: object, name: str) -> None:
        self.failures = 0
        self._method = getattr(owner, name)
        self._armed = True
        setattr(owner, name, self)

    def __call__(self, *args: object) -> object:
        if self._armed:
            self._armed = False
            self.failures += 1
            raise MemoryError
        return self._method(*args)


@pytest.mark.rule("D-MPY-1")
@pytest.mark.parametrize("method", ["on_data", "send", "set_timer"])
def test_a_lack_of_memory_is_a_lost_transport(server, method):
    async def main():
        async with connect(server.url, reconnect_wait=0.01) as client:
            sub = await client.subscribe("scarce")
            await client.flush()
            scarce = Scarce(client.session.port, method)
            await client.publish("scarce", b"lost, perhaps")
            seen = []
            while len(seen) < 3:
                seen.append(type(await client.events.next(timeout=10)))
            await client.publish("scarce", b"after")
            while (await sub.next(timeout=10)).data != b"after":
                pass
            assert scarce.failures == 1
            assert seen == [Connected, Disconnected, Connected]

    asyncio.run(main())


@pytest.mark.rule("D-MPY-1")
def test_a_lack_of_memory_for_a_dial_is_a_failed_attempt(own_server):
    async def main():
        async with connect(own_server.url, reconnect_wait=0.01) as client:
            scarce = Scarce(client.session.port, "dial")
            await client.force_reconnect()
            await client.flush(timeout=10)
            assert (scarce.failures, client.stats.connects) == (1, 2)

    asyncio.run(main())


@pytest.mark.rule("D-MPY-1")
@pytest.mark.parametrize("method", ["read", "write"])
def test_a_lack_of_memory_in_the_transport(server, method):
    made = []

    class Transport(StreamTransport):
        def __init__(self):
            super().__init__()
            made.append(self)
            if len(made) == 1:
                plain = getattr(self, method)

                async def fail(data):
                    raise MemoryError

                async def later(data):
                    setattr(self, method, fail)
                    return await plain(data)

                setattr(self, method, later)

    async def main():
        options = {**LARGE, "max_reconnects": 3, "retry_on_first_connect": True}
        client = await micropython.connect(server.url, transport=Transport, **options)
        try:
            await client.flush(timeout=10)
        except ConnectionLost:  # it was the PING that could not be written
            await client.flush(timeout=10)
        assert len(made) == 2
        await client.close()

    asyncio.run(main())


def test_a_long_sleep_is_cut(server, monkeypatch):
    """A counter that wraps has to be read in time."""
    monkeypatch.setattr(micropython.port, "_LONGEST_SLEEP", 0.01)
    slept = []
    sleep = asyncio.sleep

    async def record(seconds):
        slept.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(micropython.asyncio, "sleep", record)

    async def main():
        async with connect(server.url) as client:
            sub = await client.subscribe("silent")
            with pytest.raises(TimeoutExpired):
                await sub.next(timeout=0.2)

    asyncio.run(main())
    assert max(slept) <= 0.012
    assert len(slept) > 5


def test_nobody_there():
    async def main():
        with pytest.raises(ConnectFailed):
            await connect("nats://127.0.0.1:1")

    asyncio.run(main())


def test_run_all_raises_the_first_error_after_the_end_of_all():
    async def main():
        ended = []

        async def fail(text):
            ended.append(text)
            raise ValueError(text)

        async def work():
            await asyncio.sleep(0.01)
            ended.append("work")

        connection = micropython.connect(transport=StreamTransport)._connection
        port = MicroPythonPort(connection, StreamTransport)
        with pytest.raises(ValueError, match="one"):
            await port.run_all([lambda: fail("one"), work, lambda: fail("two")])
        assert ended == ["one", "two", "work"]

    asyncio.run(main())
