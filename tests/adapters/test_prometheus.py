"""The collector for Prometheus."""

from __future__ import annotations

import asyncio
import gc

import prometheus_client
import pytest

import jetstream.blocking
from jetstream.tools.prometheus import ClientCollector
from natsproto.adapters import blocking
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.rule("D-PROM-1")
def test_metrics_of_a_client_and_a_consumer(server):
    registry = prometheus_client.CollectorRegistry()
    collector = ClientCollector(registry)
    with blocking.connect(server.url, name="billing") as client:
        collector.add_client(client)
        client.publish("prom.a", b"12345")
        client.flush()
        assert registry.get_sample_value("nats_client_connected", {"client": "billing"}) == 1
        assert (
            registry.get_sample_value("nats_client_out_messages_total", {"client": "billing"})
            == client.stats.out_msgs
        )
        js = jetstream.blocking.JetStream(client)
        stream = js.create_stream(name="PROM", subjects=["prom.>"])
        js.publish("prom.a", b"1")
        with stream.create_consumer(durable_name="w").consume() as messages:
            collector.add_messages(messages, "w")
            messages.next(10)
            text = prometheus_client.generate_latest(registry).decode()
        assert 'nats_consumer_pending_messages{consumer="w"} 0.0' in text
        assert 'nats_consumer_dropped_messages_total{consumer="w"} 0.0' in text
        stream.delete()
    assert registry.get_sample_value("nats_client_connected", {"client": "billing"}) == 0


@pytest.mark.rule("D-PROM-1")
def test_a_scrape_from_another_thread_and_a_client_that_is_gone(server):
    registry = prometheus_client.CollectorRegistry()
    collector = ClientCollector()
    registry.register(collector)

    async def main():
        async with connect(server.url) as client:
            collector.add_client(client, "loop")
            text = await asyncio.to_thread(prometheus_client.generate_latest, registry)
            assert b'nats_client_connected{client="loop"} 1.0' in text
            assert b'nats_client_slow_consumers{client="loop"} 0.0' in text

    asyncio.run(main())
    gc.collect()
    assert b'client="loop"' not in prometheus_client.generate_latest(registry)
