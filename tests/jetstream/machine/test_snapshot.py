from __future__ import annotations

import pytest

from jetstream.machine.snapshot import ConsumerSnapshot, OpenPull, set_status, set_times
from jetstream.machine.status import Status
from natsproto.errors import ConnectionLost
from tests.jetstream.pulls import status

PULLS = [OpenPull(7, 0, 29.0), OpenPull(3, 0, 30.0)]
REASONS = [  # attributes, reason
    ({}, "it waits for messages"),
    ({"pending": 3, "ended": True}, "3 messages wait to be taken"),
    ({"ended": True, "stopped": True}, "it has ended"),
    ({"ended": True, "error": ConnectionLost("x")}, "it has ended: x"),
    ({"stopped": True, "online": False}, "it was stopped: no more messages are requested"),
    (
        {"online": False, "consumer": "offline"},
        "there is no connection: it waits for the next one",
    ),
    ({"consumer": "creating"}, "the next consumer is being created"),
    (
        {"consumer": "backoff", "deadlines": {"recreate": 1.5}},
        "the consumer could not be created: the next try is in 1.5 s",
    ),
    ({"consumer": "unknown"}, "unknown"),
    ({"deadlines": {"lookup": 1.0}}, "it looks up whether the consumer exists"),
    (
        {"deadlines": {"lookup": 1.0, "pull": 1.0}, "last_status": "503"},
        "it looks up whether the consumer exists after 503",
    ),
    (
        {"deadlines": {"pull": 2.0}, "last_status": "409 Exceeded MaxWaiting"},
        "it pauses for 2.0 s after 409 Exceeded MaxWaiting",
    ),
    ({"pulls": PULLS}, "it waits for messages: 2 open pulls, for 10 more"),
    ({"pulls": PULLS[:1]}, "it waits for messages: 1 open pull, for %d more" % PULLS[0].messages),
    (
        {"pulls": PULLS, "heard_ago": 4.0},
        "it waits for messages: 2 open pulls, for 10 more, last heard 4.0 s ago",
    ),
]


@pytest.mark.rule("D-SNAPSHOT-2")
@pytest.mark.parametrize(("attributes", "reason"), REASONS)
def test_the_reason_why_no_message_arrives(attributes, reason):
    made = ConsumerSnapshot("consumer 'w'")
    made.online = True
    for name, value in attributes.items():
        setattr(made, name, value)
    assert made.reason == reason


@pytest.mark.rule("D-SNAPSHOT-1")
def test_times_are_relative():
    made = ConsumerSnapshot("")
    set_times(made, 10.0, pull=12.0, silence=None, lookup=9.0)
    assert made.deadlines == {"pull": 2.0, "lookup": 0.0}
    set_status(made, None, 0.0, 10.0)
    assert (made.last_status, made.last_status_ago) == ("", None)
    set_status(made, Status(status(1, "503")), 7.0, 10.0)
    assert (made.last_status, made.last_status_ago) == ("503", 3.0)
    set_status(made, Status(status(1, "409 Exceeded MaxWaiting")), 7.0, 10.0)
    assert made.last_status == "409 Exceeded MaxWaiting"
    assert repr(OpenPull(7, 0, 29.0)) == "OpenPull(bytes=0, ends_in=29.0, messages=7)"
