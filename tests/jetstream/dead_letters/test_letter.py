from __future__ import annotations

import pytest

from jetstream.api.stored import StoredMsg
from jetstream.errors import InsufficientResources, MessageNotFound
from natsproto.errors import HeaderError, InvalidState, InvalidValue, TimeoutExpired
from tests.jetstream.dead_letters.desks import ENTRY, TIME, letter_of, stored
from tests.jetstream.support import SILENCE, Stage

ACK = {"stream": "S", "seq": 9}
DELETED = {"success": True}
FULL = {"error": {"code": 503, "err_code": 10023, "description": "x"}}
DELETE = ("$JS.API.STREAM.MSG.DELETE.S", {"seq": 3, "no_erase": True})
NOT_FOUND = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
MARKS = {
    "Dead-Letter-Stream": "S",
    "Dead-Letter-Consumer": "c",
    "Dead-Letter-Sequence": "3",
    "Dead-Letter-Retries": "1",
    "Nats-Msg-Id": "dead-letter.S.c.3",
}


@pytest.mark.rule("DEAD-1")
def test_what_is_known():
    stage = Stage()
    letter = letter_of(stage, stored())
    assert (letter.stream, letter.consumer, letter.seq) == ("S", "c", 3)
    assert (letter.deliveries, letter.kind, letter.reason) == (2, "max_deliver", "")
    assert letter.time == letter.advisory.timestamp
    assert (letter.gone, letter.retries, letter.settled) == (False, 0, False)
    text = "<DeadLetter 3 of 'S', consumer 'c': max_deliver after 2 deliveries>"
    assert repr(letter) == text
    other = letter_of(stage, None, kind="terminated")
    assert (other.kind, other.reason, other.seq) == ("terminated", "cannot be parsed", 1)
    assert (other.gone, other.retries) == (True, 0)
    assert repr(other).endswith("terminated after 1 deliveries, gone>")


RETRIES = [("", 0), ("2", 2), ("x", 0), ("-1", 0), ("9" * 10, 0), ("9" * 9, 999999999)]


@pytest.mark.parametrize(("text", "count"), RETRIES)
def test_retries(text, count):
    letter = letter_of(Stage(), stored(Dead_Letter_Retries=text))
    assert letter.retries == count
    broken = StoredMsg("S", "s.a", 3, TIME, b"", b"no block")
    assert letter_of(Stage(), broken).retries == 0
    assert letter_of(Stage(), stored()).retries == 0


HEADERS = [
    # of the stored message, further ones, those of the retry besides the marks
    ({}, None, {}),
    ({"Color": "red"}, {"By": "me"}, {"Color": "red", "By": "me"}),
    ({"Color": "red"}, {"Color": "blue"}, {"Color": "blue"}),
    ({"Nats_TTL": "5s", "Nats_Rollup": "sub"}, None, {"Nats-TTL": "5s"}),
    ({"Nats_Expected_Last_Sequence": "2", "Nats_Batch_Id": "b"}, None, {}),
    ({"Nats_Msg_Id": "id-1"}, None, {"Dead-Letter-Msg-Id": "id-1"}),
    (
        {"Nats_Msg_Id": "dead-letter.S.c.1", "Dead_Letter_Stream": "S", "Dead_Letter_Retries": "1"},
        None,
        {"Dead-Letter-Retries": "2"},
    ),
    (
        {"Nats_Msg_Id": "x", "Dead_Letter_Stream": "S", "Dead_Letter_Msg_Id": "id-1"},
        None,
        {"Dead-Letter-Msg-Id": "id-1"},
    ),
]


@pytest.mark.rule("D-DEAD-6", "D-DEAD-8")
@pytest.mark.parametrize(("old", "more", "new"), HEADERS)
def test_the_headers_of_a_retry(old, more, new):
    stage = Stage(ACK)
    letter = letter_of(stage, stored(**old))
    assert stage.run(letter.retry(headers=more)).seq == 9
    (pub,) = stage.pubs
    assert (pub.subject, pub.data) == ("s.a", b"work")
    assert dict(pub.headers.items()) == {**MARKS, **new}
    assert letter.settled


@pytest.mark.rule("D-DEAD-6")
def test_repeated_headers_stay():
    block = b"NATS/1.0\r\nA: 1\r\nA: 2\r\nB: 1\r\n\r\n"
    stage = Stage(ACK)
    letter = letter_of(stage, StoredMsg("S", "s.a", 3, TIME, b"", block))
    stage.run(letter.retry(headers=[("B", "2"), ("B", "3")]))
    (pub,) = stage.pubs
    assert pub.headers.get_all("A") == ["1", "2"]
    assert pub.headers.get_all("B") == ["2", "3"]


@pytest.mark.rule("D-DEAD-8")
def test_another_subject():
    stage = Stage(ACK)
    stage.run(letter_of(stage, stored()).retry(subject="parked.x", timeout=1.0))
    (pub,) = stage.pubs
    assert pub.subject == "parked.x"
    assert pub.headers["Nats-Msg-Id"] == "dead-letter.S.c.3.parked.x"


def test_headers_that_cannot_be_copied():
    stage = Stage()
    letter = letter_of(stage, StoredMsg("S", "s.a", 3, TIME, b"", b"no block"))
    with pytest.raises(HeaderError):
        stage.run(letter.retry())
    assert stage.quiet()


DELETES = [
    # work queue, argument, whether the message is deleted
    (False, None, False),
    (True, None, True),
    (False, True, True),
    (True, False, False),
]


@pytest.mark.rule("D-DEAD-7")
@pytest.mark.parametrize(("queue", "delete", "deleted"), DELETES)
def test_deletes(queue, delete, deleted):
    stage = Stage(ACK, *[DELETED] * deleted)
    stage.run(letter_of(stage, stored(), queue=queue).retry(delete=delete))
    assert stage.asked[1:] == [DELETE] * deleted
    stage.answers = [DELETED] * deleted
    stage.run(letter_of(stage, stored(), queue=queue).discard(delete=delete))
    assert stage.asked == [DELETE] * deleted
    assert stage.quiet()


def test_wrong_arguments():
    stage = Stage()
    letter = letter_of(stage, stored())
    with pytest.raises(InvalidValue, match="delete 1 is neither"):
        stage.run(letter.discard(delete=1))
    with pytest.raises(InvalidValue):
        stage.run(letter.retry(timeout=0))
    assert not letter.settled
    assert stage.quiet()


def test_a_message_that_was_deleted_before():
    stage = Stage(NOT_FOUND)
    letter = letter_of(stage, stored(), queue=True)
    stage.run(letter.discard())
    assert letter.settled


@pytest.mark.rule("D-DEAD-4")
def test_a_message_that_is_gone():
    stage = Stage()
    letter = letter_of(stage, None, queue=True)
    with pytest.raises(MessageNotFound, match="message 3 of stream 'S' is gone"):
        stage.run(letter.retry())
    assert not letter.settled
    stage.run(letter.discard())
    assert letter.settled
    assert stage.quiet()


def test_it_is_settled_once():
    stage = Stage()
    letter = letter_of(stage, stored())
    stage.run(letter.discard())
    for again in (letter.discard(), letter.retry()):
        with pytest.raises(InvalidState, match="dead letter 3 of stream 'S' is settled"):
            stage.run(again)


@pytest.mark.rule("D-DEAD-9")
def test_the_entry_is_acknowledged_last():
    stage = Stage(ACK, DELETED, b"")
    letter = letter_of(stage, stored(), queue=True, captured=True)
    stage.run(letter.in_progress())
    stage.run(letter.retry())
    subjects = [(pub.subject, pub.data) for pub in stage.pubs]
    assert subjects[0] == (ENTRY.reply, b"+WPI")
    assert [subject for subject, _ in subjects[1:]] == ["s.a", DELETE[0], ENTRY.reply]
    assert subjects[-1][1] == b"+ACK"


@pytest.mark.rule("D-DEAD-8", "D-DEAD-9")
@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([FULL], InsufficientResources),
        ([ACK, FULL], InsufficientResources),
        ([ACK, DELETED, SILENCE], TimeoutExpired),
    ],
)
def test_a_retry_that_failed_can_be_repeated(answers, error):
    stage = Stage(*answers)
    letter = letter_of(stage, stored(), queue=True, captured=True)
    with pytest.raises(error):
        stage.run(letter.retry())
    assert not letter.settled
    first = stage.pubs[0].headers["Nats-Msg-Id"]
    stage.answers = [{**ACK, "duplicate": True}, NOT_FOUND, b""]
    assert stage.run(letter.retry()).duplicate
    assert letter.settled
    assert stage.pubs[0].headers["Nats-Msg-Id"] == first


def test_nothing_is_in_progress_without_a_capture():
    stage = Stage()
    stage.run(letter_of(stage, stored()).in_progress())
    assert stage.quiet()
