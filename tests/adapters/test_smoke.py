"""Each adapter on a real server, in one test. The conformance suite covers the details."""

from __future__ import annotations

import importlib
import re

import pytest

from natsproto.errors import InvalidState, InvalidValue, NoResponders
from tests.adapters.runtimes import RUNTIMES, Runtime

MANY = 100_000
FAST = {"reconnect_wait": 0.01, "max_msgs": MANY}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timeout", "did you mean 'connect_timeout'?"),
        ("reconnect_time_wait", "use reconnect_wait"),
        ("zzz", "option does not exist: 'zzz'"),
    ],
)
@pytest.mark.parametrize("adapter", ["asyncio", "trio", "blocking", "threads"])
def test_an_unknown_option_is_rejected(adapter, name, hint):
    connect = importlib.import_module(f"natsproto.adapters.{adapter}").connect
    with pytest.raises(InvalidValue, match=re.escape(hint)):
        connect("nats://127.0.0.1:4222", **{name: 1})


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize("adapter", ["asyncio", "trio"])
def test_the_result_of_connect_is_not_the_client(adapter):
    connecting = importlib.import_module(f"natsproto.adapters.{adapter}").connect()
    with pytest.raises(AttributeError, match=r"it is not the client yet: use `async with connect"):
        connecting.publish("a", b"")


@pytest.mark.rule("D-HINT-1")
def test_connect_of_trio_is_not_awaited():
    trio = pytest.importorskip("trio")
    from natsproto.adapters.trio import connect

    async def main():
        await connect()

    with pytest.raises(InvalidState, match=r"cannot be awaited; use `async with connect\(\.\.\.\)"):
        trio.run(main)


@pytest.mark.parametrize("adapter", ["blocking", "threads"])
def test_without_a_loop(adapter, own_server):
    connect = importlib.import_module(f"natsproto.adapters.{adapter}").connect
    with connect(own_server.url, **FAST) as client, connect(own_server.url, **FAST) as other:
        with client.subscribe("a") as sub:
            client.flush()
            other.publish("a", b"hello", headers={"K": "v"})
            msg = sub.next(timeout=5)
            assert (msg.data, msg.headers["K"]) == (b"hello", "v")

        with pytest.raises(NoResponders):
            client.request("nobody")

        sub = client.subscribe("many")
        client.flush()
        with other.corked():
            for number in range(MANY):
                other.publish("many", b"%d" % number)
        for number in range(MANY):
            assert next(sub).data == b"%d" % number

        own_server.kill()
        own_server.restart()
        for each in client, other:
            while not getattr(each.events.next(timeout=5), "again", False):
                pass
            each.flush()
        other.publish("many", b"again")
        assert sub.next(timeout=5).data == b"again"
        assert client.stats.reconnects == 1

        client.drain()
        assert list(sub) == []
        assert [type(event).__name__ for event in client.events][-1] == "Closed"
        client.close()
        client.close()
    assert client.state == "CLOSED"


@pytest.mark.parametrize("name", RUNTIMES)
def test_on_a_loop(name, own_server):
    runtime = Runtime(name)
    connect = runtime.connect

    async def main():
        async with (
            connect(own_server.url, **FAST) as client,
            connect(own_server.url, **FAST) as other,
        ):
            async with await client.subscribe("a") as sub:
                await client.flush()
                await other.publish("a", b"hello", headers={"K": "v"})
                msg = await sub.next(timeout=5)
                assert (msg.data, msg.headers["K"]) == (b"hello", "v")

            with pytest.raises(NoResponders):
                await client.request("nobody")

            sub = await client.subscribe("many")
            await client.flush()
            for number in range(MANY):
                await other.publish("many", b"%d" % number)
            for number in range(MANY):
                assert (await sub.__anext__()).data == b"%d" % number

            own_server.kill()
            own_server.restart()
            for each in client, other:
                while not getattr(await each.events.next(timeout=5), "again", False):
                    pass
                await each.flush()
            await other.publish("many", b"again")
            assert (await sub.next(timeout=5)).data == b"again"
            assert client.stats.reconnects == 1

            await client.drain()
            assert [msg async for msg in sub] == []
            events = [type(event).__name__ async for event in client.events]
            assert events[-1] == "Closed"
            await client.close()
            await client.close()
        assert client.state == "CLOSED"

    runtime.run(main)
