"""Hints for JetStream names of nats-py and nats.go: the equivalents in this library (D-HINT-1)."""

from __future__ import annotations

from natsproto.hints import ENTER
from natsproto.wire.text import shorten

#: Attributes of JetStream.
JETSTREAM = {
    "add_stream": "use create_stream(...)",
    "stream_info": "use (await js.stream(name)).info()",
    "streams_info": "use streams()",
    "find_stream_name_by_subject": "use stream_name_by_subject(subject)",
    "purge_stream": "use (await js.stream(name)).purge()",
    "add_consumer": "use create_consumer(stream, ...)",
    "consumer_info": "use (await js.consumer(stream, name)).info()",
    "consumers_info": "use consumers(stream)",
    "get_msg": "use (await js.stream(name)).get_msg(seq)",
    "get_last_msg": "use (await js.stream(name)).get_msg(last_by_subject=subject)",
    "delete_msg": "use (await js.stream(name)).delete_msg(seq)",
    "publish_async": "use publisher()",
    "publish_async_completed": "use publisher() and its flush()",
    "publish_async_pending": "use publisher() and its pending",
    "pull_subscribe_bind": "use bind_consumer(stream, name)",
    "subscribe_bind": "use subscribe(...) with stream= and durable=",
    "streams_info_iterator": "use streams()",
    "list_streams": "use streams()",
    "list_consumers": "use consumers(stream)",
    "ordered_consumer": "use (await js.stream(name)).ordered_consumer()",
    "publish_msg": "use publish(subject, data, headers=...)",
    "add_service": "use jetstream.services.add_service(client, ...)",
}
#: Keywords of JetStream.publish.
PUBLISH = {
    "payload": "use data",
    "stream": "use expect_stream",
    "msg_ttl": "use ttl",
}
#: Keywords of JetStream.subscribe and pull_subscribe.
SUBSCRIBE = {
    "cb": "iterate the result, or use its run(callback)",
    "callback": "iterate the result, or use its run(callback)",
    "manual_ack": "leave it out: messages are acknowledged by msg.ack() only",
    "ordered_consumer": "use ordered=True",
    "pending_msgs_limit": "use max_pending_messages",
    "pending_bytes_limit": "use max_pending_bytes",
    "inbox_prefix": "use the option inbox_prefix of connect",
}
#: Keywords of fetch, next and consume: the option to use, if the call has it.
PULL = {
    "batch": "max_messages",
    "timeout": "expires",
}


def not_a_client(given: object) -> str:
    """Return the error message for a JetStream of something that is not an async client."""
    if hasattr(given, "__aenter__"):
        return "client is not connected yet; %s" % ENTER
    return (
        "client is not asynchronous: %s; with a client of natsproto.adapters.blocking or .threads"
        " use jetstream.blocking.JetStream" % shorten(given)
    )
