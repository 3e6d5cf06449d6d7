from __future__ import annotations

import json

import pytest

from jetstream.dead_letters.lookup import ASKING, FOUND, IDLE, OFFLINE, PAUSE, TRIES, Lookup
from natsproto.connection.effects import Publish
from natsproto.errors import TimeoutExpired
from natsproto.wire.frames import Msg

SUBJECT = b"$JS.API.STREAM.MSG.GET.S"
MESSAGE = {"message": {"subject": "s.a", "seq": 7, "time": "2026-11-17T18:02:39Z", "data": "eA=="}}


def error(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "x"}}


def online(now=0.0):
    lookup = Lookup("$JS.API", "S", "_INBOX.x")
    lookup.connected(now)
    return lookup


def asked(lookup):
    found = []
    for effect in lookup.take_effects():
        assert isinstance(effect, Publish)
        assert effect.subject == SUBJECT
        found.append((json.loads(effect.data)["seq"], effect.reply))
    return found


def reply(answer, token=b"1"):
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return Msg(b"_INBOX.x." + token, 1, b"", data, None)


FIRST = (7, b"_INBOX.x.1")


def test_the_message_is_found():
    lookup = online()
    assert (lookup.state, lookup.done, lookup.pending()) == (IDLE, False, 0)
    lookup.start(7, 1.0)
    assert asked(lookup) == [FIRST]
    assert (lookup.state, lookup.deadline) == (ASKING, 1.0 + PAUSE)
    assert lookup.receive(reply(MESSAGE), 1.1) is True
    assert (lookup.state, lookup.done, lookup.deadline) == (FOUND, True, None)
    assert lookup.finish().data == b"x"
    assert lookup.state == IDLE
    lookup.start(8, 2.0)
    assert asked(lookup) == [(8, b"_INBOX.x.2")]
    assert lookup.message is None


@pytest.mark.rule("D-DEAD-4", "DEAD-2")
@pytest.mark.parametrize("answer", [error(404, 10037), error(404, 10059), error(400, 10043)])
def test_the_message_is_gone(answer):
    lookup = online()
    lookup.start(7, 0.0)
    assert lookup.receive(reply(answer), 0.1) is True
    assert lookup.finish() is None


@pytest.mark.rule("D-DEAD-5")
@pytest.mark.parametrize("answer", [error(503, 10008), b"", b"no JSON", {"message": 1}, None])
def test_it_asks_again_without_a_useful_answer(answer):
    lookup = online()
    lookup.start(7, 0.0)
    assert asked(lookup) == [FIRST]
    if answer is not None:
        assert lookup.receive(reply(answer), 0.1) is False
        assert lookup.state == ASKING
    assert lookup.handle_timer(1.0) is False
    assert asked(lookup) == [FIRST]
    assert lookup.deadline == 2.0
    assert lookup.receive(reply(MESSAGE), 1.1) is True


@pytest.mark.rule("D-DEAD-5")
def test_it_fails_in_the_end_and_can_start_again():
    lookup = online()
    lookup.start(7, 0.0)
    for number in range(1, TRIES):
        assert lookup.handle_timer(number * PAUSE) is False
    assert len(asked(lookup)) == TRIES
    assert lookup.handle_timer(TRIES * PAUSE) is True
    assert lookup.done
    assert lookup.deadline is None
    text = r"no answer to STREAM\.MSG\.GET of message 7 of stream 'S' in 40 s"
    with pytest.raises(TimeoutExpired, match=text):
        lookup.finish()
    lookup.start(7, 50.0)
    assert asked(lookup) == [(7, b"_INBOX.x.2")]
    assert lookup.receive(reply(MESSAGE), 51.0) is False  # to the first request
    assert lookup.receive(reply(MESSAGE, b"2"), 51.0) is True


@pytest.mark.rule("D-DEAD-5")
def test_connections():
    lookup = Lookup("$JS.API", "S", "_INBOX.x")
    lookup.start(7, 0.0)
    assert (lookup.state, lookup.deadline, asked(lookup)) == (OFFLINE, None, [])
    lookup.start(7, 0.5)
    lookup.connected(1.0)
    assert asked(lookup) == [FIRST]
    lookup.start(7, 1.2)
    assert asked(lookup) == []
    lookup.disconnected(1.5)
    assert (lookup.state, lookup.deadline) == (OFFLINE, None)
    assert lookup.receive(reply(MESSAGE), 1.6) is False
    lookup.connected(2.0)
    assert asked(lookup) == [FIRST]
    lookup.receive(reply(MESSAGE), 2.1)
    lookup.disconnected(3.0)
    lookup.connected(4.0)
    assert lookup.state == FOUND
    assert asked(lookup) == []


def test_another_message_replaces_the_lookup():
    lookup = online()
    lookup.start(7, 0.0)
    lookup.start(8, 0.1)
    assert asked(lookup) == [FIRST, (8, b"_INBOX.x.2")]
    assert lookup.receive(reply(MESSAGE), 0.2) is False


@pytest.mark.rule("D-DEAD-5")
def test_it_asks_no_more_when_it_has_ended():
    lookup = online()
    lookup.start(7, 0.0)
    assert lookup.end() is True
    assert (lookup.deadline, lookup.done) == (None, False)
