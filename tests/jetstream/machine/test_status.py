from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jetstream import errors
from jetstream.machine.status import (
    ABSENT,
    BEAT,
    DONE,
    FAIL,
    LIMIT,
    RETRY,
    SIZE,
    UNKNOWN,
    UNPIN,
    Status,
    is_status,
)
from natsproto import Parser
from natsproto.wire.frames import Msg
from tests.jetstream.pulls import message, status

VECTORS = Path(__file__).parent.parent.parent / "vectors"

TABLE = [  # status line, meaning, exception: every row of the rule book
    ("100 Idle Heartbeat", BEAT, errors.PullRefused),
    ("404 No Messages", DONE, errors.PullRefused),
    ("408 Request Timeout", DONE, errors.PullRefused),
    ("408 Requests Pending", DONE, errors.PullRefused),
    ("408 Interest Expired", DONE, errors.PullRefused),
    ("409 Batch Completed", DONE, errors.PullRefused),
    ("409 Batch-Completed", DONE, errors.PullRefused),
    ("409 Message Size Exceeds MaxBytes", SIZE, errors.PullRefused),
    ("409 Exceeded MaxRequestBatch of 5", LIMIT, errors.PullRefused),
    ("409 Exceeded MaxRequestExpires of 2s", LIMIT, errors.PullRefused),
    ("409 Exceeded MaxRequestMaxBytes of 1024", LIMIT, errors.PullRefused),
    ("409 Exceeded MaxWaiting", LIMIT, errors.PullRefused),
    ("409 Consumer Deleted", FAIL, errors.ConsumerDeleted),
    ("409 Consumer is push based", FAIL, errors.ConsumerIsPush),
    ("409 Leadership Change", RETRY, errors.ConsumerUnavailable),
    ("409 Server Shutdown", RETRY, errors.ConsumerUnavailable),
    ("423 Nats-Pin-Id mismatch", UNPIN, errors.ConsumerUnavailable),
    ("423 Nats-Wrong-Pin-Id", UNPIN, errors.ConsumerUnavailable),
    ("503", ABSENT, errors.ConsumerUnavailable),
    ("503 No Responders", ABSENT, errors.ConsumerUnavailable),
    ("400 Bad Request - heartbeat value too large", FAIL, errors.PullRefused),
    ("412 Required Api Level", LIMIT, errors.PullRefused),
    ("409 Something New", UNKNOWN, errors.UnknownStatus),
    ("204 EOB", UNKNOWN, errors.UnknownStatus),
    ("429 Too Many Requests", UNKNOWN, errors.UnknownStatus),
    ("409 CONSUMER DELETED", FAIL, errors.ConsumerDeleted),
    ("409 message size exceeds maxbytes", SIZE, errors.PullRefused),
]


@pytest.mark.rule("PULL-9")
@pytest.mark.rule("PULL-16")
@pytest.mark.parametrize(("line", "meaning", "error"), TABLE)
def test_meaning(line, meaning, error):
    found = Status(status(1, line))
    code, _, description = line.partition(" ")
    assert (found.meaning, type(found.error)) == (meaning, error)
    assert (found.error.code, found.error.description) == (int(code), description)
    assert (found.code, found.description, str(found.error)) == (int(code), description, line)
    assert (found.messages, found.bytes) == (None, None)
    assert found.refused is (meaning in (LIMIT, ABSENT, UNPIN))


@pytest.mark.rule("D-PULL-17")
def test_the_name_of_the_consumer():
    error = Status(status(1, "503"), "consumer 'c' of stream 'S'").error
    assert str(error).startswith("pull from consumer 'c' of stream 'S' failed: 503 (")


@pytest.mark.rule("PULL-7")
@pytest.mark.parametrize(
    ("value", "number"),
    [
        (b"3", 3),
        (b" 3 ", 3),
        (b"0", 0),
        (b"-1", 0),
        (b"", 0),
        (b"x", 0),
        (b"1_0", 0),
        (b"9" * 20, 0),
    ],
)
def test_messages_that_a_pull_will_not_deliver(value, number):
    block = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: %s\r\n\r\n" % value
    found = Status(Msg(b"_INBOX.i.1", 1, b"", b"", block))
    assert (found.messages, found.bytes) == (number, None)


@pytest.mark.rule("PULL-7")
def test_both_numbers():
    found = Status(status(1, "408 Request Timeout", 3, 3994))
    assert (found.messages, found.bytes) == (3, 3994)


PLAIN = b"NATS/1.0\r\nStatus: 408\r\nDescription: Request Timeout\r\n\r\n"


@pytest.mark.rule("PULL-10")
@pytest.mark.parametrize(
    ("msg", "verdict"),
    [
        (status(1, "404 No Messages"), True),
        (status(1, "503"), True),
        (message(), False),
        (Msg(b"_INBOX.i.1", 1, b"", b"", PLAIN), False),
        (Msg(b"_INBOX.i.1", 1, b"", b"x", b"NATS/1.0 404 No Messages\r\n\r\n"), False),
        (Msg(b"_INBOX.i.1", 1, b"r", b"", b"NATS/1.0 404 No Messages\r\n\r\n"), False),
        (Msg(b"_INBOX.i.1", 1, b"", b"", None), False),
    ],
)
def test_which_messages_are_statuses(msg, verdict):
    assert is_status(msg) is verdict


@pytest.mark.rule("PULL-9")
@pytest.mark.rule("PULL-10")
def test_all_statuses_of_the_transcripts_are_known():
    seen = set()
    for path in sorted(VECTORS.glob("*-pull-*.json")) + sorted(VECTORS.glob("*-priority-*.json")):
        parsers = {}
        for frame in json.loads(path.read_text())["frames"]:
            if frame["dir"] != "<":
                continue
            parser = parsers.setdefault(frame["conn"], Parser())
            for msg in parser.feed(base64.b64decode(frame["b64"])):
                if isinstance(msg, Msg) and msg.raw_subject.startswith(b"_INBOX.p"):
                    assert is_status(msg)
                    found = Status(msg)
                    assert not isinstance(found.error, errors.UnknownStatus)
                    seen.add((found.code, found.meaning))
    assert len(seen) >= 11
