"""The tests of other projects that fail on natsproto.compat.nats, and why.

A name is that of its class and function, or of its module and function.
"""

from __future__ import annotations

_PRIVATE = "reads private attributes of nats-py: "
_INSIDE = "replaces a function that nats-py uses inside: "

KEPT: dict[str, str] = {
    # nats-py: the client
    "ClientTest.test_invalid_subscribe_error": "expects the server to close the connection after "
    "an invalid subject; since nats-py 2.16 `subscribe` raises BadSubjectError, and here as well",
    "ClientTest.test_connect_syntax_sugar": "expects that the user of `@host:` is None; since "
    "nats-py 2.16 it is empty, and here as well",
    "ClientTest.test_subscribe_iterate": _PRIVATE + "`_message_iterator._unsubscribed_future`",
    "ConnectFailuresTest.test_empty_info_op_uses_defaults": "expects `connect` to return "
    "when the server has closed the connection instead of answering PING; here the attempt fails",
    "ConnectFailuresTest.test_transport_close_with_none_writer_no_error": "tests "
    "`nats.aio.transport`, which the layer does not have",
    # nats-py: nkeys
    "ClientJWTAuthTest.test_nkeys_jwt_creds_user_connect_with_token": _INSIDE
    + "`Client._connect_command`",
    # nats-py: JetStream
    "PullSubscribeTest.test_fetch_cancelled_errors_raised": "uses `unittest.mock` without "
    "importing it, to replace `asyncio.wait_for`, which `fetch` does not call here",
    "PullSubscribeTest.test_fetch_collects_server_messages_alongside_pending_queue": _PRIVATE
    + "`_sub._pending_queue`",
    "PullSubscribeTest.test_fetch_returns_promptly_with_pending_queue_messages": _PRIVATE
    + "`_sub._pending_queue`",
    "PullSubscribeTest.test_fetch_n": _PRIVATE + "`_sub`",
    "PullSubscribeTest.test_pull_subscribe_bind_custom_inbox_prefix": _PRIVATE + "`_deliver`",
    "PullSubscribeTest.test_fetch_headers": "expects that headers with spaces in their name are "
    "dropped; since nats-py 2.16 `publish` raises BadHeaderError, and here as well",
    "PullSubscribeTest.test_pull_subscribe_limits": "expects that a fetch of 100 messages loses 50 "
    "of them to `pending_msgs_limit`; here it returns all",
    "OrderedConsumerTest.test_ordered_consumer_single_loss": _INSIDE + "`Client._build_message`",
    "KVTest.test_kv_watcher_stop_does_not_hang_when_queue_is_full": _PRIVATE + "`_updates`",
    "ObjectStoreTest.test_object_watch": "expects ObjectAlreadyExists when an object gets a new "
    "name that no object has, because nats-py looks up the old name; here it is renamed",
}
