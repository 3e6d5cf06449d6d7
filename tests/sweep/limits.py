"""How long public coroutines may take when the server is silent."""

from __future__ import annotations

TIMEOUT = 2.0
# A hundred calls end at the same moment, on a machine that does other things, too.
ALLOWANCE = 0.6

#: They wait for messages, requests or events for as long as there are none: no timeout ends them.
WAITS = {
    "Advisories.__anext__",
    "DeadLetters.__anext__",
    "Endpoint.__anext__",  # the view of a blocking client
    "Endpoint.take",
    "EndpointRequests.__anext__",
    "EventReader.__anext__",
    "Events.__anext__",
    "GroupMember.__anext__",
    "GroupMember.run",
    "KeyWatcher.__anext__",
    "Messages.__anext__",
    "Messages.run",
    "ObjectWatcher.__anext__",
    "OrderedMessages.__anext__",
    "OrderedMessages.run",
    "PullEvents.__anext__",
    "PushEvents.__anext__",
    "PushMessages.__anext__",
    "PushMessages.run",
    "Service.run",
    "ServiceEvents.__anext__",
    "Subscription.__anext__",
    "Subscription.run",
}
#: Seconds more than the timeout, as documented.
GRACE = {
    # The server gets a second to answer a pull that expires.
    "BoundConsumer.next": 1.0,
    "Consumer.next": 1.0,
    "Fetch.__anext__": 1.0,
    "Fetch.__await__": 1.0,
    "OrderedConsumer.fetch": 1.0,
    "OrderedConsumer.next": 1.0,
    "PullSubscription.fetch": 1.0,
    # The start of a service has a timeout of its own, of five seconds by default.
    "Service.__aenter__": 3.0,
    "Service.start": 3.0,
}


def may_wait(names: tuple[str, ...]) -> bool:
    """Return whether a coroutine of these names waits without a timeout."""
    return not WAITS.isdisjoint(names)


def limit(names: tuple[str, ...]) -> float:
    """Return how long a coroutine of these names may take: its timeout and a tenth of it."""
    grace = max(GRACE.get(name, 0.0) for name in names)
    return (TIMEOUT + grace) * 1.1 + ALLOWANCE
