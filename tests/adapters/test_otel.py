"""Spans of OpenTelemetry on every kind of runtime, with the in-memory exporter."""

from __future__ import annotations

import threading

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import jetstream.blocking
from jetstream import JetStream
from jetstream.tools.otel import Telemetry
from natsproto.adapters import blocking, threads
from natsproto.errors import InvalidValue, NoResponders
from natsproto.testing import Server
from natsproto.wire.frames import Msg
from tests.adapters.runtimes import RUNTIMES, Runtime

WAIT = 10.0


class Stage:
    """A Telemetry, its spans and its metrics."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        self.telemetry = Telemetry(tracer_provider=provider, meter_provider=meters)
        self.tracer = provider.get_tracer("test")

    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def counts(self):
        data = self.reader.get_metrics_data()
        return {
            metric.name: sum(
                getattr(point, "value", None) or getattr(point, "count", 0)
                for point in metric.data.data_points
            )
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


def verify(stage, stream, consumer):
    """Check the spans of one message: published, processed, acknowledged."""
    spans = stage.spans()
    publish, process = spans[f"publish {stream.lower()}.new"], spans[f"process {stream}"]
    ack = spans[f"ack {stream}"]
    assert (publish.kind, process.kind, ack.kind) == (
        SpanKind.PRODUCER,
        SpanKind.CONSUMER,
        SpanKind.CLIENT,
    )
    assert process.parent.span_id == publish.context.span_id
    assert ack.parent.span_id == process.context.span_id
    assert len({span.context.trace_id for span in (publish, process, ack)}) == 1
    assert publish.attributes["messaging.system"] == "nats"
    assert publish.attributes["messaging.operation.type"] == "send"
    assert publish.attributes["messaging.message.id"] == "id-1"
    assert publish.attributes["messaging.message.body.size"] == 5
    assert process.attributes["messaging.consumer.group.name"] == consumer
    assert process.attributes["messaging.nats.stream"] == stream
    assert process.attributes["messaging.message.id"] == "id-1"
    counts = stage.counts()
    assert counts["messaging.client.sent.messages"] == 1
    assert counts["messaging.client.consumed.messages"] == 1
    assert counts["messaging.process.duration"] == 1
    assert counts["messaging.client.operation.duration"] == 2


@pytest.mark.rule("D-OTEL-1", "D-OTEL-2")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_message_on_an_event_loop(runtime, server):
    runtime = Runtime(runtime)
    stage = Stage()
    name = "OT_" + runtime.name

    async def main():
        telemetry = stage.telemetry
        async with runtime.connect(server.url) as client:
            js = JetStream(client)
            stream = await js.create_stream(name=name, subjects=[name.lower() + ".>"])
            consumer = await stream.create_consumer(durable_name="w")
            subject = name.lower() + ".new"
            await telemetry.publish(js, subject, b"hello", msg_id="id-1", headers={"A": "b"})
            async with consumer.consume() as messages:
                msg = await messages.next(WAIT)
                assert msg.headers["A"] == "b"
                with telemetry.process(msg):
                    await telemetry.settle(msg, "ack")
            await stream.delete()

    runtime.run(main)
    verify(stage, name, "w")


@pytest.mark.rule("D-OTEL-1", "D-OTEL-2")
@pytest.mark.parametrize("adapter", [blocking, threads], ids=lambda each: each.__name__)
def test_a_message_without_an_event_loop(adapter, server):
    stage = Stage()
    name = "OT_" + adapter.__name__.rpartition(".")[2]
    telemetry = stage.telemetry
    with adapter.connect(server.url) as client:
        js = jetstream.blocking.JetStream(client)
        stream = js.create_stream(name=name, subjects=[name.lower() + ".>"])
        consumer = stream.create_consumer(durable_name="w")
        telemetry.publish(js, name.lower() + ".new", b"hello", msg_id="id-1")
        with consumer.consume(stop_after=1) as messages:
            messages.run(telemetry.handler(lambda msg: telemetry.settle(msg, "ack")))
        stream.delete()
    verify(stage, name, "w")


def verify_request(stage, subject):
    """The spans of a request: the handler's is a child of the requester's."""
    spans = stage.spans()
    request, process = spans[f"request {subject}"], spans[f"process {subject}"]
    assert (request.kind, process.kind) == (SpanKind.CLIENT, SpanKind.CONSUMER)
    assert process.parent.span_id == request.context.span_id
    assert request.start_time < process.start_time <= process.end_time <= request.end_time
    assert request.attributes["messaging.operation.name"] == "request"
    assert StatusCode.ERROR not in {span.status.status_code for span in (request, process)}


@pytest.mark.rule("D-OTEL-1")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_request_on_an_event_loop(runtime, server):
    runtime = Runtime(runtime)
    stage = Stage()
    subject = "ot.request." + runtime.name

    async def main():
        async with runtime.connect(server.url) as client:
            sub = await client.subscribe(subject)

            async def serve():
                msg = await sub.next(WAIT)
                with stage.telemetry.process(msg):
                    await runtime.sleep(0)
                await client.respond(msg, b"answer")

            task = runtime.start(serve)
            reply = await stage.telemetry.request(client, subject, b"?", timeout=WAIT)
            assert reply.data == b"answer"
            await task.result()

    runtime.run(main)
    verify_request(stage, subject)


@pytest.mark.rule("D-OTEL-1")
def test_a_request_between_threads(server):
    stage = Stage()
    with threads.connect(server.url) as client, client.subscribe("ot.request.threads") as sub:

        def serve():
            msg = sub.next(WAIT)
            with stage.telemetry.process(msg):
                pass
            client.respond(msg, b"answer")

        thread = threading.Thread(target=serve)
        thread.start()
        reply = stage.telemetry.request(client, "ot.request.threads", b"?", timeout=WAIT)
        thread.join()
    assert reply.data == b"answer"
    verify_request(stage, "ot.request.threads")


@pytest.mark.rule("D-OTEL-1")
def test_a_batch_has_links(server):
    stage = Stage()
    telemetry = stage.telemetry
    with blocking.connect(server.url) as client:
        js = jetstream.blocking.JetStream(client)
        stream = js.create_stream(name="OT_LINKS", subjects=["ot_links.>"])
        consumer = stream.create_consumer(durable_name="w")
        for number in range(2):
            telemetry.publish(js, f"ot_links.{number}", b"x", destination="ot_links.*")
        js.publish("ot_links.plain", b"without a context")
        with telemetry.process_batch(consumer.fetch(3)):
            pass
        stream.delete()
    spans = stage.exporter.get_finished_spans()
    assert [span.name for span in spans] == ["publish ot_links.*"] * 2 + ["process OT_LINKS"]
    published = {span.context.span_id for span in spans[:2]}
    assert {link.context.span_id for link in spans[2].links} == published
    assert spans[2].attributes["messaging.batch.message_count"] == 3
    assert stage.counts()["messaging.client.consumed.messages"] == 3


@pytest.mark.rule("D-OTEL-1", "D-OTEL-2", "D-OTEL-3")
def test_requests_and_errors(server):
    stage = Stage()
    telemetry = stage.telemetry

    def fail(msg):
        telemetry.publish(client, msg.reply, b"4")
        raise ValueError("the payload")

    with threads.connect(server.url) as client:
        with pytest.raises(NoResponders):
            telemetry.request(client, "ot.nobody", b"x")
        with client.subscribe("ot.double") as sub:
            with stage.tracer.start_as_current_span("outer"):
                telemetry.publish(client, "ot.double", b"2", reply="_INBOX.secret")
            msg = sub.next(WAIT)
        with pytest.raises(ValueError, match="payload"):
            telemetry.handler(fail)(msg)
    spans = stage.spans()
    failed = spans["request ot.nobody"]
    assert (failed.kind, failed.attributes["error.type"]) == (SpanKind.CLIENT, "NoResponders")
    assert failed.status.status_code == StatusCode.ERROR
    assert spans["publish ot.double"].parent.span_id == spans["outer"].context.span_id
    assert spans["process ot.double"].status.description == "ValueError"
    assert spans["process ot.double"].parent.span_id == spans["publish ot.double"].context.span_id
    reply = spans["publish (temporary)"]  # never the inbox
    assert reply.attributes["messaging.destination.temporary"] is True


@pytest.mark.rule("D-OTEL-1")
def test_messages_without_a_context():
    stage = Stage()
    broken = Msg(b"s", 1, b"", b"x", b"NATS/1.0\r\nno colon\r\n\r\n")
    with stage.tracer.start_as_current_span("outer"), stage.telemetry.process(broken):
        pass
    assert stage.spans()["process s"].parent.span_id == stage.spans()["outer"].context.span_id
    with stage.telemetry.process_batch([], destination="empty"):
        pass
    assert stage.spans()["process empty"].links == ()
    assert stage.telemetry.inject({"Traceparent": "old", "A": "b"}).get("A") == "b"
    with pytest.raises(InvalidValue, match=r"settlement does not exist: 'eat' .*D-OTEL-1"):
        stage.telemetry.settle(broken, "eat")
