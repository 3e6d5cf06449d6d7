from __future__ import annotations

import random

import pytest

from natsproto import InvalidName, InvalidSubject
from natsproto.wire.subjects import (
    check_known_name,
    check_new_name,
    check_publish,
    check_queue,
    check_subscribe,
    inbox,
    matches,
    token,
)

# subject,            to publish, to subscribe: the broken rule, "" if there is none
SUBJECTS = [
    ("a",                  "",       ""),
    ("a.b.c",              "",       ""),
    ("_INBOX.x-1.$Z",      "",       ""),
    ("é.☃",                "",       ""),
    ("a.\x01\x7f",         "",       ""),
    ("t.\udcff",           "",       ""),
    ("\x0b.\x85.\u2028",   "",       ""),
    ("a*.b>.>c.*d",        "",       ""),
    ("**.>>",              "",       ""),
    ("*",                  "SUBJ-2", ""),
    (">",                  "SUBJ-2", ""),
    ("a.*.c",              "SUBJ-2", ""),
    ("a.*",                "SUBJ-2", ""),
    ("*.*.>",              "SUBJ-2", ""),
    ("a.>",                "SUBJ-2", ""),
    (">.a",                "SUBJ-2", "SUBJ-3"),
    ("a.>.b",              "SUBJ-2", "SUBJ-3"),
    ("a.>.>",              "SUBJ-2", "SUBJ-3"),
    (".",                  "SUBJ-1", "SUBJ-1"),
    (".a",                 "SUBJ-1", "SUBJ-1"),
    ("a.",                 "SUBJ-1", "SUBJ-1"),
    ("a..b",               "SUBJ-1", "SUBJ-1"),
    ("",                   "SUBJ-4", "SUBJ-4"),
    (" ",                  "SUBJ-4", "SUBJ-4"),
    ("a b",                "SUBJ-4", "SUBJ-4"),
    ("a\tb",               "SUBJ-4", "SUBJ-4"),
    ("a\r",                "SUBJ-4", "SUBJ-4"),
    ("\na",                "SUBJ-4", "SUBJ-4"),
    ("a\fb",               "SUBJ-4", "SUBJ-4"),
    ("a\0b",               "SUBJ-4", "SUBJ-4"),
    ("a.\ud800",           "SUBJ-4", "SUBJ-4"),
    (b"a",                 "SUBJ-4", "SUBJ-4"),
    (None,                 "SUBJ-4", "SUBJ-4"),
]  # fmt: skip


def broken_rule(check, *arguments):
    """Return the rule that the check names when it refuses, "" if it does not."""
    try:
        check(*arguments)
    except (InvalidSubject, InvalidName) as error:
        return error.rule
    return ""


@pytest.mark.rule("SUBJ-1", "SUBJ-2", "SUBJ-3", "SUBJ-4")
@pytest.mark.parametrize(("subject", "publish", "subscribe"), SUBJECTS, ids=ascii)
def test_subjects_to_publish_and_to_subscribe(subject, publish, subscribe):
    assert broken_rule(check_publish, subject) == publish
    assert broken_rule(check_subscribe, subject) == subscribe


@pytest.mark.rule("ENC-5")
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: check_publish(""), "subject is empty (SUBJ-4)"),
        (lambda: check_publish("a b"), "subject 'a b' contains a space (SUBJ-4)"),
        (lambda: check_publish("a\tb"), r"subject 'a\tb' contains a tab (SUBJ-4)"),
        (lambda: check_publish("a\r\nb"), r"subject 'a\r\nb' contains a CR (SUBJ-4)"),
        (lambda: check_publish("a\nb"), r"subject 'a\nb' contains an LF (SUBJ-4)"),
        (lambda: check_publish("a\fb"), r"subject 'a\x0cb' contains a form feed (SUBJ-4)"),
        (lambda: check_publish("a\0b"), r"subject 'a\x00b' contains a NUL (SUBJ-4)"),
        (lambda: check_publish(5), "subject 5 is not a str (SUBJ-4)"),
        (lambda: check_publish(("a", "b")), "subject ('a', 'b') is not a str (SUBJ-4)"),
        (
            lambda: check_publish("\ud800"),
            r"subject '\ud800' cannot be encoded as UTF-8 (SUBJ-4)",
        ),
        (lambda: check_publish("a..b"), "subject 'a..b' has an empty token (SUBJ-1)"),
        (lambda: check_publish("a.*"), "subject 'a.*' has a wildcard (SUBJ-2)"),
        (lambda: check_publish("a.>", "reply"), "reply 'a.>' has a wildcard (SUBJ-2)"),
        (lambda: check_subscribe("a..b"), "subject 'a..b' has an empty token (SUBJ-1)"),
        (lambda: check_subscribe(">.a"), "subject '>.a' has '>' before the last token (SUBJ-3)"),
        (lambda: check_queue("a b"), "queue 'a b' contains a space (SUBJ-5)"),
        (lambda: check_new_name("stream", "a.b"), "stream 'a.b' contains '.' (SUBJ-7)"),
        (lambda: check_new_name("stream", ""), "stream is empty: a name is required (SUBJ-7)"),
        (
            lambda: check_new_name("durable", "é"),
            "durable 'é' contains 'é', which is not printable ASCII (SUBJ-7)",
        ),
        (lambda: check_known_name("consumer", "a b"), "consumer 'a b' contains a space (SUBJ-8)"),
        (
            lambda: check_known_name("consumer", "x" * 256),
            "consumer has 256 bytes, more than 255 (SUBJ-8)",
        ),
    ],
)
def test_a_refusal_names_the_value_and_the_rule(call, problem):
    with pytest.raises((InvalidSubject, InvalidName)) as error:
        call()
    assert str(error.value) == problem


@pytest.mark.rule("SUBJ-4")
def test_a_subject_is_encoded_back_to_its_bytes():
    assert check_publish("é") == b"\xc3\xa9"
    assert check_publish("t.\udcff\udcfe") == b"t.\xff\xfe"
    assert check_subscribe("é.*") == b"\xc3\xa9.*"
    assert check_queue("\udc80") == b"\x80"


@pytest.mark.rule("SUBJ-5")
@pytest.mark.parametrize(
    ("queue", "rule"),
    [
        ("workers", ""),
        ("a.b", ""),
        ("*", ""),
        ("é", ""),
        ("", "SUBJ-5"),
        ("a b", "SUBJ-5"),
        ("a\tb", "SUBJ-5"),
        ("a\r\nb", "SUBJ-5"),
        ("a\nb", "SUBJ-5"),
        ("a\0b", "SUBJ-5"),
        (5, "SUBJ-5"),
    ],
)
def test_queue_names(queue, rule):
    assert broken_rule(check_queue, queue) == rule


@pytest.mark.rule("SUBJ-7", "SUBJ-8")
@pytest.mark.parametrize(
    ("name", "new", "known"),
    [
        ("ORDERS", True, True),
        ("a-b_c$1", True, True),
        ("".join([chr(c) for c in range(33, 127) if chr(c) not in ".*>/\\"]), True, True),
        ("x" * 255, True, True),
        ("é", False, True),
        ("a\x7f", False, True),
        ("a\x01", False, True),
        ("é" * 127, False, True),
        ("é" * 128, False, False),
        ("x" * 256, False, False),
        ("", False, False),
        ("a.b", False, False),
        ("*", False, False),
        ("a>", False, False),
        ("a/b", False, False),
        ("a\\b", False, False),
        ("a b", False, False),
        ("a\tb", False, False),
        ("a\rb", False, False),
        ("a\nb", False, False),
        ("a\fb", False, False),
        ("a\0b", False, False),
        ("\ud800", False, False),
        (b"a", False, False),
        (None, False, False),
    ],
    ids=ascii,
)
def test_names_to_create_and_to_look_up(name, new, known):
    for check, good, rule in ((check_new_name, new, "SUBJ-7"), (check_known_name, known, "SUBJ-8")):
        assert broken_rule(check, "stream", name) == ("" if good else rule)
        if good:
            assert check("stream", name) == name


@pytest.mark.rule("SUBJ-3", "SUBJ-6")
@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a", "a", True),
        ("a", "A", False),
        ("a", "a.b", False),
        ("a.b", "a", False),
        ("a.b", "a.b", True),
        ("*", "a", True),
        ("*", "a.b", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("*.b", "a.b", True),
        ("*.b", "a.c", False),
        ("*.*", "a.b", True),
        ("a.*.c", "a.b.c", True),
        (">", "a", True),
        (">", "a.b.c", True),
        ("a.>", "a", False),
        ("a.>", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "b.c", False),
        ("*.>", "a", False),
        ("*.>", "a.b", True),
        ("a*", "ab", False),
        ("a*", "a*", True),
        ("a>.b", "a>.b", True),
        ("a>.b", "ac.b", False),
    ],
)
def test_matching_is_by_token_and_case(pattern, subject, expected):
    assert matches(pattern, subject) is expected


@pytest.mark.rule("D-SUBJ-9")
def test_inboxes_use_the_injected_randomness():
    numbers = iter(range(62))
    asked = []

    def randbelow(limit):
        asked.append(limit)
        return next(numbers)

    assert inbox(randbelow) == "_INBOX.0123456789ABCDEFGHIJKL"
    assert inbox(randbelow, "my.box") == "my.box.MNOPQRSTUVWXYZabcdefgh"
    assert token(randbelow, 18) == "ijklmnopqrstuvwxyz"
    assert asked == [62] * 62
    same = [inbox(random.Random(1).randrange) for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.rule("SUBJ-10")
@pytest.mark.parametrize("prefix", ["", "a b", "a.*", ">", "a.", "a\r\nb", None])
def test_an_inbox_prefix_is_a_subject_to_publish_to(prefix):
    with pytest.raises(InvalidSubject, match=r"^inbox prefix .*\(SUBJ-\d+\)$"):
        inbox(random.Random(1).randrange, prefix)
