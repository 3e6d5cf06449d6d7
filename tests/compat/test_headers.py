"""Headers of other publishers, who may send anything: what a program sees, and can respond to."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from natsproto.testing import Server
from tests.compat.both import connect_raw, processed, run

SOON = 5.0
LINES: list[tuple[bytes, dict[str, str] | None]] = [
    (b"A: b", {"A": "b"}),
    (b"A:b: c", {"A": "b: c"}),
    (b"A: 1\r\nA: 2", {"A": "2"}),
    (b"A: 1\r\na: 2", {"A": "1", "a": "2"}),
    (b"A: \xc3\xa9", {"A": "\xe9"}),
    (b"A: \xff", {"A": "\ufffd"}),
    (b"\xff: 1\r\nA: b", {"A": "b"}),
    (b"A B: 1\r\nA: b", {"A": "b"}),
    (b"A B: 1", None),
    (b"no colon\r\nA: b", {"A": "b"}),
]


async def receive(nats: Any, server: Server) -> list[tuple[Any, bytes]]:
    """Return the headers of each message, and whether the program could respond to it."""
    nc = await nats.connect(server.url)
    sub, responses = await nc.subscribe("a"), await nc.subscribe("r")
    await processed(nc)
    found: list[tuple[Any, bytes]] = []
    with connect_raw(server.port) as raw:
        for lines, _ in LINES:
            block = b"NATS/1.0\r\n" + lines + b"\r\n\r\n"
            raw.sendall(b"HPUB a r %d %d\r\n%s\r\n" % (len(block), len(block), block))
            msg = await sub.next_msg(timeout=SOON)
            await msg.respond(b"ok")
            found.append((msg.headers, (await responses.next_msg(timeout=SOON)).data))
    await nc.close()
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
def test_headers_of_others(nats, server):
    assert run(receive, nats, server) == [(expected, b"ok") for _, expected in LINES]


async def respond_to_odd_names(nats: Any, server: Server) -> dict[str, str] | None:
    """Return the headers of the response to a request whose names cannot all be published."""
    nc = await nats.connect(server.url)
    sub, responses = await nc.subscribe("a"), await nc.subscribe("r")
    await processed(nc)
    with connect_raw(server.port) as raw:
        raw.sendall(b"HPUB a r 33 33\r\nNATS/1.0\r\nA(B): 1\r\nTrace: abc\r\n\r\n\r\n")
        try:
            await (await sub.next_msg(timeout=SOON)).respond(b"ok")
            headers: dict[str, str] | None = (await responses.next_msg(timeout=SOON)).headers
        finally:
            await nc.close()
    return headers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
def test_a_request_with_an_odd_header_can_be_answered(server):
    theirs: Any = pytest.importorskip("nats")
    ours: Any = importlib.import_module("natsproto.compat.nats")
    with pytest.raises(theirs.errors.BadHeaderError):
        run(respond_to_odd_names, theirs, server)
    assert run(respond_to_odd_names, ours, server) == {"Trace": "abc"}
