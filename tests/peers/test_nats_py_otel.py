"""The W3C context in headers, to and from nats-py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jetstream.tools.otel import Telemetry
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server

nats: Any = pytest.importorskip("nats")
pytestmark = pytest.mark.rule("D-OTEL-1")


def test_a_context_goes_to_nats_py_and_comes_back():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer_provider=provider)

    async def main(server: Server) -> None:
        theirs = await nats.connect(server.url)
        sub = await theirs.subscribe("there")
        await theirs.flush()
        async with connect(server.url) as client:
            back = await client.subscribe("back")
            await client.flush()
            await telemetry.publish(client, "there", b"x")
            msg = await sub.next_msg(timeout=10)
            context = propagate.extract(msg.headers)
            with provider.get_tracer("theirs").start_as_current_span("theirs", context=context):
                headers: dict[str, str] = {}
                propagate.inject(headers)
                await theirs.publish("back", b"y", headers=headers)
            with telemetry.process(await back.next(10)):
                assert trace.get_current_span().get_span_context().is_valid
        await theirs.close()

    with Server() as server:
        asyncio.run(main(server))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert spans["theirs"].parent.span_id == spans["publish there"].context.span_id
    assert spans["process back"].parent.span_id == spans["theirs"].context.span_id


def test_a_request_is_answered_by_nats_py():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer_provider=provider)
    tracer = provider.get_tracer("theirs")

    async def main(server: Server) -> None:
        theirs = await nats.connect(server.url)

        async def serve(msg: Any) -> None:
            with tracer.start_as_current_span("theirs", context=propagate.extract(msg.headers)):
                await msg.respond(b"answer")

        await theirs.subscribe("ask", cb=serve)
        await theirs.flush()
        async with connect(server.url) as client:
            reply = await telemetry.request(client, "ask", b"?", timeout=10)
            assert reply.data == b"answer"
        await theirs.close()

    with Server() as server:
        asyncio.run(main(server))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert spans["theirs"].parent.span_id == spans["request ask"].context.span_id
