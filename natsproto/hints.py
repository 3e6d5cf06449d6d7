"""Hints for names that other clients use: the equivalents in this library.

Programs that come from nats-py call `nc.jetstream()` or pass `error_cb`. The error names the
equivalent, which docs/nats-py.md explains. Some names of nats.go are here as well, as Python would
spell them.
"""

from __future__ import annotations

#: How to get a client from `connect` of an adapter with an event loop.
ENTER = "use `async with connect(...) as client:`"
_EVENTS = "iterate client.events"
_JETSTREAM = "use jetstream.JetStream(client)"
_NO_ACK = "only messages of a JetStream consumer have it; see jetstream.JetStream(client)"

#: Attributes of clients, blocking or not (D-HINT-1).
CLIENT = {
    "jetstream": _JETSTREAM,
    "jsm": _JETSTREAM,
    "is_connected": "compare client.state with 'CONNECTED'",
    "is_closed": "compare client.state with 'CLOSED'",
    "is_reconnecting": "compare client.state with 'CONNECTED'",
    "is_connecting": "compare client.state with 'CONNECTED'",
    "is_draining": "client.drain() returns when it is done",
    "is_draining_pubs": "client.drain() returns when it is done",
    "pending_data_size": "use client.health().pending_bytes",
    "ssl_context": "keep the context that you pass to connect as tls",
    "status": "use client.state",
    "publish_msg": "use client.publish(subject, data, headers=...)",
    "request_msg": "use client.request(subject, data, headers=...)",
    "queue_subscribe": "use client.subscribe(subject, queue=...)",
    "add_service": "use jetstream.services.add_service(client, ...)",
    "connected_server_version": "use client.info.version",
    "max_payload": "use client.info.max_payload",
    "client_id": "use client.info.client_id",
    "client_ip": "use client.info.client_ip",
    "discovered_servers": "use client.servers",
    "server_pool": "use client.servers",
    "set_server_pool": "use client.set_servers(...)",
    "last_error": _EVENTS,
    "new_inbox": "use client.request(...) or client.request_many(...)",
    "connect": "use connect(...) of an adapter, as in natsproto.adapters.asyncio",
}
#: Attributes of a subscription.
SUBSCRIPTION = {
    "messages": "iterate the subscription itself",
    "next_msg": "use next(timeout=...)",
    "pending_msgs": "use pending",
    "pending_bytes": "the limit max_bytes of client.subscribe counts them",
    "delivered": "count the messages that you take",
    "fetch": "only a JetStream consumer has it; see jetstream.JetStream(client)",
    "auto_unsubscribe": "use unsubscribe(after=...)",
}
#: Keywords of subscribe.
SUBSCRIBE = {
    "cb": "iterate the result, or use its run(callback)",
    "future": "use the result's next(timeout=...)",
    "pending_msgs_limit": "use max_msgs",
    "pending_bytes_limit": "use max_bytes",
}
#: Attributes of a message.
MESSAGE = {
    "respond": "use client.respond(msg, data)",
    "header": "use headers",
    "metadata": _NO_ACK,
    "ack": _NO_ACK,
    "ack_sync": _NO_ACK,
    "nak": _NO_ACK,
    "term": _NO_ACK,
    "in_progress": _NO_ACK,
    "is_acked": _NO_ACK,
}
#: Options of connect().
OPTIONS = {
    "allow_reconnect": "use max_reconnects=0",
    "max_reconnect_attempts": "use max_reconnects",
    "reconnect_time_wait": "use reconnect_wait",
    "max_outstanding_pings": "use max_pings_out",
    "dont_randomize": "use shuffle=False",
    "pending_size": "use max_pending_out",
    "pending_msgs_limit": "use max_msgs",
    "pending_bytes_limit": "use max_bytes",
    "user_credentials": "use creds",
    "nkeys_seed": "use nkey_seed",
    "nkeys_seed_str": "use nkey_seed",
    "user_jwt_cb": "use jwt",
    "signature_cb": "use sign",
    "tls_handshake_first": "use tls_first",
    "reconnect_to_server_handler": "use choose_server",
    "ws_connection_headers": "use ws_headers",
    "drain_timeout": "use client.drain(timeout=...)",
    "flush_timeout": "use client.flush(timeout=...)",
    "flusher_queue_size": "leave it out: there is no flusher",
    "skip_subject_validation": "leave it out: subjects are always checked",
    "error_cb": _EVENTS,
    "disconnected_cb": _EVENTS,
    "reconnected_cb": _EVENTS,
    "closed_cb": _EVENTS,
    "discovered_server_cb": _EVENTS,
    "lame_duck_mode_cb": _EVENTS,
}


def with_hint(text: str, name: str, hints: dict[str, str]) -> str:
    """Return `text % name`, followed by the hint for this name if there is one (D-HINT-1)."""
    text = text % repr(name)
    return "%s; %s" % (text, hints[name]) if name in hints else text


def no_attribute(instance: object, name: str, hints: dict[str, str]) -> AttributeError:
    """Return the error for an attribute that does not exist, with the hint if there is one."""
    text = "%r object has no attribute %r" % (type(instance).__name__, name)
    if name in hints:
        text += "; %s" % hints[name]
    return AttributeError(text)


def not_entered(connecting: object, name: str) -> object:
    """Raise AttributeError: the `__getattr__` of the result of `connect` (D-HINT-1)."""
    text = "%r object has no attribute %r; it is not the client yet: %s"
    raise AttributeError(text % (type(connecting).__name__, name, ENTER))


def no_connect(package: str) -> ImportError:
    """Return the error for `connect` of a package, which users of nats-py look for (D-HINT-1).

    Not AttributeError, whose text `from package import connect` would hide.
    """
    return ImportError(
        "%s has no connect: each runtime has its own. Import it from natsproto.adapters.asyncio,"
        " .trio, .anyio, .threads or .blocking" % package
    )
