"""Traces: the steps of a client, as sinks get them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from natsproto.events import Disconnected
from natsproto.testing.context import WAIT, Context, next_event
from natsproto.testing.suite import check
from natsproto.trace import FlightRecorder, JsonSink, TextSink

from .reconnect import back

if TYPE_CHECKING:
    from natsproto.trace import Step


@check()
async def check_trace_of_a_message(ctx: Context) -> None:
    """A trace contains the handshake and every frame in both directions, in order."""
    steps: list[Step] = []
    client = await ctx.client(trace=steps.append)
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"hello")
    await sub.next(WAIT)
    await client.close()
    names = [step.as_dict().get("name") or step.text for step in steps]
    wanted = ["connect", "Dial", "transport_opened", "INFO", "CONNECT", "PING", "PONG"]
    wanted += ["GREETING -> CONNECTED", "Connected", "SUB", "PUB", "MSG", "Closed"]
    rest = iter(names)
    assert all(name in rest for name in wanted), names
    times = [step.time for step in steps]
    assert times == sorted(times)


@check()
async def check_trace_without_secrets(ctx: Context) -> None:
    """Neither text nor JSON contains the password of a URL or of CONNECT."""
    server = ctx.shared_server(authorization={"user": "ulrich", "password": "hush-hush"})
    text, lines = io.StringIO(), io.StringIO()
    for sink in (TextSink(text), JsonSink(lines)):
        client = await ctx.connect(
            server.url.replace("nats://", "nats://ulrich:hush-hush@"), trace=sink
        )
        await client.flush(WAIT)
        await client.close()
    for written in (text.getvalue(), lines.getvalue()):
        assert "CONNECT {" in written.replace('\\"', '"'), written
        assert "hush" not in written, written
    kinds = {json.loads(line)["kind"] for line in lines.getvalue().splitlines()}
    assert kinds == {"in", "out", "input", "state", "effect", "event"}, kinds


@check()
async def check_flight_recorder(ctx: Context) -> None:
    """The recorder writes the last steps when the connection is lost, and keeps recording."""
    server = ctx.own_server()
    stream = io.StringIO()
    recorder = FlightRecorder(50, stream=stream)
    client = await ctx.connect(server, trace=recorder)
    await client.publish(ctx.subject, b"the last message")
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    written = stream.getvalue()
    assert "steps before Disconnected" in written, written
    assert "the last message" in written, written
    server.restart()
    await back(client)
    assert 0 < len(recorder.steps) <= 50
