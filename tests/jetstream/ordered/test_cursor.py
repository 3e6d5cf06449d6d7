from __future__ import annotations

import pytest

from jetstream.errors import ConsumerExists
from jetstream.events import StreamRecreated
from jetstream.ordered.cursor import GAP, KEEP, SKIP, STALE, Cursor
from jetstream.schema.timestamp import Timestamp


def cursor(**config):
    return Cursor("S", "o", {"ack_policy": "none", **config})


def created(seq=0, consumer_seq=0, **fields):
    """Return a response, in short."""
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    info = {"stream_name": "S", "name": "o", "config": {}, "delivered": delivered}
    return {**info, **fields}


@pytest.mark.rule("ORDERED-2")
def test_the_first():
    line = cursor(deliver_policy="new", inactive_threshold=5)
    endpoint, body = line.next_consumer()
    assert endpoint == "CONSUMER.CREATE.S.o_1"
    assert body == {
        "stream_name": "S",
        "action": "create",
        "config": {
            "ack_policy": "none",
            "deliver_policy": "new",
            "inactive_threshold": 5,
            "name": "o_1",
        },
    }
    assert (line.name, line.serial, line.ready, line.info) == ("o_1", 1, False, None)
    assert line.next_consumer()[0] == "CONSUMER.CREATE.S.o_2"


def test_its_filter_is_part_of_the_endpoint():
    assert cursor(filter_subject="a.>").next_consumer()[0] == "CONSUMER.CREATE.S.o_1.a.>"


STARTS = [  # policy, the answer, messages, the next one starts at
    ({}, created(0), [], 1),
    ({}, created(0), [7], 8),
    ({"deliver_policy": "all"}, created(40), [], 41),  # purged
    ({"deliver_policy": "new"}, created(10), [], 11),
    ({"deliver_policy": "new"}, created(10), [12, 15], 16),
    ({"deliver_policy": "last"}, created(9), [], 10),
    (
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
        created(4),
        [],
        5,
    ),
    ({"deliver_policy": "by_start_sequence", "opt_start_seq": 100}, created(99), [], 100),
    ({"deliver_policy": "last_per_subject", "filter_subject": ">"}, created(4), [], None),
    ({"deliver_policy": "last_per_subject", "filter_subject": ">"}, created(4), [5], 6),
]


@pytest.mark.rule("ORDERED-5")
@pytest.mark.rule("D-ORDERED-6")
@pytest.mark.parametrize(("config", "reply", "messages", "start"), STARTS)
def test_where_the_next_one_starts(config, reply, messages, start):
    line = cursor(**config)
    line.next_consumer()
    line.installed(reply)
    assert line.ready
    assert line.info is not None
    for number, seq in enumerate(messages, 1):
        assert line.admit(b"$JS.ACK.S.o_1.1.%d.%d.1794786870000000000.0" % (seq, number)) == KEEP
    again = line.next_consumer()[1]["config"]
    if start is None:
        assert again == {"ack_policy": "none", "name": "o_2", **config}
        return
    assert "opt_start_time" not in again
    assert (again["deliver_policy"], again["opt_start_seq"]) == ("by_start_sequence", start)


@pytest.mark.rule("D-ORDERED-26")
@pytest.mark.parametrize("pending", [0, 1, 3, 90])
def test_until_the_last_of_each_subject_is_here(pending):
    def come(serial, *places):
        reply = b"$JS.ACK.S.o_%d.1.%d.%d.1794786870000000000.0"
        numbered = enumerate(places, 1)
        return [line.admit(reply % (serial, seq, number)) for number, seq in numbered]

    def policy():
        return line.next_consumer()[1]["config"]["deliver_policy"]

    line = cursor(deliver_policy="last_per_subject", filter_subject=">")
    assert policy() == "last_per_subject"
    line.installed(created(4))
    line.expect_latest(3, 11)
    assert come(1, 5, 7) == [KEEP, KEEP]
    assert policy() == "last_per_subject"
    line.installed({**created(4), "num_pending": pending})  # whatever the server reports
    assert line.ahead == 3
    assert come(2, 5, 9) == [SKIP, KEEP]
    assert line.ahead == 1
    assert [line.admit(ACK2 % (seq, seq - 8)) for seq in (11, 12)] == [KEEP, KEEP]
    assert (line.ahead, line.start, policy()) == (0, 13, "by_start_sequence")
    line.installed({**created(12), "num_pending": 3})
    assert line.ahead == 0


LATEST = [  # subjects, the last sequence, what arrived before and after that was known; is it all?
    (3, 9, [], [5, 7], False),
    (3, 9, [], [5, 7, 8], True),  # two messages of the stream belong to other subjects
    (3, 9, [], [5, 9], True),  # one of the subjects is gone
    (3, 9, [], [5, 12], True),  # or has a new message
    (3, 9, [5], [7], False),
    (3, 9, [5, 7], [8], True),
    (3, 9, [5, 7, 8], [], True),
    (3, 9, [9], [], True),
    (3, 9, [5, 8], [], False),
    (0, 0, [], [], True),
]


@pytest.mark.rule("D-ORDERED-26")
@pytest.mark.parametrize(("subjects", "fence", "before", "after", "complete"), LATEST)
def test_when_the_last_of_each_subject_is_here(subjects, fence, before, after, complete):
    for at_once in (False, True):
        line = cursor(deliver_policy="last_per_subject", filter_subject=">")
        line.next_consumer()
        line.installed({**created(4), "num_pending": 0})
        replies = [ACK % (seq, number) for number, seq in enumerate(before + after, 1)]
        arrive(line, replies[: len(before)], at_once)
        line.expect_latest(subjects, fence)
        arrive(line, replies[len(before) :], at_once)
        assert (line.ahead == 0) == complete, at_once


def arrive(line, replies, at_once):
    if replies and at_once:
        assert line.admit_all(replies)
    else:
        assert [line.admit(reply) for reply in replies] == [KEEP] * len(replies)


def test_the_start_is_known_once():
    line = cursor()
    line.next_consumer()
    line.installed(created(0))
    line.start = 6
    line.next_consumer()
    line.installed(created(3))
    assert line.start == 6


@pytest.mark.rule("ORDERED-3")
def test_a_consumer_of_another_client():
    line = cursor()
    line.next_consumer()
    with pytest.raises(ConsumerExists, match="'o_1' is already in use"):
        line.installed(created(7, 3))
    assert (line.ready, line.start) == (False, 0)


ACK = b"$JS.ACK.S.o_1.1.%d.%d.1794786870000000000.0"
ACK2 = b"$JS.ACK.S.o_2.1.%d.%d.1794786870000000000.0"
DOMAIN = b"$JS.ACK.hub.hash.S.o_1.1.%d.%d.1794786870000000000.0.more"
JUDGED = [  # reply subjects, and what they are
    ([ACK % (11, 1), ACK % (12, 2), ACK % (20, 3)], [KEEP, KEEP, KEEP]),
    ([DOMAIN % (11, 1), DOMAIN % (20, 2)], [KEEP, KEEP]),
    ([ACK % (11, 1), ACK % (13, 3)], [KEEP, GAP]),
    ([ACK % (12, 2)], [GAP]),
    ([ACK % (11, 1), ACK % (11, 1)], [KEEP, GAP]),
    ([ACK % (10, 1), ACK % (11, 2)], [SKIP, KEEP]),
    ([ACK.replace(b"o_1", b"o_0") % (11, 1), ACK % (11, 1)], [STALE, KEEP]),
    ([ACK.replace(b"o_1", b"\xff") % (11, 1)], [STALE]),
    ([b"", b"a.b", b"$JS.ACK.S.o_1.1.x.1.1.0", b"$JS.ACK.S.o_1.1.11.-1.1.0"], [STALE] * 4),
    ([b"$JS.ACK.a.S.o_1.1.11.1.1.0", b"x.ACK.S.o_1.1.11.1.1.0"], [STALE] * 2),
]


@pytest.mark.rule("ORDERED-4")
@pytest.mark.rule("ORDERED-7")
@pytest.mark.parametrize(("replies", "verdicts"), JUDGED)
def test_admit(replies, verdicts):
    line = cursor()
    line.next_consumer()
    line.installed(created(10))
    assert [line.admit(reply) for reply in replies] == verdicts


IN_DOMAIN = b"$JS.ACK.hub.hash.S.o_1.1.%d.%d.1794786870000000000.0"
RUNS = [
    *[replies for replies, _ in JUDGED],
    [IN_DOMAIN % (11, 1), IN_DOMAIN % (20, 2)],
    [ACK % (11, 1), IN_DOMAIN % (12, 2)],
    [ACK % (11, 1), b""],
    [ACK % (11, 1), b"$JS.ACK.S.o_1.1.%s.2.1794786870000000000.0" % (b"1" * 21)],
    [ACK % (11, 1), b"$JS.ACK.S.o_1.1.12.x.1794786870000000000.0"],
    [ACK % (11, 1), ACK % (10, 2)],
]
DIFFICULT = [[DOMAIN % (11, 1), DOMAIN % (20, 2)], [ACK % (11, 1), IN_DOMAIN % (12, 2)]]


@pytest.mark.rule("ORDERED-4")
@pytest.mark.rule("ORDERED-7")
@pytest.mark.parametrize("replies", RUNS)
def test_a_run_is_admitted_like_its_messages_or_not_at_all(replies):
    def state(line):
        return (line.start, line.consumer_seq, line.ahead)

    lines = [cursor(), cursor()]
    for line in lines:
        line.next_consumer()
        line.installed(created(10))
        line.ahead = 1
    at_once, one_by_one = lines
    before = state(at_once)
    verdicts = [one_by_one.admit(reply) for reply in replies]
    admitted = at_once.admit_all(replies)
    assert admitted == (set(verdicts) == {KEEP} and replies not in DIFFICULT)
    assert state(at_once) == (state(one_by_one) if admitted else before)


def test_nothing_is_next_without_a_consumer():
    line = cursor()
    line.next_consumer()
    assert line.admit(ACK % (1, 1)) == STALE
    assert not line.admit_all([ACK % (1, 1)])


T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]
CHECKS = [  # when the first consumer was created, and then the stream, each time; which are others
    ("the same all the time", 2, [1, 1, 1], []),
    ("created at the very moment", 2, [2, 2], []),
    ("another one", 2, [3], [(2, 3)]),
    ("another one, later", 2, [1, 3, 3], [(1, 3)]),
    ("again and again", 2, [3, 4, 4, 5], [(2, 3), (3, 4), (4, 5)]),
    ("an older one", 3, [2, 1], [(2, 1)]),  # as by another server, or from a backup
    ("the server does not say", 2, [None, 1, None, 3], [(1, 3)]),
    ("nothing to compare with", None, [3, 4], []),
]


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.parametrize(("what", "born", "streams", "others"), CHECKS)
def test_whether_it_is_the_same_stream(what, born, streams, others):
    line = cursor(deliver_policy="all")
    line.next_consumer()
    line.installed(created() if born is None else created(created=T[born]))
    assert line.ready
    found = []
    for second in streams:
        line.next_consumer()
        line.installed(created())
        if line.ready:
            assert born is None
            continue
        time = None if second is None else Timestamp.parse(T[second])
        event = line.confirm(time)
        assert line.ready == (event is None)
        if event is not None:
            found.append(event)
    pairs = [(Timestamp.parse(T[one]), Timestamp.parse(T[two])) for one, two in others]
    assert found == [StreamRecreated("S", one, two) for one, two in pairs]


STARTS = [  # policy, whether messages arrived, how many were due first; the next start
    ("all", True, 0, "all"),
    ("new", True, 0, "all"),
    ("new", False, 0, "all"),
    ("last", True, 0, "all"),
    ("by_start_time", True, 0, "all"),
    ("by_start_sequence", False, 0, "all"),
    ("last_per_subject", True, 0, "all"),
    ("last_per_subject", True, 5, "last_per_subject"),
    ("last_per_subject", False, 0, "last_per_subject"),
]


@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize(("policy", "came", "ahead", "expected"), STARTS)
def test_where_a_stream_that_was_recreated_is_read_from(policy, came, ahead, expected):
    fields = {"opt_start_time": T[0]} if policy == "by_start_time" else {}
    fields = {"opt_start_seq": 7} if policy == "by_start_sequence" else fields
    line = cursor(deliver_policy=policy, filter_subject="a", **fields)
    line.next_consumer()
    line.installed(created(6, created=T[2]))
    line.ahead = ahead
    if came:
        assert line.admit(b"$JS.ACK.S.o_1.1.9.1.1794786870000000000.0") == KEEP
    line.next_consumer()
    line.installed(created(6, num_pending=3))
    assert line.confirm(Timestamp.parse(T[3])) is not None
    config = line.next_consumer()[1]["config"]
    assert config == {
        "ack_policy": "none",
        "deliver_policy": expected,
        "filter_subject": "a",
        "name": "o_3",
    }
    line.installed(created(0, num_pending=2))
    line.confirm(Timestamp.parse(T[3]))
    assert line.admit(b"$JS.ACK.S.o_3.1.1.1.1794786870000000000.0") == KEEP


@pytest.mark.rule("ORDPUSH-2")
def test_a_push_consumer_has_a_subject():
    assert cursor().next_consumer("a.d1")[1]["config"]["deliver_subject"] == "a.d1"


@pytest.mark.rule("D-ORDERED-30")
def test_when_the_stream_is_not_known():
    """The stream is trusted the second time in a row."""
    line = cursor()
    line.next_consumer()
    line.installed(created(created=T[2]))
    for answers, expected in (("ff", [False, True]), ("fsf", [False, None, False])):
        found = []
        for answer in answers:
            line.next_consumer()
            line.installed(created())
            known = answer == "s"
            found.append(line.confirm(Timestamp.parse(T[1])) if known else line.trust())
            assert line.ready == (known or found[-1])
        assert found == expected
        line.confirm(None)


@pytest.mark.rule("D-ORDERED-19")
@pytest.mark.rule("D-ORDERED-31")
def test_rewind():
    line = cursor(deliver_policy="all")
    line.next_consumer()
    line.installed(created(created=T[2]))
    reply = b"$JS.ACK.S.o_%d.1.9.1.1794786870000000000.0"
    assert (line.rewind(reply % 1), line.start) == (True, 9)
    line.next_consumer()
    line.installed(created())
    line.confirm(Timestamp.parse(T[3]))
    assert (line.rewind(reply % 1), line.rewind(reply % 2), line.start) == (False, False, 0)
    line.next_consumer()
    assert (line.rewind(reply % 3), line.start) == (True, 9)


def test_before_the_first():
    line = cursor()
    assert (line.serial, line.start, line.ahead, line.consumer_seq) == (0, 0, 0, 0)
    assert not line.ready


@pytest.mark.rule("ORDERED-3")
def test_a_consumer_of_another_client_is_the_error_of_the_server():
    line = cursor()
    line.next_consumer()
    with pytest.raises(ConsumerExists) as caught:
        line.installed(created(consumer_seq=1))
    assert (caught.value.code, caught.value.err_code) == (400, 10148)


@pytest.mark.rule("D-ORDERED-26", "D-ORDERED-31")
def test_another_stream_has_other_subjects():
    """The number of subjects of the old stream does not apply to the new one."""
    line = cursor(deliver_policy="last_per_subject")
    line.next_consumer()
    line.installed(created(created="2026-01-01T00:00:01Z", num_pending=3))
    line.expect_latest(3, 10)
    assert line.ahead == 3
    line.next_consumer()
    line.installed(created(num_pending=3))
    assert line.ahead == 3
    assert line.confirm(Timestamp.parse("2026-01-01T00:00:09Z")) is not None
    line.next_consumer()
    line.installed(created(num_pending=7))
    assert line.ahead == 7


def begun():
    """Return a cursor whose first consumer is o_1."""
    line = cursor()
    line.next_consumer()
    line.installed(created())
    return line


def reply(stream_seq, consumer_seq, name="o_1"):
    return b"$JS.ACK.S.%s.1.%d.%d.1794786870000000000.0" % (
        name.encode(),
        stream_seq,
        consumer_seq,
    )


def test_a_message_of_another_consumer_among_others():
    line = begun()
    assert not line.admit_all([reply(1, 1), reply(2, 2, "o_2")])
    assert (line.start, line.consumer_seq) == (1, 0)


LARGE = 10**19  # the largest sequences have 20 digits


def test_the_largest_sequences_at_once():
    line = begun()
    assert line.admit_all([reply(LARGE, 1)])
    assert (line.start, line.consumer_seq) == (LARGE + 1, 1)
    line = begun()
    line.consumer_seq = LARGE
    assert line.admit_all([reply(1, LARGE + 1)])
    assert (line.start, line.consumer_seq) == (2, LARGE + 1)
