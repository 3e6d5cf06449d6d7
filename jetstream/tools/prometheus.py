"""Prometheus: a collector that reads clients and consumers when the server scrapes.

    from prometheus_client import REGISTRY
    collector = ClientCollector(REGISTRY)
    collector.add_client(client, "billing")
    collector.add_messages(messages, "orders")

It keeps no reference to them (D-PROM-1), so one that is dropped disappears from the metrics.
Reading takes no I/O and no lock: it is safe from the thread of an HTTP server. It needs the extra
`prometheus`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from natsproto.connection.states import CONNECTED
from natsproto.errors import MissingExtra

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError:
    raise MissingExtra(
        "prometheus-client is not installed: pip install 'natsproto[prometheus]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

# Name, help; the value is computed below.
_COUNTERS = [
    ("nats_client_in_messages", "Messages received"),
    ("nats_client_in_bytes", "Bytes received"),
    ("nats_client_out_messages", "Messages published"),
    ("nats_client_out_bytes", "Bytes sent"),
    ("nats_client_reconnects", "Connections after the first"),
    ("nats_client_dropped_messages", "Messages dropped because a subscription's queue was full"),
]
_GAUGES = [
    ("nats_client_connected", "Whether the client is connected"),
    ("nats_client_pending_bytes", "Bytes that wait to be sent"),
    ("nats_client_slow_consumers", "Subscriptions that have dropped messages"),
]


class ClientCollector(Collector):
    """The metrics of clients, labeled by `client`, and of consumers, labeled by `consumer`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._clients: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._messages: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        if registry is not None:
            registry.register(self)

    def add_client(self, client: Any, name: str = "") -> None:
        """Add a client, asynchronous or blocking, under this name, or that of its options."""
        inner = getattr(client, "inner", client)
        self._clients[client] = name or inner.session.connection.options.name

    def add_messages(self, messages: Any, name: str) -> None:
        """Add a consume() or a push subscription, under the name of its consumer."""
        self._messages[messages] = name

    def collect(self) -> Iterable[Metric]:
        """Return the current metrics; Prometheus's client library calls this."""
        counters = [CounterMetricFamily(name, text, labels=["client"]) for name, text in _COUNTERS]
        gauges = [GaugeMetricFamily(name, text, labels=["client"]) for name, text in _GAUGES]
        for client, name in list(self._clients.items()):
            connection = getattr(client, "inner", client).session.connection
            stats = connection.stats
            counts = [stats.in_msgs, stats.in_bytes, stats.out_msgs, stats.out_bytes]
            for counter, value in zip(counters, [*counts, stats.reconnects, stats.dropped]):
                counter.add_metric([name], value)
            values = [
                connection.state == CONNECTED,
                connection.outbound.pending_bytes,
                len(connection.subscriptions.slow),
            ]
            for gauge, value in zip(gauges, values):
                gauge.add_metric([name], value)
        return [*counters, *gauges, *self._consumers()]

    def _consumers(self) -> list[Metric]:
        pending = GaugeMetricFamily(
            "nats_consumer_pending_messages",
            "Messages that have arrived and were not taken",
            labels=["consumer"],
        )
        dropped = CounterMetricFamily(
            "nats_consumer_dropped_messages",
            "Messages that did not fit in the queue",
            labels=["consumer"],
        )
        for messages, name in list(self._messages.items()):
            pending.add_metric([name], messages.pending)
            dropped.add_metric([name], messages.dropped)
        return [pending, dropped]
