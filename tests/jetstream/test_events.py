from __future__ import annotations

import pytest

from jetstream import events
from jetstream.errors import PullRefused, ServiceError
from jetstream.events import (
    ConsumerReset,
    ConsumerSequenceReset,
    Gap,
    Loss,
    Pinned,
    PullWarning,
    PushWarning,
    RequestFailed,
    ResponseTruncated,
    ServiceStopped,
    StatsFailed,
    StreamRecreated,
    Unpinned,
)
from jetstream.schema.timestamp import Timestamp


@pytest.mark.rule("CONSUME-13")
def test_pull_events():
    error = PullRefused(409, "x")
    assert PullWarning(error).error is error
    assert Pinned("id") == Pinned("id")
    assert Pinned("id") != Pinned("other")
    assert Unpinned() == Unpinned()


def test_push_and_ordered_events():
    error = PullRefused(409, "x")
    assert PushWarning(error).error is ConsumerReset(error).error is error
    assert Gap(3, 5) == Gap(first=3, last=5) != Gap(3, 4)
    assert repr(ConsumerSequenceReset(7, 1)) == "ConsumerSequenceReset(before=7, now=1)"
    before, created = Timestamp(1), Timestamp(2)
    event = StreamRecreated("ORDERS", before, created)
    assert (event.stream, event.before, event.created) == ("ORDERS", before, created)


def test_losses():
    error = PullRefused(409, "x")
    assert repr(Loss(2, 2, error)) == "<Loss of 2 to 2: %s>" % error
    assert repr(Loss(3, 5)) == "<Loss of 3 to 5: a gap>"


@pytest.mark.rule("SERVICE-23", "D-SERVICE-19", "D-SERVICE-4")
def test_events_of_services():
    error = ValueError("x")
    event = RequestFailed("e", "g.e", error)
    assert (event.endpoint, event.subject, event.error) == ("e", "g.e", error)
    assert StatsFailed("e", error).error is error
    assert repr(ServiceStopped("s", "1", None)) == "ServiceStopped(error=None, id='1', name='s')"


REFUSED = PullRefused(409, "x")
LOGGED = [  # event, level, text
    (PullWarning(REFUSED), "warning", "pull ended: %s" % REFUSED),
    (Pinned("id"), "info", "this client is the pinned one"),
    (Unpinned(), "info", "this client is no longer the pinned one"),
    (PushWarning(REFUSED), "warning", "subscription continues after an error: %s" % REFUSED),
    (Gap(3, 5), "warning", "deliveries 3 to 5 did not arrive"),
    (ConsumerSequenceReset(7, 1), "info", "sequence of the consumer went back from 7 to 1"),
    (ConsumerReset(REFUSED), "warning", "consumer is recreated: %s" % REFUSED),
    (
        StreamRecreated("S", Timestamp(1), Timestamp(2)),
        "warning",
        "stream 'S' was created again: reading its first message",
    ),
    (
        RequestFailed("e", "g.e", ValueError("secret")),
        "warning",
        "handler of endpoint 'e' raised ValueError",
    ),
    (
        RequestFailed("e", "g.e", ServiceError(404, "none")),
        "debug",
        "handler of endpoint 'e' raised ServiceError",
    ),
    (
        ResponseTruncated("INFO", 2000, 1000, "endpoints"),
        "warning",
        "INFO response of 2000 bytes is above the max_payload 1000: left out endpoints",
    ),
    (
        StatsFailed("e", ValueError("secret")),
        "warning",
        "stats_data of endpoint 'e' raised ValueError",
    ),
    (ServiceStopped("s", "1", None), "info", "service 's' stopped"),
    (ServiceStopped("s", "1", REFUSED), "warning", "service 's' stopped: %s" % REFUSED),
]


@pytest.mark.rule("D-LOG-1", "D-LOG-2")
@pytest.mark.parametrize(("event", "level", "text"), LOGGED)
def test_events_in_the_log(event, level, text):
    assert (event.level, event.text) == (level, text)


def test_every_event_is_public():
    defined = {each for each in vars(events).values() if isinstance(each, type)}
    assert events.__all__ == sorted(
        each.__name__ for each in defined if each.__module__ == events.__name__
    )
