"""The states of a service, and the table that every change of state follows.

    NEW       nothing is subscribed; endpoints may be added
    RUNNING   subscribed; requests arrive
    STOPPING  no new requests are accepted; those that were accepted are answered
    STOPPED   all of them are answered, and every subscription has ended

Inputs:

    start    the service was subscribed
    stop     the user ends the service
    lost     a subscription ended by itself: it was denied, or the client is closing
    settled  no subscription is left, no request is queued, and none is being handled
"""

from __future__ import annotations

NEW = "NEW"
RUNNING = "RUNNING"
STOPPING = "STOPPING"
STOPPED = "STOPPED"

START = "start"
STOP = "stop"
LOST = "lost"
SETTLED = "settled"

#: A pair that is not listed leaves the state unchanged.
TRANSITIONS = {
    (NEW, START): RUNNING,
    (NEW, STOP): STOPPED,
    (RUNNING, STOP): STOPPING,
    (RUNNING, LOST): STOPPING,  # D-SERVICE-10
    (STOPPING, SETTLED): STOPPED,  # SERVICE-22
}
