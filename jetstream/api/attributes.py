"""Hints for attributes that nats-py or nats.go have, of all classes but JetStream (D-HINT-1).

Only natsproto.hinting imports this module, by its name, so builds for devices do not contain it.
"""

from __future__ import annotations

#: Attributes of a stream.
STREAM = {
    "config": "use cached_info.config or (await stream.info()).config",
    "state": "use (await stream.info()).state",
    "add_consumer": "use create_consumer(...)",
    "consumer_info": "use (await stream.consumer(name)).info()",
    "list_consumers": "use consumers()",
    "get_last_msg": "use get_msg(last_by_subject=subject)",
    "consume": "create a consumer, and call its consume()",
    "fetch": "create a consumer, and call its fetch(...)",
    "subscribe": "use js.subscribe(subject), or consume() of a consumer",
    "publish": "use js.publish(subject, data)",
}
#: Attributes of a consumer.
CONSUMER = {
    "config": "use cached_info.config or (await consumer.info()).config",
    "messages": "use consume()",
    "fetch_no_wait": "use fetch(..., no_wait=True)",
    "fetch_bytes": "use fetch(max_bytes=...)",
    "subscribe": "use consume()",
}
#: Attributes of a message from JetStream.
MESSAGE = {
    "header": "use headers",
    "respond": "use ack(), nak(), term() or in_progress()",
    "is_acked": "use settled",
    "double_ack": "use ack_sync()",
    "nak_with_delay": "use nak(delay=...)",
    "term_with_reason": "use term(reason)",
}
#: Attributes of the metadata of a message.
METADATA = {
    "sequence": "use stream_seq and consumer_seq",
    "num_pending": "use pending",
    "num_delivered": "use delivered",
    "timestamp": "use timestamp_ns, in nanoseconds since 1970",
}
_COUNT = "count the messages that you take"
#: Attributes of a pull subscription.
PULL_SUBSCRIPTION = {
    "consumer_info": "use info()",
    "messages": "use fetch(...), or consume() of a consumer",
    "next_msg": "use fetch(1, timeout=...)",
    "delivered": _COUNT,
    "pending_msgs": "use (await subscription.info()).num_pending",
    "pending_bytes": "only fetch takes messages from the server, so none are waiting here",
    "consume": "use js.bind_consumer(subscription.stream, subscription.name).consume()",
}
#: Attributes of a push subscription.
PUSH_SUBSCRIPTION = {
    "messages": "iterate the subscription itself",
    "next_msg": "use next(timeout=...)",
    "consumer_info": "use (await js.consumer(subscription.stream, subscription.name)).info()",
    "delivered": _COUNT,
    "pending_msgs": "use pending",
    "pending_bytes": "use snapshot()",
    "fetch": "use pull_subscribe(...), or fetch(...) of a consumer",
    "subject": "keep the subject that you pass to subscribe",
    "queue": "keep the queue that you pass to subscribe",
}
#: Attributes of a bucket.
KEY_VALUE = {
    "watchall": "use watch_all()",
    "get_revision": "use get(key, revision=...)",
    "put_string": "use put(key, text.encode())",
}
#: Attributes of an object store.
OBJECT_STORE = {
    "put_bytes": "use put(name, data)",
    "put_string": "use put(name, text.encode())",
    "get_string": "use (await store.get_bytes(name)).decode()",
    "info": "use get_info(name)",
}
