from __future__ import annotations

import json

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import (
    ConsumerDeleted,
    ConsumerExists,
)
from jetstream.events import ConsumerReset
from jetstream.ordered.api import open_ordered
from natsproto.errors import (
    InvalidName,
    InvalidState,
    InvalidValue,
    LocalError,
    NotSupported,
)
from tests.jetstream.ordered_handles import (
    DELETED,
    TIMEOUT,
    config,
    created,
    delivery,
    handle,
    sent,
    seqs,
)
from tests.jetstream.support import SILENCE, Stage


@pytest.mark.rule("ORDERED-18")
@pytest.mark.parametrize(
    ("prefix", "most", "error"),
    [
        ("a.b", None, InvalidName),
        ("é", None, InvalidName),
        (5, None, InvalidName),
        ("o" * 250, None, InvalidName),
        ("o", 0, InvalidValue),
        ("o", "3", InvalidValue),
    ],
)
def test_refused_handles(prefix, most, error):
    stage = Stage()
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(error):
        stage.run(open_ordered(api, "S", prefix, config(), most))
    assert stage.quiet()


@pytest.mark.rule("D-CALL-7")
def test_an_old_server():
    with pytest.raises(NotSupported):
        handle(filter_subjects=["a", "b"], info={"version": "2.9.10", "api_lvl": 0})


def test_a_name_is_made_up():
    stage = Stage(created())
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "", config(), None))
    prefix, _, serial = ordered.name.partition("_")
    assert (len(prefix), serial, ordered.stream) == (22, "1", "S")
    assert repr(ordered) == "<OrderedConsumer %s of S>" % ordered.name


@pytest.mark.rule("ORDERED-3")
def test_names_that_others_use():
    stage = Stage(created(5, 5), created(7, 7), created())
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "o", config(), None))
    assert ordered.name == "o_3"
    stage = Stage(*[created(5, 5)] * 5)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(ConsumerExists):
        stage.run(open_ordered(api, "S", "o", config(), None))


def test_info_and_delete():
    stage, ordered = handle({"name": "o_1", "num_pending": 7}, {"success": True}, created())
    assert ordered.cached_info.num_pending == 0
    info = stage.run(ordered.info())
    assert (info.num_pending, ordered.cached_info) == (7, info)
    stage.run(ordered.delete())
    messages = ordered.consume()
    assert sent(stage) == ["info 1", "delete 1", "create 2 from 1"]
    assert not messages.closed


# consume


@pytest.mark.rule("ORDERED-21")
@pytest.mark.parametrize(
    ("options", "heartbeat"),
    [({}, 5.0), ({"expires": 4.0}, 2.0), ({"heartbeat": 1.5}, 1.5), ({"expires": 60.0}, 5.0)],
)
def test_consume(options, heartbeat):
    stage, ordered = handle([delivery(1, 1, 1)])
    messages = ordered.consume(max_messages=5, **options)
    msg = stage.run(messages.next())
    assert (msg.data, msg.settled) == (b"1", True)
    (pull,) = stage.pubs
    assert json.loads(pull.data)["idle_heartbeat"] == heartbeat * 1e9


@pytest.mark.rule("ORDERED-14")
def test_a_reset():
    stage, ordered = handle(
        [delivery(1, 1, 1), DELETED], SILENCE, created(1), [delivery(2, 2, 1)], most=3
    )
    messages = ordered.consume(max_messages=5)
    assert seqs([stage.run(messages.next()) for _ in range(2)]) == [1, 2]
    event = stage.run(messages.events.next())
    assert isinstance(event, ConsumerReset)
    assert isinstance(event.error, ConsumerDeleted)
    assert (ordered.name, ordered.cached_info.delivered.stream_seq) == ("o_2", 1)
    assert (ordered.cursor.name, ordered.cursor.info) == ("o_2", ordered.cached_info)
    assert sent(stage) == ["pull 1 5", "delete 1", "create 2 from 2", "pull 2 5"]


@pytest.mark.rule("D-ORDERED-19")
def test_consume_again_and_fetch():
    stage, ordered = handle(
        [delivery(1, 1, 1), delivery(1, 2, 2), delivery(1, 3, 3)],
        SILENCE,
        created(1),
        [delivery(2, 2, 1)],
        SILENCE,
        created(2),
        [delivery(3, 3, 1)],
        [delivery(3, 4, 2)],
    )
    messages = ordered.consume(max_messages=5, threshold_messages=1)
    assert stage.run(messages.next()).data == b"1"
    assert seqs(stage.run(messages.stop())) == [2, 3]
    messages = ordered.consume(max_messages=5, threshold_messages=1)
    assert stage.run(messages.next()).data == b"2"
    stage.run(messages.stop())
    assert stage.run(ordered.next()).data == b"3"
    messages = ordered.consume(max_messages=5)
    assert stage.run(messages.next()).data == b"4"
    assert sent(stage) == [
        "pull 1 5",
        "delete 1",
        "create 2 from 2",
        "pull 2 5",
        "delete 2",
        "create 3 from 3",
        "pull 3 1",
        "pull 3 5",
    ]


@pytest.mark.rule("ORDERED-23")
def test_one_use_at_a_time():
    stage, ordered = handle(SILENCE, SILENCE)
    messages = ordered.consume()
    with pytest.raises(InvalidState, match="'o_1' is in use"):
        ordered.consume()
    for call in (ordered.fetch(1), ordered.next(), ordered.delete()):
        with pytest.raises(InvalidState):
            stage.run(call)
    stage.run(messages.stop())
    ordered.consume()


@pytest.mark.rule("ORDERED-23")
def test_one_fetch_at_a_time():
    stage, ordered = handle(SILENCE)
    found = []
    wait = stage.wait

    async def meddle(waitable):
        stage.wait = wait
        with pytest.raises(InvalidState) as caught:
            ordered.consume()
        found.append(caught.value)
        await wait(waitable)

    stage.wait = meddle
    stage.answers = [TIMEOUT]
    assert len(stage.run(ordered.fetch(1))) == 0
    assert len(found) == 1


def test_before_there_is_a_connection():
    stage, ordered = handle([delivery(1, 1, 1)])
    stage.wire.lost()
    stage.forget_transport()
    messages = ordered.consume(max_messages=5)
    stage.wire.greet(jetstream=True, api_lvl=5).data(b"PONG\r\n")
    assert stage.run(messages.next()).data == b"1"


@pytest.mark.rule("CONSUME-2")
@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 1, "max_bytes": 1},
        {"expires": 0.5},
        {"expires": "1"},
        {"heartbeat": 40.0},
        {"stop_after": 0},
    ],
)
def test_refused_consumes(options):
    stage, ordered = handle()
    with pytest.raises(LocalError):
        ordered.consume(**options)
    assert stage.quiet()
