"""The types of JetStream, with and without async and await.

This file is checked, but never run: a wrong `assert_type` is an error.
"""

from __future__ import annotations

from datetime import datetime, timezone

from typing_extensions import assert_type

import jetstream
from jetstream import blocking as js_blocking
from jetstream.pull.messages import Batch, Messages
from jetstream.push.api import PushMessages
from jetstream.schema import info as infos
from jetstream.subscribe.pull import PullSubscription
from natsproto import Headers, blocking, client
from natsproto.errors import NatsError


async def asynchronous(nc: client.Client) -> None:
    js = jetstream.JetStream(nc, domain="hub", timeout=1)
    assert_type(await js.account_info(), infos.AccountInfo)
    stream = await js.create_stream(name="S", subjects=["s.>"], storage="memory", max_age=1.5)
    assert_type(stream, jetstream.Stream)
    assert_type(await js.update_stream(stream.cached_info.config, max_msgs=5), jetstream.Stream)
    assert_type(await js.create_or_update_stream({"name": "S"}), jetstream.Stream)
    assert_type(await js.stream("S"), jetstream.Stream)
    assert_type(await js.streams(), jetstream.Listing[infos.StreamInfo])
    assert_type(await js.stream_names("s.>"), jetstream.Listing[str])
    assert_type(await js.stream_name_by_subject("s.a"), str)
    assert_type(await js.delete_stream("S"), None)
    assert_type(await stream.info(subjects_filter=">"), infos.StreamInfo)
    assert_type(await stream.purge(subject="s.a", keep=1), int)
    assert_type(await stream.get_msg(1), jetstream.StoredMsg)
    now = datetime.now(timezone.utc)
    assert_type(await stream.get_msgs(batch=3, start_time=now), list[jetstream.StoredMsg])
    assert_type(await stream.get_last_msgs(["s.>"], up_to_seq=3), list[jetstream.StoredMsg])
    assert_type((await stream.get_msg(last_by_subject="s.a")).headers, Headers | None)
    assert_type(await stream.get_counter("c"), jetstream.Counter)
    assert_type(await stream.get_counters(("c.>",)), list[jetstream.Counter])
    assert_type(await stream.delete_msg(1, secure=True), None)
    consumer = await stream.create_consumer(durable_name="C", ack_policy="explicit", ack_wait=5)
    assert_type(consumer, jetstream.Consumer)
    assert_type(await js.create_consumer("S", filter_subjects=["a", "b"]), jetstream.Consumer)
    assert_type(await stream.consumer("C"), jetstream.Consumer)
    assert_type(await js.consumers("S"), jetstream.Listing[infos.ConsumerInfo])
    assert_type(await stream.consumer_names(), jetstream.Listing[str])
    assert_type(await js.pause_consumer("S", "C", "2030-01-01T00:00:00Z"), infos.ConsumerPause)
    assert_type(await stream.resume_consumer("C"), infos.ConsumerPause)
    assert_type(await stream.reset_consumer("C", 5), infos.ConsumerInfo)
    assert_type(await stream.unpin_consumer("C", "g"), None)
    assert_type(await consumer.info(), infos.ConsumerInfo)
    assert_type(await js.publish("s.a", b"x", msg_id="1", expect_last_seq=0, ttl=5), infos.PubAck)
    assert_type(await js.add_to_counter("c", -1), int)
    assert_type(await js.schedule("s", when="@daily", target="t", ttl="never"), infos.PubAck)
    async with js.publisher(max_pending=5, ack_timeout=1) as window:
        assert_type(window, jetstream.PublishWindow)
        publication = await window.publish("s.a", memoryview(b""), msg_id="1")
        assert_type(publication, jetstream.Publication)
        assert_type(await publication.result(), infos.PubAck)
        assert_type((publication.done, publication.subject), tuple[bool, str])
        assert_type(publication.ack, infos.PubAck | None)
        assert_type(publication.error, NatsError | None)
        assert_type(await window.flush(), None)
    batch = js.atomic_batch(timeout=1)
    assert_type(await batch.add("s.a", headers=[("A", "b")]), None)
    assert_type(await batch.commit("s.b"), infos.PubAck)
    async with js.fast_batch(allow_gaps=True, flow=100) as fast:
        assert_type(await fast.add("s.a", b"", msg_id="1"), int)
        assert_type(await fast.commit("s.a"), infos.PubAck)
        assert_type(await fast.close(), infos.PubAck | None)
        assert_type((fast.size, fast.stored, fast.lost), tuple[int, int, int])
    assert_type(await consumer.fetch(5, no_wait=True), Batch)
    async for msg in consumer.fetch(5):
        assert_type(msg, jetstream.JsMsg)
    async for msg in consumer.iter_fetch(5):
        assert_type(msg, jetstream.JsMsg)
    assert_type(consumer.cached_info, infos.ConsumerInfo)
    bound = js.bind_consumer("S", "C", ack_policy="none", ack_wait=5)
    assert_type(bound, jetstream.BoundConsumer)
    assert_type(stream.bind_consumer("C"), jetstream.BoundConsumer)
    assert_type(bound.cached_info, infos.ConsumerInfo | None)
    ordered = await stream.ordered_consumer(filter_subjects="s.>", deliver_policy="new")
    assert_type(ordered, jetstream.OrderedConsumer)
    assert_type(await ordered.next(), jetstream.JsMsg | None)
    assert_type(ordered.consume(stop_after=3), Messages)
    assert_type(await consumer.next(expires=1), jetstream.JsMsg | None)
    assert_type(consumer.consume(max_messages=5), Messages)
    async for msg in consumer.consume():
        assert_type(msg, jetstream.JsMsg)
        assert_type(msg.metadata, jetstream.Metadata)
        assert_type((msg.metadata.stream, msg.metadata.stream_seq), tuple[str, int])
        assert_type(await msg.ack(), None)
        assert_type(await msg.nak(delay=1.5), None)
        assert_type(await msg.ack_sync(timeout=1), None)
    assert_type(await consumer.consume().run(handle, concurrency=3, nak=True), None)
    async with await js.pull_subscribe("s.a", durable="C", ack_wait=5) as sub:
        assert_type(sub, PullSubscription)
        assert_type(await sub.fetch(10, timeout=1), Batch)
        assert_type(await sub.info(), infos.ConsumerInfo)
        assert_type((sub.stream, sub.name, sub.closed), tuple[str, str, bool])
        assert_type(await sub.unsubscribe(), None)


async def pushed(js: jetstream.JetStream) -> None:
    async with await js.subscribe("s.a", durable="C", queue="q", ack_wait=5) as messages:
        assert_type(messages, PushMessages)
        assert_type((messages.stream, messages.name), tuple[str, str])
        assert_type((messages.pending, messages.dropped, messages.closed), tuple[int, int, bool])
        async for msg in messages:
            assert_type(msg, jetstream.JsMsg)
        assert_type(await messages.next(timeout=1), jetstream.JsMsg)
        assert_type(await messages.drain(timeout=1), None)
        assert_type(await messages.unsubscribe(), None)
    assert_type(await js.subscribe("s.a", ordered=True, deliver_policy="new"), PushMessages)


async def handle(msg: jetstream.JsMsg) -> bool:
    return msg.settled


def handle_plainly(msg: js_blocking.JsMsg) -> None:
    assert_type(msg.ack(), None)


def synchronous(nc: blocking.Client) -> None:
    js = js_blocking.JetStream(nc, prefix="my.js")
    stream = js.create_stream(name="S", subjects=["s.>"])
    assert_type(stream, js_blocking.Stream)
    assert_type(js.update_stream({"name": "S"}, max_msgs=5), js_blocking.Stream)
    assert_type(js.streams(), jetstream.Listing[infos.StreamInfo])
    assert_type(stream.name, str)
    assert_type(stream.purge(seq=5), int)
    assert_type(stream.get_msg(1), jetstream.StoredMsg)
    assert_type(stream.get_counters(["c.>"]), list[jetstream.Counter])
    consumer = stream.create_consumer(durable_name="C")
    assert_type(consumer, js_blocking.Consumer)
    assert_type(js.consumer("S", "C"), js_blocking.Consumer)
    assert_type(consumer.info(), infos.ConsumerInfo)
    assert_type(consumer.cached_info, infos.ConsumerInfo)
    assert_type(js.publish("s.a", b"x", retries=0, expect_stream="S"), infos.PubAck)
    assert_type(js.add_to_counter("c"), int)
    with js.publisher(retries=0) as window:
        assert_type(window, js_blocking.PublishWindow)
        publication = window.publish("s.a", ttl=5)
        assert_type(publication, js_blocking.Publication)
        assert_type(publication.result(), infos.PubAck)
        assert_type((window.pending, publication.done), tuple[int, bool])
    batch = js.atomic_batch()
    assert_type(batch, js_blocking.AtomicBatch)
    assert_type(batch.commit("s.a"), infos.PubAck)
    with js.fast_batch() as fast:
        assert_type(fast, js_blocking.FastBatch)
        assert_type(fast.add("s.a", b"", msg_id="1"), int)
        assert_type(fast.close(), infos.PubAck | None)
        assert_type(fast.take_losses()[0].first, int)
    assert_type(consumer.fetch(max_bytes=5), js_blocking.Batch)
    for msg in consumer.iter_fetch(5):
        assert_type(msg, js_blocking.JsMsg)
    bound = js.bind_consumer("S", "C")
    assert_type(bound, js_blocking.BoundConsumer)
    assert_type(bound.cached_info, infos.ConsumerInfo | None)
    ordered = stream.ordered_consumer(opt_start_seq=5, deliver_policy="by_start_sequence")
    assert_type(ordered, js_blocking.OrderedConsumer)
    assert_type(ordered.fetch(5), js_blocking.Batch)
    assert_type(ordered.consume(), js_blocking.Messages)
    assert_type(consumer.next(), js_blocking.JsMsg | None)
    with consumer.consume() as messages:
        assert_type(messages, js_blocking.Messages)
        for msg in messages:
            assert_type(msg, js_blocking.JsMsg)
            assert_type(msg.term("reason"), None)
            assert_type(msg.in_progress(), None)
        assert_type(messages.stop(nak=True), list[js_blocking.JsMsg])
        assert_type(messages.run(handle_plainly, concurrency=3), None)
    with js.pull_subscribe("s.a", {"durable_name": "C"}, stream="S", bind=True) as sub:
        assert_type(sub, js_blocking.PullSubscription)
        assert_type(sub.fetch(), js_blocking.Batch)
        assert_type(sub.cached_info, infos.ConsumerInfo | None)
        assert_type(sub.unsubscribe(), None)
    with js.subscribe("s.a", {"ack_wait": 5}, stream="S", bind=True, name="C") as pushes:
        assert_type(pushes, js_blocking.PushMessages)
        assert_type((pushes.stream, pushes.name, pushes.dropped), tuple[str, str, int])
        for msg in pushes:
            assert_type(msg, js_blocking.JsMsg)
        assert_type(pushes.next(timeout=None), js_blocking.JsMsg)
        assert_type(pushes.unsubscribe(), None)
