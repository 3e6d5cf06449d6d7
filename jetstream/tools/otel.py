"""OpenTelemetry: spans and metrics of messages, with the W3C context in their headers.

    telemetry = Telemetry()
    await telemetry.publish(js, "orders.new", data)         # a PRODUCER span
    reply = await telemetry.request(client, "price", data)  # a CLIENT span
    async for msg in messages:
        with telemetry.process(msg):                        # a CONSUMER span, child of the publish
            ...
            await telemetry.settle(msg, "ack")              # a CLIENT span

The same calls work with blocking clients, without `await`. Nothing is patched: what is not called
through a Telemetry has no span. The names and attributes follow the semantic conventions for
messaging. Span names contain the stream, or the `destination` of the call, or the subject; never an
inbox (D-OTEL-2).

It needs the extra `otel`, which is opentelemetry-api alone; the program chooses the SDK. The
context is active within the block, not in an iterator, so it cannot leak into other tasks.
"""

from __future__ import annotations

import inspect
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from natsproto.errors import HeaderError, InvalidValue, MissingExtra, NatsError
from natsproto.version import VERSION
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode
except ImportError:
    raise MissingExtra(
        "opentelemetry-api is not installed: pip install 'natsproto[otel]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import Span, TracerProvider

    from natsproto.wire.headers import HeadersLike

SETTLEMENTS = ("ack", "ack_sync", "nak", "term", "in_progress")
_TEMPORARY = "(temporary)"
_MSG_ID = "Nats-Msg-Id"


class Telemetry:
    """Makes the spans (D-OTEL-1) and metrics of a program; one is enough for all its clients.

    tracer_provider, meter_provider, propagator   None: the global ones of OpenTelemetry
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("natsproto", VERSION, tracer_provider)
        self._propagator = propagator or propagate.get_global_textmap()
        meter = metrics.get_meter("natsproto", VERSION, meter_provider)
        self._durations = {
            "process": meter.create_histogram("messaging.process.duration", "s"),
            "": meter.create_histogram("messaging.client.operation.duration", "s"),
        }
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}")

    # Calls

    def publish(
        self,
        target: Any,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeadersLike | None = None,
        destination: str = "",
        **options: Any,
    ) -> Any:
        """Publish with a span: `target` is a client, a JetStream or a publish window.

        Returns the result of `target.publish`, so await it if that is a coroutine. `destination` is
        a name of low cardinality for the span, where subjects contain ids. A `msg_id` among the
        options is an attribute of the span.
        """
        operation = ("publish", "send", SpanKind.PRODUCER, subject, destination)
        return self._call(target.publish, operation, subject, data, headers, options)

    def request(
        self,
        target: Any,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeadersLike | None = None,
        destination: str = "",
        **options: Any,
    ) -> Any:
        """Send a request with a span, which lasts until the response; `target` is a client."""
        operation = ("request", "send", SpanKind.CLIENT, subject, destination)
        return self._call(target.request, operation, subject, data, headers, options)

    def settle(self, msg: Any, how: str = "ack", *args: Any, **options: Any) -> Any:
        """Settle a message with a span: `how` is ack, ack_sync, nak, term or in_progress.

        Returns the result of that method, so await it if that is a coroutine.
        """
        if how not in SETTLEMENTS:
            text = "settlement does not exist: %s (one of %s)"
            raise InvalidValue(text % (shorten(how), ", ".join(SETTLEMENTS)), "D-OTEL-1")
        method = getattr(msg, how)
        attributes = self._attributes(how, "settle", msg.subject, "", len(msg.data))
        attributes.update(_delivery(msg))
        name = "%s %s" % (how, _name_of(attributes, ""))
        if not inspect.iscoroutinefunction(method):
            with self._span(name, SpanKind.CLIENT, attributes):
                return method(*args, **options)

        async def call() -> Any:
            with self._span(name, SpanKind.CLIENT, attributes):
                return await method(*args, **options)

        return call()

    def _call(
        self,
        method: Callable[..., Any],
        operation: tuple[str, str, SpanKind, str, str],
        subject: str,
        data: bytes,
        headers: HeadersLike | None,
        options: dict[str, Any],
    ) -> Any:
        name, kind_name, kind, _, destination = operation
        attributes = self._attributes(name, kind_name, subject, destination, len(data))
        if "msg_id" in options:
            attributes["messaging.message.id"] = options["msg_id"]
        span_name = "%s %s" % (name, _name_of(attributes, destination))
        if not inspect.iscoroutinefunction(method):
            with self._span(span_name, kind, attributes):
                return method(subject, data, headers=self.inject(headers), **options)

        async def call() -> Any:
            with self._span(span_name, kind, attributes):
                return await method(subject, data, headers=self.inject(headers), **options)

        return call()

    # Blocks

    @contextmanager
    def process(self, msg: Any, *, destination: str = "") -> Generator[Span, None, None]:
        """Process a message in a span, which is a child of the span that published it."""
        attributes = self._attributes("process", "process", msg.subject, destination, len(msg.data))
        attributes.update(_delivery(msg))
        name = "process %s" % _name_of(attributes, destination)
        context = self.extract(msg)
        known = trace.get_current_span(context).get_span_context().is_valid
        # Without a context in the message, the span is a child of the current one.
        parent = context if known else None
        with self._span(name, SpanKind.CONSUMER, attributes, parent) as span:
            yield span

    @contextmanager
    def process_batch(
        self, messages: Iterable[Any], *, destination: str = ""
    ) -> Generator[Span, None, None]:
        """Process several messages in one span, with a link to each span that published one."""
        batch = list(messages)
        attributes: dict[str, Any] = {
            "messaging.system": "nats",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.batch.message_count": len(batch),
        }
        if batch:
            attributes.update(_delivery(batch[0]))
        contexts = [trace.get_current_span(self.extract(msg)).get_span_context() for msg in batch]
        links = [Link(context) for context in contexts if context.is_valid]
        name = "process %s" % _name_of(attributes, destination)
        with self._span(name, SpanKind.CONSUMER, attributes, None, links) as span:
            yield span

    def handler(
        self, callback: Callable[[Any], Any], *, destination: str = ""
    ) -> Callable[..., Any]:
        """Return a callback for `run` that processes each message in a span."""
        if not inspect.iscoroutinefunction(callback):

            def handle(msg: Any) -> Any:
                with self.process(msg, destination=destination):
                    return callback(msg)

            return handle

        async def handle_async(msg: Any) -> Any:
            with self.process(msg, destination=destination):
                return await callback(msg)

        return handle_async

    # The context in headers

    def inject(self, headers: HeadersLike | None = None) -> Headers:
        """Return the headers with the current context; those that they have are replaced."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)  # pyright: ignore[reportArgumentType]
        found = Headers() if headers is None else Headers(headers)
        pairs = [(name, value) for name, value in found.items() if name.lower() not in carrier]
        return Headers(pairs + list(carrier.items()))

    def extract(self, msg: Any) -> Context:
        """Return the context in the headers of a message; an empty one if there is none."""
        try:
            headers = msg.headers
        except HeaderError:
            headers = None
        carrier = (
            {} if headers is None else {name.lower(): value for name, value in headers.items()}
        )
        return self._propagator.extract(carrier, context=otel_context.Context())

    # How it works

    def _attributes(
        self, operation: str, kind: str, subject: str, destination: str, size: int
    ) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "messaging.system": "nats",
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            "messaging.destination.name": subject,
            "messaging.message.body.size": size,
        }
        if destination:
            attributes["messaging.destination.template"] = destination
        if subject.startswith("_INBOX."):
            attributes["messaging.destination.temporary"] = True
        return attributes

    @contextmanager
    def _span(
        self,
        name: str,
        kind: SpanKind,
        attributes: dict[str, Any],
        parent: Context | None = None,
        links: list[Link] | None = None,
    ) -> Generator[Span, None, None]:
        operation = attributes["messaging.operation.type"]
        dimensions = {
            key: attributes[key]
            for key in ("messaging.system", "messaging.operation.name", "messaging.operation.type")
        }
        began = time.perf_counter()
        with self._tracer.start_as_current_span(
            name,
            context=parent,
            kind=kind,
            attributes=attributes,
            links=links or [],
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                kind_of_error = type(error).__name__
                dimensions["error.type"] = kind_of_error
                span.set_attribute("error.type", kind_of_error)
                # D-OTEL-3: the text of the user's own exceptions may quote a message.
                text = str(error) if isinstance(error, NatsError) else kind_of_error
                span.set_status(Status(StatusCode.ERROR, text))
                raise
            finally:
                key = "process" if operation == "process" else ""
                self._durations[key].record(time.perf_counter() - began, dimensions)
                if operation == "send":
                    self._sent.add(1, dimensions)
                elif operation == "process":
                    count = attributes.get("messaging.batch.message_count", 1)
                    self._consumed.add(count, dimensions)


def _delivery(msg: Any) -> dict[str, Any]:
    """Return the attributes of a message from JetStream; none for any other."""
    try:
        metadata = msg.metadata
        headers = msg.headers
    except (AttributeError, NatsError):
        return {}
    found: dict[str, Any] = {
        "messaging.consumer.group.name": metadata.consumer,
        "messaging.nats.stream": metadata.stream,
        "messaging.nats.stream_sequence": metadata.stream_seq,
        "messaging.nats.delivered": metadata.delivered,
    }
    if headers is not None and headers.get(_MSG_ID):
        found["messaging.message.id"] = headers.get(_MSG_ID)
    return found


def _name_of(attributes: dict[str, Any], destination: str) -> str:
    """Return the destination for the name of a span (D-OTEL-2)."""
    if destination:
        return destination
    stream = attributes.get("messaging.nats.stream")
    if stream:
        return str(stream)
    if attributes.get("messaging.destination.temporary"):
        return _TEMPORARY
    return str(attributes.get("messaging.destination.name", _TEMPORARY))
