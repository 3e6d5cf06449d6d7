"""Headers that a stream adds to messages that it republishes or schedules."""

from __future__ import annotations

import pytest

from jetstream import Timestamp
from jetstream.api.republished import Republished, Scheduled, republished, scheduled
from natsproto.wire.frames import Msg

TIME = "2026-11-17T19:36:10.970589466Z"
AT = Timestamp.parse(TIME)
PLACE = "Nats-Stream: S\r\nNats-Subject: t.1\r\nNats-Sequence: 7\r\n"
ALL = PLACE + "Nats-Time-Stamp: %s\r\nNats-Last-Sequence: 3\r\n" % TIME


def message(lines, status=""):
    return Msg(b"r.1", 1, b"", b"", ("NATS/1.0%s\r\n%s\r\n" % (status, lines)).encode())


REPUBLISHED = [  # lines, what they say
    (ALL, Republished("S", "t.1", 7, AT, 3, None)),
    (ALL + "Nats-Msg-Size: 12\r\n", Republished("S", "t.1", 7, AT, 3, 12)),
    (PLACE, Republished("S", "t.1", 7, None, 0, None)),
    (
        PLACE + "Nats-Time-Stamp: x\r\nNats-Last-Sequence: -1\r\n",
        Republished("S", "t.1", 7, None, 0, None),
    ),
    pytest.param(
        "Nats-Stream: FORGED\r\nNats-Sequence: 99\r\n" + ALL,
        Republished("S", "t.1", 7, AT, 3, None),
        marks=pytest.mark.rule("REPUB-2"),
    ),
    ("", None),
    ("Nats-Stream: S\r\nNats-Subject: t.1\r\n", None),
    ("Nats-Stream: S\r\nNats-Sequence: 7\r\n", None),
    ("Nats-Stream: S\r\nNats-Subject: t.1\r\nNats-Sequence: 7x\r\n", None),
    ("Nats-Stream: S\r\nNats-Subject: t.1\r\nNats-Sequence: %s\r\n" % ("9" * 20), None),
]


@pytest.mark.rule("REPUB-1")
@pytest.mark.parametrize(("lines", "expected"), REPUBLISHED)
def test_republished(lines, expected):
    assert republished(message(lines)) == expected


SCHEDULED = [  # lines, what they say
    ("Nats-Scheduler: s.1\r\nNats-Schedule-Next: %s\r\n" % TIME, Scheduled("s.1", AT)),
    ("Nats-Scheduler: s.1\r\nNats-Schedule-Next: purge\r\n", Scheduled("s.1", None)),
    ("Nats-Scheduler: s.1\r\n", None),
    ("Nats-Schedule-Next: purge\r\n", None),
    ("", None),
]


@pytest.mark.rule("SCHED-6")
@pytest.mark.parametrize(("lines", "expected"), SCHEDULED)
def test_scheduled(lines, expected):
    assert scheduled(message(lines)) == expected


@pytest.mark.parametrize("read", [republished, scheduled])
def test_messages_without_readable_headers_say_nothing(read):
    assert read(Msg(b"a", 1)) is None
    assert read(Msg(b"a", 1, b"", b"", b"NATS/1.0\r\nbroken")) is None
