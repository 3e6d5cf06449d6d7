"""The window of the sink and the frames of its rows: exact bytes and exact times, no server."""

from __future__ import annotations

import pytest

from jetstream.errors import NoStreamResponse, PublishInDoubt, PublishTimeout, WrongStream
from jetstream.spark.row_frames import RowFrames, new_tokens
from jetstream.spark.row_window import RowWindow
from natsproto.connection.effects import Publish, Wake
from natsproto.errors import ConnectionClosed, PayloadTooLarge
from natsproto.wire.encode import pub_checked
from natsproto.wire.frames import Msg
from natsproto.wire.parser import Parser
from tests.effects import publishes, woken

ID = b"NATS/1.0\r\nNats-Msg-Id: %d\r\n\r\n"
REFUSED = b'{"error":{"code":400,"err_code":10060,"description":"expected stream does not match"}}'
DUPLICATE = b'{"stream":"S","seq":%d,"duplicate":true}'


class NoPort:
    """A port that the machine does not use."""


def window(rows, *, ids=False, most=100, now=0.0):
    """Return a machine with this many rows in flight, in one block."""
    machine = RowWindow(NoPort(), b"_INBOX.p", most, 5.0, 2, 0.0)
    send(machine, 0, rows, ids=ids, now=now)
    return machine


def send(machine, first, end, *, ids=False, now=0.0):
    pieces = [(b"s.%d" % row, b"x", ID % row if ids else None) for row in range(first, end)]
    return machine.submit_block(first, pieces, [b"T%d" % row for row in range(first, end)], now)


def answer(row, data=b'{"stream":"S","seq":%d}', block=None):
    data = data % (row + 100) if b"%d" in data else data
    return Msg(b"_INBOX.p.T%d" % row, 1, b"", data, block)


def no_responders(row):
    return answer(row, b"", b"NATS/1.0 503\r\n\r\n")


def acked(machine):
    """Return the sequence of each row that was acknowledged in a block."""
    pairs = [pair for _, rows, seqs in machine.acked for pair in zip(rows, seqs, strict=True)]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def failures(machine):
    return [(each.row, type(each.error)) for each in machine.take_failed()]


# Acknowledgments


def test_acknowledgments_of_a_block():
    machine = window(50)
    assert not machine.receive(answer(0), 0.1)
    assert not machine.receive_all([answer(row) for row in (1, 2)], 0.1)  # their form is known now
    assert machine.receive_all([answer(row) for row in range(50, 2, -1)], 0.1) is False
    assert machine.pending() == 0
    assert acked(machine) == {row: row + 100 for row in range(50)}
    assert {(ack.stream, ack.duplicate) for ack, _, _ in machine.acked} == {("S", False)}
    assert machine.effects == []


INVALID = "InvalidResponse"
ODD = [
    # an answer among others,                what becomes of its row
    (b'{"stream":"S","seq":0%d}', INVALID),
    (b'{"stream":"S","seq":}', INVALID),
    (b'{"stream":"S","seq":12x}', INVALID),
    (b'{"stream":"S","seq":1_2}', INVALID),
    (b'{"stream":"S","seq": 12}', 12),
    (b'{"stream":"S","seq":12 }', 12),
    (b'{"stream":"T","seq":12}', 12),
    (b'{"stream":"S","seq":12,"domain":"hub"}', 12),
    (b'{"stream":"S","seq":12', INVALID),
    (b"", INVALID),
    (b'{"stream":"S","seq":12}{"stream":"S","seq":13}', INVALID),
    (REFUSED, "WrongStream"),
]


@pytest.mark.rule("D-PUB-19")
@pytest.mark.parametrize(("data", "result"), ODD)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_an_answer_among_others_is_read_as_if_it_were_alone(data, result, place):
    machine = window(9)
    machine.receive_all([answer(row) for row in range(5, 9)], 0.1)
    answers = [answer(row, data) if row == place else answer(row) for row in range(5)]
    machine.receive_all(answers, 0.2)
    expected = {row: row + 100 for row in range(9)}
    if isinstance(result, int):
        expected[place] = result
        assert machine.take_failed() == []
    else:
        del expected[place]
        [failed] = machine.take_failed()
        assert (failed.row, type(failed.error).__name__) == (place, result)
        assert failed.piece == (b"s.%d" % place, b"x", None)
    assert acked(machine) == expected


def test_duplicates_are_marked():
    machine = window(3)
    machine.receive_all([answer(0), answer(1, DUPLICATE), answer(2)], 0.1)
    assert [(ack.duplicate, rows) for ack, rows, _ in machine.acked] == [
        (False, [0]),
        (True, [1]),
        (False, [2]),
    ]


@pytest.mark.rule("D-PUB-10")
def test_late_and_second_answers_are_ignored():
    machine = window(3)
    machine.receive_all([answer(0), answer(0), answer(7), answer(1), answer(1)], 0.1)
    assert (acked(machine), machine.pending()) == ({0: 100, 1: 101}, 1)


@pytest.mark.rule("D-PUB-11")
@pytest.mark.parametrize(
    ("most", "rows", "answered", "wakes"),
    [(10, 10, 4, False), (10, 10, 5, True), (10, 5, 5, False), (1, 1, 1, True)],
)
def test_callers_that_wait_for_room_wake_up_when_half_is_free(most, rows, answered, wakes):
    machine = window(rows, most=most)
    assert machine.full is (rows == most)
    assert machine.receive_all([answer(row) for row in range(answered)], 0.1) is wakes


# Blocks


def test_messages_are_kept_until_their_blocks_are_acknowledged():
    machine = window(2)
    send(machine, 2, 5)
    send(machine, 5, 6)
    assert [machine.piece(row)[0] for row in (0, 1, 2, 4, 5)] == [
        b"s.0",
        b"s.1",
        b"s.2",
        b"s.4",
        b"s.5",
    ]
    for row, blocks in [(3, 3), (0, 3), (1, 2), (5, 2), (2, 2), (4, 0)]:
        machine.receive(answer(row), 0.1)
        machine.trim()
        assert len(machine._blocks) == blocks
    machine.trim()


def test_rows_in_flight_in_order():
    machine = window(3)
    machine.submit(7, (b"a", b"", None), 0.1, True)
    machine.receive(no_responders(1), 0.2)
    machine.receive(answer(0), 0.2)
    assert [(row, piece[0]) for row, piece in machine.in_flight()] == [
        (1, b"s.1"),
        (2, b"s.2"),
        (7, b"a"),
    ]


def test_submit_returns_whether_to_arm_the_timer():
    machine = RowWindow(NoPort(), b"_INBOX.p", 100, 5.0, 2, 0.0)
    assert send(machine, 0, 2, now=1.0)
    assert not send(machine, 2, 3, now=2.0)
    assert machine.deadline == 6.0


# Failures


@pytest.mark.rule("D-PUB-12")
def test_rows_that_are_late_fail_with_the_block_they_were_sent_in():
    machine = window(3)
    send(machine, 3, 5, now=1.0)
    machine.receive(answer(1), 2.0)
    assert machine.handle_timer(4.9) is False
    assert machine.deadline == 5.0
    assert machine.handle_timer(5.0) is True
    assert (machine.deadline, machine.pending()) == (6.0, 2)
    assert failures(machine) == [(0, PublishTimeout), (2, PublishTimeout)]
    machine.receive_all([answer(3), answer(4)], 5.5)
    assert machine.handle_timer(6.0) is False
    assert (machine.deadline, failures(machine)) == (None, [])


@pytest.mark.rule("D-PUB-13")
@pytest.mark.parametrize("ids", [True, False])
def test_rows_of_a_lost_connection(ids):
    machine = window(12, ids=ids)
    machine.receive(answer(5), 0.5)
    machine.disconnected(1.0)
    left = [row for row in range(12) if row != 5]
    if ids:  # they are sent again, in order, under the same replies
        assert (machine.deadline, machine.pending()) == (None, 11)
        machine.connected(2.0)
        sent = [(each.subject, each.reply, each.block) for each in publishes(machine)]
        assert sent == [(b"s.%d" % row, b"_INBOX.p.T%d" % row, ID % row) for row in left]
        assert machine.deadline == 7.0
        machine.receive_all([answer(row) for row in left], 2.5)
        assert [each.row for each in machine.answered] == left
        assert [each.ack.seq for each in machine.answered] == [row + 100 for row in left]
    else:
        assert set(woken(machine)) == {machine}
        assert failures(machine) == [(row, PublishInDoubt) for row in left]
        machine.connected(2.0)
        assert publishes(machine) == []
    assert (machine.pending(), acked(machine)) == (0, {5: 105})


def test_a_row_without_a_stream_is_sent_again():
    machine = window(3)
    machine.receive_all([answer(0), no_responders(1), answer(2)], 0.5)
    for now in (0.75, 1.0):
        assert machine.deadline == now
        assert machine.handle_timer(now) is False
        [effect] = publishes(machine)
        assert (effect.subject, effect.reply) == (b"s.1", b"_INBOX.p.T1")
        machine.receive(no_responders(1), now)
    assert failures(machine) == [(1, NoStreamResponse)]


def test_a_row_without_a_connection_is_sent_on_the_next():
    machine = RowWindow(NoPort(), b"_INBOX.p", 100, 5.0, 2, 0.0)
    publication = machine.submit(0, (b"a", b"x", None), 1.0, False)
    assert (machine.deadline, machine.effects) == (None, [])
    machine.connected(2.0)
    assert [each.reply for each in publishes(machine)] == [publication.reply]
    assert machine.deadline == 7.0


@pytest.mark.rule("D-REQ-9")
def test_rows_that_are_sent_alone_have_tokens_of_the_connection():
    machine = RowWindow(NoPort(), b"_INBOX.p", 100, 5.0, 2, 0.0)
    machine.tokens.pool = [b"RANDOM"]
    assert machine.submit(0, (b"a", b"x", None), 1.0, True).reply == b"_INBOX.p.RANDOM"


@pytest.mark.rule("D-PUB-15")
def test_a_row_that_cannot_be_sent_fails():
    machine = RowWindow(NoPort(), b"_INBOX.p", 100, 5.0, 2, 0.0)
    machine.reject(machine.submit(4, (b"a", b"x", None), 1.0, True), PayloadTooLarge("too large"))
    assert (machine.failed, set(woken(machine))) == (True, {machine})
    assert failures(machine) == [(4, PayloadTooLarge)]
    machine = window(2, ids=True)
    machine.disconnected(1.0)
    machine.connected(2.0)
    machine.unsent(publishes(machine)[1], PayloadTooLarge("too large"))
    assert (failures(machine), machine.pending()) == ([(1, PayloadTooLarge)], 1)


@pytest.mark.rule("D-PUB-17")
def test_the_end_settles_everything():
    machine = window(2)
    machine.submit(2, (b"a", b"x", None), 1.0, True)
    assert machine.end(ConnectionClosed("closed")) is True
    assert machine.end() is False
    assert (machine.pending(), machine.deadline) == (0, None)
    assert sorted(failures(machine)) == [(row, PublishInDoubt) for row in range(3)]


def test_effects_are_those_of_the_machine():
    machine = window(2)
    machine.receive_all([answer(0, REFUSED), no_responders(1)], 0.1)
    assert failures(machine) == [(0, WrongStream)]
    machine.handle_timer(0.35)
    assert {type(effect) for effect in machine.effects} <= {Publish, Wake}
    assert [each.reply for each in publishes(machine)] == [b"_INBOX.p.T1"]


# Frames

BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"
ROWS = {
    "no headers": [(b"a", b"12", None), (b"b.c", b"", None), (b"a", b"x" * 300, None)],
    "headers": [(b"a", b"12", BLOCK), (b"b.c", b"", BLOCK), (b"a", b"x" * 300, ID % 1)],
    "some": [(b"a", b"12", None), (b"b.c", b"", BLOCK), (b"a", b"\r\n", None)],
    "one": [(b"a", b"12", BLOCK)],
    "percent": [(b"a%s", b"%d", None)],
}


@pytest.mark.parametrize("pieces", ROWS.values(), ids=ROWS)
def test_frames_are_those_of_single_publishes(pieces):
    encoder = RowFrames(b"_INBOX%s.p.")
    tokens = [b"T%d" % place for place in range(len(pieces))]
    single = [
        pub_checked(subject, data, b"_INBOX%s.p." + token, block)
        for (subject, data, block), token in zip(pieces, tokens)
    ]
    for _ in range(2):  # with and without what is remembered
        assert encoder.encode(pieces, tokens, 1000) == b"".join(single)
    assert len(Parser(peer="client").feed(b"".join(single))) == len(pieces)


@pytest.mark.parametrize(("limit", "fits"), [(300 + len(BLOCK), True), (299 + len(BLOCK), False)])
def test_a_row_that_is_too_large(limit, fits):
    pieces = [(b"a", b"1", BLOCK), (b"a", b"x" * 300, BLOCK)]
    assert (RowFrames(b"p.").encode(pieces, [b"1", b"2"], limit) is not None) is fits


def test_what_is_remembered_is_bounded():
    encoder = RowFrames(b"p.")
    for number in range(9000):
        piece = (b"s.%d" % number, bytes(number), None)
        expected = pub_checked(piece[0], piece[1], b"p.T", None)
        assert encoder.encode([piece], [b"T"], 10_000) == expected
    assert len(encoder._pub) <= 4096
    assert len(encoder._sizes) <= 4096


@pytest.mark.rule("D-REQ-9")
def test_tokens_differ():
    tokens = new_tokens(1000)
    assert len(set(tokens)) == 1000
    assert {len(token) for token in tokens} == {16}
    assert all(token.isalnum() and token == token.upper() for token in tokens)
