from __future__ import annotations

import json

import pytest

from jetstream.advisories import MaxDeliverAdvisory
from jetstream.api.client import ApiClient
from jetstream.dead_letters.api import open_dead_letters
from jetstream.errors import JetStreamNotAvailable, StreamNotFound
from natsproto.errors import ConnectionClosed, InvalidState, TimeoutExpired
from natsproto.wire.frames import Msg
from tests.jetstream.advisories.samples import event
from tests.jetstream.support import NOBODY, SILENCE, Delivery, Stage

STREAM = {"config": {"name": "S"}, "created": "2026-11-01T00:00:00Z"}
EVENTS = "$JS.EVENT.ADVISORY.CONSUMER."
CAPTURE = {"config": {"name": "dead", "subjects": [EVENTS + ">"]}}
CONSUMER = {"stream_name": "dead", "name": "d", "config": {}}
MESSAGE = {"message": {"subject": "s.a", "seq": 3, "time": "2026-11-17T18:02:39Z", "data": "eA=="}}
NOT_FOUND = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
GET = ("$JS.API.STREAM.MSG.GET.S", {"seq": 3})


def live(*answers, prefix="$JS.API", **stream):
    stage = Stage({**STREAM, **stream}, *answers)
    api = ApiClient(stage.client.session, "", prefix, 5.0)
    letters = stage.run(open_dead_letters(api, "S", "c"))
    stage.pubs  # noqa: B018  (the lookup of the stream)
    return stage, letters


def entry(raw, number=1):
    return Delivery(
        EVENTS + "MAX_DELIVERIES.S.c",
        f"$JS.ACK.dead.d.1.{number}.{number}.1.0",
        raw if isinstance(raw, bytes) else json.dumps(raw).encode(),
    )


def captured(*entries):
    """Return dead letters whose first pull delivers these entries."""
    stage = Stage(STREAM, CAPTURE, CONSUMER, list(entries))
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    letters = stage.run(open_dead_letters(api, "S", "c", "dead"))
    stage.pubs  # noqa: B018  (what led to it)
    return stage, letters


def deliver(stage, raw, sid=1):
    data = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    stage.wire.data(b"MSG s %d %d\r\n%s\r\n" % (sid, len(data), data))


async def collect(letters):
    return [letter async for letter in letters]


def test_a_live_letter():
    stage, letters = live(MESSAGE)
    assert (letters.stream, letters.consumer, letters.closed) == ("S", "c", False)
    assert repr(letters) == "<DeadLetters of consumer c of stream S>"
    deliver(stage, event("max_deliver"))
    letter = stage.run(letters.next(5.0))
    assert stage.asked == [GET]
    assert (letter.seq, letter.message.data, letter.deliveries) == (3, b"x", 2)


def test_nothing_is_missed_while_it_starts():
    """It subscribes before it looks the stream up."""
    stage = Stage()
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    frames = []

    async def wait(waitable):
        frames.extend(stage._parser.feed(stage.wire.sent()))
        stage.wire.ring()

    stage.wait = wait
    with pytest.raises(TimeoutExpired):
        stage.run(open_dead_letters(api, "S", "c"))
    subjects = [frame.subject for frame in frames if hasattr(frame, "subject")]
    events = [EVENTS + "MAX_DELIVERIES.S.c", EVENTS + "MSG_TERMINATED.S.c"]
    assert subjects[:2] == events
    assert subjects[-1] == "$JS.API.STREAM.INFO.S"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": {"code": 404, "err_code": 10059, "description": "x"}}, StreamNotFound),
        (NOBODY, JetStreamNotAvailable),
    ],
)
@pytest.mark.parametrize("durable", ["", "dead"])
def test_a_stream_that_does_not_exist(answer, error, durable):
    stage = Stage(answer)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(error):
        stage.run(open_dead_letters(api, "S", "c", durable))
    stage.serve()
    assert [each for each in stage._subs.values() if each.startswith("$JS")] == []


@pytest.mark.rule("D-DEAD-4")
@pytest.mark.parametrize("created", ["2026-11-01T00:00:00Z", None])
def test_a_message_that_is_gone(created):
    stage, letters = live(NOT_FOUND, created=created)
    deliver(stage, event("terminated", stream_seq=3), sid=2)
    letter = stage.run(letters.next())
    assert letter.gone
    assert stage.asked == [GET]


@pytest.mark.rule("D-DEAD-4")
def test_a_letter_that_is_older_than_the_stream():
    stage, letters = live(created="2026-11-18T00:00:00Z")
    deliver(stage, event("max_deliver"))
    assert stage.run(letters.next()).gone
    assert stage.quiet()


def test_iteration_until_stop():
    stage, letters = live(MESSAGE, MESSAGE)
    deliver(stage, event("max_deliver"))
    deliver(stage, event("max_deliver"))
    found = []

    async def read():
        async for letter in letters:
            found.append(letter.seq)
            if len(found) == 2:
                await letters.stop()

    stage.run(read())
    assert found == [3, 3]
    assert letters.closed
    stage.serve()
    assert letters._lookup.sid not in stage._subs
    assert [each for each in stage._subs.values() if each.startswith("$JS")] == []
    with pytest.raises(InvalidState):
        stage.run(letters.next())


def test_a_block():
    stage, letters = live()

    async def block():
        async with letters as same:
            assert same is letters

    stage.run(block())
    assert letters.closed


def test_timeouts():
    stage, letters = live(SILENCE, SILENCE, SILENCE, MESSAGE)
    with pytest.raises(TimeoutExpired, match="no advisory in time"):
        stage.run(letters.next(0))
    deliver(stage, event("max_deliver"))
    with pytest.raises(TimeoutExpired, match="no stored message in time"):
        stage.run(letters.next(0))
    began = stage.now()
    with pytest.raises(TimeoutExpired):
        stage.run(letters.next(1.5))
    assert stage.now() - began == 1.5
    # The advisory is kept: nothing is lost.
    assert not letters.closed
    assert stage.run(letters.next(10.0)).seq == 3


def test_a_message_that_arrives_between_two_calls():
    stage, letters = live(SILENCE)
    deliver(stage, event("max_deliver"))
    with pytest.raises(TimeoutExpired):
        stage.run(letters.next(0))
    stage.serve()
    lookup = letters._lookup
    raw = json.dumps(MESSAGE).encode()
    stage.wire.data(b"MSG %s %d %d\r\n%s\r\n" % (lookup._reply, lookup.sid, len(raw), raw))
    assert stage.run(letters.next(0)).seq == 3


@pytest.mark.rule("D-DEAD-5")
def test_a_lookup_that_fails_is_repeated_by_the_next_call():
    stage, letters = live(*[SILENCE] * 40, MESSAGE)
    deliver(stage, event("max_deliver"))
    with pytest.raises(TimeoutExpired, match="GET of message 3"):
        stage.run(letters.next())
    assert stage.run(letters.next()).seq == 3


@pytest.mark.rule("D-DEAD-11")
@pytest.mark.parametrize(
    "raw",
    [
        b"no JSON",
        event("nak"),
        event("max_deliver", stream="T"),
        event("max_deliver", consumer="d"),
        event("max_deliver", stream_seq=0),
    ],
)
def test_other_events_are_skipped(raw):
    stage, letters = live(MESSAGE)
    deliver(stage, raw)
    deliver(stage, event("max_deliver"))
    assert stage.run(letters.next()).seq == 3
    stage, letters = captured(entry(raw), entry(event("max_deliver"), 2))
    stage.answers = [MESSAGE]
    assert stage.run(letters.__anext__()).seq == 3
    terminated = [pub.data for pub in stage.pubs if pub.subject.startswith("$JS.ACK.dead.d.1.1.")]
    assert terminated == [b"+TERM not an advisory about a dead letter"]


@pytest.mark.rule("D-ADVIS-7")
def test_domains():
    stage, letters = live(MESSAGE, prefix="$JS.hub.API")
    deliver(stage, event("max_deliver", domain="leaf"))
    deliver(stage, event("max_deliver", domain="hub", deliveries=5))
    assert stage.run(letters.next()).deliveries == 5
    leaf = MaxDeliverAdvisory.from_json(event("max_deliver", domain="leaf"))
    assert not letters._is_ours(leaf)


def test_a_captured_letter():
    stage, letters = captured(entry(event("max_deliver")))
    stage.answers = [MESSAGE]
    letter = stage.run(letters.next(5.0))
    assert (letter.seq, letter.message.data, letter.settled) == (3, b"x", False)
    assert [pub.data for pub in stage.pubs if "ACK" in pub.subject] == []
    stage.answers = [b""]
    stage.run(letter.discard())
    assert [pub.data for pub in stage.pubs if "ACK" in pub.subject] == [b"+ACK"]
    assert not letters.closed
    stage.run(letters.stop())
    assert letters.closed


def test_stop_returns_a_letter_that_was_not_taken():
    stage, letters = captured(entry(event("max_deliver")))
    stage.answers = [SILENCE]
    with pytest.raises(TimeoutExpired):
        stage.run(letters.next(0.5))
    stage.pubs  # noqa: B018  (the lookup)
    stage.run(letters.stop())
    assert [pub.data for pub in stage.pubs if "ACK" in pub.subject] == [b"-NAK"]


def test_the_end_of_the_client():
    stage, letters = live(SILENCE)
    deliver(stage, event("max_deliver"))
    with pytest.raises(TimeoutExpired):
        stage.run(letters.next(0.1))
    stage.run(stage.client.close())
    assert stage.run(collect(letters)) == []
    with pytest.raises((InvalidState, ConnectionClosed)):
        stage.run(letters.next())


def test_two_callers_get_one_letter_each():
    stage, letters = live(SILENCE)
    deliver(stage, event("max_deliver"))
    first, second = letters.next(), letters.next(0)
    waiting = []

    class Suspend:
        def __await__(self):
            yield

    async def wait(waitable):
        waiting.append(waitable)
        await Suspend()

    stage.wait = wait
    first.send(None)  # it waits for the stored message
    other = letters.next()
    other.send(None)
    assert waiting == [letters._lookup] * 2
    second.close()
    letters._lookup.receive(reply_to(letters), 0.0)
    with pytest.raises(StopIteration) as found:
        first.send(None)
    assert found.value.value.seq == 3
    other.send(None)  # it waits for the next advisory
    assert waiting[-1] is not letters._lookup
    other.close()


def reply_to(letters):
    return Msg(letters._lookup._reply, 1, b"", json.dumps(MESSAGE).encode(), None)


def test_a_lookup_that_ends_with_an_error():
    stage, letters = live(SILENCE)
    deliver(stage, event("max_deliver"))
    with pytest.raises(TimeoutExpired):
        stage.run(letters.next(0.1))
    stage.connection.unsubscribe(letters._lookup.sid)
    letters._lookup.error = ConnectionClosed("the end")
    with pytest.raises(ConnectionClosed, match="the end"):
        stage.run(letters.next())
