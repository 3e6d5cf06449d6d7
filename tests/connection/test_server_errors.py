from __future__ import annotations

import json

import pytest

from natsproto import Parser
from natsproto.connection.server_errors import (
    CLASSIFICATION,
    DENIED,
    FATAL,
    RECOVERABLE,
    REFUSED,
    as_error,
    classify,
    denied_sid,
    denies_publish,
    short,
)
from natsproto.errors import AuthorizationFailed, PermissionDenied, ServerFailed
from natsproto.wire.frames import Err
from tests.wire.support import transcripts

TEXTS = [
    # as the server writes it                         means    source
    ("Invalid Subject", RECOVERABLE),  # [67]
    ("Invalid Publish Subject", RECOVERABLE),  # [68]
    ("maximum subscriptions exceeded", RECOVERABLE),  # [71]
    ('Permissions Violation for Publish to "x"', DENIED),  # [75]
    ('Permissions Violation for Subscription to "x"', DENIED),
    ("Unknown Protocol Operation", FATAL),  # [60]
    ("Maximum Payload Violation", FATAL),  # [65]
    ("maximum control line exceeded", FATAL),  # [66]
    ("no responders requires headers support", FATAL),  # [72]
    ("invalid client protocol", FATAL),  # [74]
    ("Authorization Violation", REFUSED),  # [76]
    ("Authentication Timeout", FATAL),  # [77]
    ("maximum connections exceeded", FATAL),  # [78]
    ("Stale Connection", FATAL),  # [79]
    ("User Authentication Expired", REFUSED),  # [90]
    ("maximum account active connections exceeded", FATAL),  # [92]
    ("User Authentication Revoked", REFUSED),
    ("Account Authentication Expired", REFUSED),
    ("authentication expired", REFUSED),
    ("Connection throttling is active. Please try again later.", FATAL),
    ("Failed Account Registration", FATAL),
    ("Secure Connection - TLS Required", FATAL),
    ("attempted to connect to route port", FATAL),
    ("attempted to connect to leaf node port", FATAL),
    ("Slow Consumer", FATAL),
    ("Server Shutdown", FATAL),
    ("something nobody has heard of", RECOVERABLE),
    ("", RECOVERABLE),
    ("\udcff\udcfe", RECOVERABLE),
]


@pytest.mark.rule("ERR-1", "ERR-2", "ERR-3")
@pytest.mark.parametrize(("text", "kind"), TEXTS)
def test_texts_are_compared_without_case(text, kind):
    for form in (text, text.lower(), text.upper(), text.title(), text + " (and more)"):
        assert classify(form) == kind


def test_every_known_text_is_in_the_table_above():
    used = {
        start for start, _ in CLASSIFICATION for text, _ in TEXTS if text.lower().startswith(start)
    }
    assert used == {start for start, _ in CLASSIFICATION}


@pytest.mark.rule("ERR-2")
def test_the_transcripts_confirm_the_table():
    """After each -ERR that a real server sent, it closed the connection or did not."""
    seen = set()
    for path in transcripts():
        frames = json.loads(path.read_text(encoding="utf-8"))["frames"]
        for i, frame in enumerate(frames):
            if frame["dir"] != "<" or "-ERR" not in frame["latin1"]:
                continue
            [text] = [
                each.text
                for each in Parser().feed(frame["latin1"].encode("latin1"))
                if isinstance(each, Err)
            ]
            later = [each for each in frames[i + 1 :] if each["conn"] == frame["conn"]]
            closed = bool(later) and later[0]["dir"] == "!"
            assert closed == (classify(text) in (FATAL, REFUSED)), (path.stem, text)
            seen.add(text)
    assert len(seen) >= 14


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Authorization Violation", AuthorizationFailed),
        ("Permissions Violation", PermissionDenied),
        ("Stale Connection", ServerFailed),
        ("who knows", ServerFailed),
    ],
)
def test_the_error_contains_the_text_of_the_server(text, kind):
    error = as_error(text)
    assert type(error) is kind
    assert str(error) == f"server error: {text}"


@pytest.mark.rule("D-CONN-20")
def test_a_text_without_measure_is_cut():
    assert short("x" * 8192) == "x" * 8192
    assert short("x" * 60_000) == "x" * 8192


Q = "Permissions Violation for Subscription to "
P = "Permissions Violation for Publish to "
PERMISSIONS = [
    # text                                             subject     queue   sid  publish
    (P + '"a.b"', "a.b", "", 0, True),
    (Q + '"a.b"', "a.b", "", 0, False),
    (Q + '"a.b" using queue "q"', "a.b", "q", 0, False),
    (Q + '"a.b" (sid "12")', "a.b", "", 12, False),
    (Q + '"a.b" using queue "q" (sid "12")', "a.b", "q", 12, False),
    (Q + '"a.b" (sid 12)', "a.b", "", 12, False),  # servers before 2.0
    (Q + '"a.b", too many tokens', "a.b", "", 0, False),
    ((Q + '"A.b" using queue "Q"').upper(), "A.B", "Q", 0, False),
    ((Q + '"a.b" using queue "q"').lower(), "a.b", "q", 0, False),
    ('Permissions Violation for Publish with Reply of "r"', "", "", 0, False),
    # quotes, as Go writes them
    (Q + r'"a\"b" using queue "q\\r"', 'a"b', "q\\r", 0, False),
    # lower() would move the text after this letter
    (Q + '"\u0130" using queue "q"', "\u0130", "q", 0, False),
    (Q + '"\udcff"', "\udcff", "", 0, False),
    # malformed in various ways
    ("Permissions Violation", "", "", 0, False),
    (Q + '"a', "", "", 0, False),
    (Q + '"a\\', "", "", 0, False),
    (Q + '""', "", "", 0, False),
    (Q + '"a" (sid "x")', "a", "", 0, False),
    (Q + '"a" (sid "-1")', "a", "", 0, False),
    (Q + '"a" (sid "\u00b2")', "a", "", 0, False),  # a digit to str.isdigit, not to int
    (Q + '"a" (sid "%s")' % ("9" * 5000), "a", "", 0, False),  # more than int() takes
    (Q + '"a" (sid "', "a", "", 0, False),
]


@pytest.mark.rule("ERR-5", "ERR-6", "ERR-9")
@pytest.mark.parametrize(("text", "subject", "queue", "sid", "publish"), PERMISSIONS)
def test_the_subject_of_a_permission_error(text, subject, queue, sid, publish):
    error = as_error(text)
    assert (error.subject, error.queue) == (subject, queue)
    assert denied_sid(text) == sid
    assert denies_publish(text) is publish
