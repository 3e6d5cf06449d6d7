"""How many files a reader has to open to follow one call, counted and bounded.

A warm asyncio client talks to a minimal server in the same event loop. Every call of a function of
the two packages is recorded, except for those that the server makes. The limits are what the code
needs today: a change that makes a walk longer must raise them and explain why.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from jetstream import JetStream
from natsproto.adapters.asyncio import connect
from natsproto.wire.frames import Ping, Pub, Sub
from natsproto.wire.parser import Parser
from tests.core import PACKAGES, ROOT

INFO = b'INFO {"server_id":"S","version":"2.15.1","headers":true,"max_payload":1048576}\r\n'
ACK = b'{"stream":"S","seq":1}'


class Toy(asyncio.Protocol):
    """A server that answers PING, and every request with a PubAck."""

    made: list[Toy]
    subscribed: asyncio.Event

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._parser = Parser(peer="client")
        self._sids: dict[str, int] = {}
        self.made.append(self)
        transport.write(INFO)

    def data_received(self, data: bytes) -> None:
        output = b""
        for frame in self._parser.feed(data):
            if isinstance(frame, Ping):
                output += b"PONG\r\n"
            elif isinstance(frame, Sub):
                self._sids[frame.subject] = frame.sid
                self.subscribed.set()
            elif isinstance(frame, Pub) and frame.reply:
                sid = self._sids[frame.reply.rpartition(".")[0] + ".*"]
                output += b"MSG %s %d %d\r\n%s\r\n" % (frame.reply.encode(), sid, len(ACK), ACK)
        self.transport.write(output)


SERVING = (Toy.connection_made.__code__, Toy.data_received.__code__)


class Walk:
    """The files of the calls within a block, in order."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._serving = 0

    def __enter__(self) -> Walk:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: Any, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if frame.f_code in SERVING:
            self._serving += {"call": 1, "return": -1}.get(event, 0)
        elif frame.f_code.co_name == "<module>":
            pass  # an import, which depends on what ran before
        elif event == "call" and not self._serving and ROOT in path.parents:
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(PACKAGES):
                self.files.append(name)

    @property
    def switches(self) -> int:
        """Return how often a call leads into another file than the previous call."""
        return sum(a != b for a, b in zip(["", *self.files], self.files))


@pytest.fixture
def walks(caplog) -> dict[str, Walk]:
    caplog.set_level("CRITICAL", "natsproto")  # logging would add to the walk
    return asyncio.run(take_walks())


async def take_walks() -> dict[str, Walk]:
    found = {}
    Toy.made, Toy.subscribed = [], asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Toy, "127.0.0.1", 0)
    url = "nats://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    async with connect(url) as client:
        js = JetStream(client)
        for _ in range(3):
            await js.publish("s", b"x")
            await client.publish("x", b"x")
        await client.flush()
        found["publish"] = Walk()
        with found["publish"]:
            await client.publish("x", b"x")
            await asyncio.sleep(0)
        await client.flush()
        found["js.publish"] = Walk()
        with found["js.publish"]:
            await js.publish("s", b"x")
        await client.subscribe("a")
        await client.flush()
        found["reconnect"] = Walk()
        with found["reconnect"]:
            Toy.made[-1].transport.abort()
            Toy.subscribed.clear()
            await Toy.subscribed.wait()
    server.close()
    return found


# A reconnect is four inputs: the loss, the new transport, INFO and PONG. Each of them is passed on
# from the adapter to the driver, the connection and its lifecycle, and then the driver reads four
# outputs. That is about ten switches for an input, 40 in all, and the price of a core that does not
# know its adapter. The others are, about:
#
#     7  the dial: a coroutine of the adapter, which the driver's try_addresses calls back
#    12  INFO and CONNECT: the parser, the frame, TLS, credentials, the encoder
#    18  two events: made, kept for readers and for the log, and offered to the log
#    26  what the parts do when a transport is lost, and when the next one is ready
LIMITS = [  # walk,       files, switches
    ("publish", 6, 11),
    ("js.publish", 14, 40),
    ("reconnect", 25, 105),
]


def test_walks_stay_short(walks):
    taken = [(name, len(set(walks[name].files)), walks[name].switches) for name, _, _ in LIMITS]
    for (name, files, switches), (_, most_files, most_switches) in zip(taken, LIMITS):
        assert 0 < files <= most_files, (name, sorted(set(walks[name].files)))
        assert 0 < switches <= most_switches, (name, switches)
