"""Ordered consumers leave nothing on the server, whenever they end."""

from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import JetStreamError, StreamNotFound
from jetstream.events import StreamRecreated
from jetstream.machine.cleanup import Cleanup
from jetstream.ordered.api import open_ordered
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidState,
    RemoteError,
    TimeoutExpired,
)
from tests.jetstream.ordered_handles import (
    ABSENT,
    DELETED,
    NO_STREAM,
    TIMEOUT,
    config,
    created,
    delivery,
    handle,
    sent,
    seqs,
)
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage


def left_behind(stage, answers):
    """Return the requests sent until all work is done; `answers` are for later requests."""
    stage.answers = list(answers)
    while any(isinstance(each, Cleanup) for each in stage.connection.subscriptions.receivers()):
        if not stage.serve():
            stage.wire.ring()
    return sent(stage)


def there(serial):
    return {"stream_name": "S", "name": "o_%d" % serial, "config": {}}


DONE = {"success": True}


async def cancel(waitable):
    raise Cancelled


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("how", ["cancelled", "no answer", "lost"])
def test_creations_without_a_known_outcome(how, answered):
    """The consumer is looked up, even if the response had arrived when the caller was canceled."""
    stage = Stage(Lost() if how == "lost" else created() if answered else SILENCE)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    if how == "cancelled":

        async def wait(waitable):
            stage.serve()
            raise Cancelled

        stage.wait = wait
    elif how == "no answer":
        stage.answers = [SILENCE]
    with pytest.raises((Cancelled, TimeoutExpired, ConnectionLost)):
        stage.run(open_ordered(api, "S", "o", config(), None))
    assert left_behind(stage, [ABSENT, there(1), DONE]) == ["create 1", *["info 1"] * 2, "delete 1"]


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize("answer", [NO_STREAM, NOBODY])
def test_creations_that_failed(answer):
    stage = Stage(answer)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(JetStreamError):
        stage.run(open_ordered(api, "S", "o", config(), None))
    assert left_behind(stage, []) == ["create 1"]


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize("how", ["stop", "drain", "iteration"])
def test_the_end_during_a_reset(how):
    """The deletion may overtake the creation, so the consumer is looked up afterwards."""
    stage, ordered = handle([delivery(1, 1, 1), DELETED], *[SILENCE] * 4)
    messages = ordered.consume(max_messages=5, stop_after=1 if how == "iteration" else None)
    if how == "iteration":
        stage.wait = cancel  # the machine has to do everything on its own
        stage.serve()
        assert stage.run(messages.next()).data == b"1"
        with pytest.raises(StopAsyncIteration):
            stage.run(messages.__anext__())
    else:
        stage.serve()
        stage.serve()
        stage.run(messages.stop() if how == "stop" else messages.drain())
        while messages.pending:
            stage.run(messages.next())
    if how == "drain":
        with pytest.raises(InvalidState):
            stage.run(messages.next())
    seen = sent(stage)
    assert seen[1:3] == ["delete 1", "create 2 from 2"]
    assert sorted(seen[3:]) == ["delete 2", "info 2"]
    assert left_behind(stage, [there(2), DONE]) == ["info 2", "delete 2"]


@pytest.mark.rule("D-ORDERED-29")
def test_the_end_without_a_connection():
    stage, ordered = handle([delivery(1, 1, 1)])
    messages = ordered.consume(max_messages=5)
    assert stage.run(messages.next()).data == b"1"
    stage.wire.lost()
    stage.forget_transport()
    stage.run(messages.stop())
    stage.wire.greet(jetstream=True, api_lvl=5).data(b"PONG\r\n")
    assert left_behind(stage, [there(1), DONE]) == ["pull 1 5", "info 1", "delete 1"]


@pytest.mark.rule("D-ORDERED-29")
def test_a_fetch_that_fails_without_a_connection():
    stage, ordered = handle()

    async def wait(waitable):
        stage.wire.lost()
        stage.forget_transport()
        raise Cancelled

    stage.wait = wait
    with pytest.raises(Cancelled):
        stage.run(ordered.fetch(1))
    stage.wire.greet(jetstream=True, api_lvl=5).data(b"PONG\r\n")
    assert left_behind(stage, [there(1), DONE]) == ["info 1", "delete 1"]


# A stream that was deleted and created again

T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]


def stream(second):
    return {"config": {"name": "S"}, "created": T[second]}


STREAMS = [  # the response to STREAM.INFO; later requests, the result of the fetch
    ("the same", [stream(1)], ["pull 2 3"], [5]),
    ("another one", [stream(4), created(), stream(4)], ["create 3", "stream", "pull 3 3"], [1]),
]


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize(("what", "answers", "pulls", "got"), STREAMS)
def test_the_stream_of_the_next_consumer(what, answers, pulls, got):
    stage, ordered = handle([delivery(1, 4, 1)])
    ordered.cursor._oldest = Timestamp.parse(T[2])
    assert seqs(stage.run(ordered.fetch(1))) == [4]
    serial = 3 if what == "another one" else 2
    last = [delivery(serial, got[0], 1), TIMEOUT]
    info = [SILENCE] if serial == 3 else []  # the consumer of the other stream is looked for
    stage.answers = [DELETED, SILENCE, created(4), answers[0], *info, *answers[1:], last]
    assert seqs(stage.run(ordered.fetch(3))) == got
    seen = [each for each in sent(stage) if each != "info 2"]
    assert seen == ["pull 1 1", "pull 1 3", "delete 1", "create 2 from 5", "stream", *pulls]
    # A fetch has no events: the handle says that these are messages of another stream.
    times = (Timestamp.parse(T[2]), Timestamp.parse(T[4]))
    assert ordered.recreated == (StreamRecreated("S", *times) if serial == 3 else None)


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.parametrize("answer", [NOBODY, SILENCE, {"error": {"code": 400, "err_code": 10000}}])
def test_users_without_permission_for_stream_info(answer):
    """The first fetch fails, and the second one proceeds without the check."""
    stage, ordered = handle(DELETED, SILENCE, created(), answer, SILENCE)
    ordered.cursor._oldest = Timestamp.parse(T[2])
    with pytest.raises(RemoteError):
        stage.run(ordered.fetch(1))
    assert left_behind(stage, [ABSENT] * 3)[:4] == [
        "pull 1 1",
        "delete 1",
        "create 2 from 1",
        "stream",
    ]
    stage.answers = [created(), answer, [delivery(3, 1, 1)]]
    assert seqs(stage.run(ordered.fetch(1))) == [1]


@pytest.mark.rule("D-ORDERED-30")
def test_the_stream_is_deleted_in_the_meantime():
    stage, ordered = handle(DELETED, SILENCE, created(), NO_STREAM, SILENCE)
    ordered.cursor._oldest = Timestamp.parse(T[2])
    with pytest.raises(StreamNotFound):
        stage.run(ordered.fetch(3))


@pytest.mark.rule("D-ORDERED-28")
@pytest.mark.rule("D-ORDERED-30")
def test_the_check_is_part_of_the_time():
    stage, ordered = handle(DELETED, SILENCE, created(), SILENCE, SILENCE, SILENCE)
    ordered.cursor._oldest = Timestamp.parse(T[2])
    ordered.cursor._unknown = 1  # how often it has failed before
    begin = stage.now()
    with pytest.raises(TimeoutExpired):
        stage.run(ordered.fetch(3, expires=0.5))
    assert stage.now() - begin == pytest.approx(1.5)


@pytest.mark.rule("D-ORDERED-30")
def test_the_client_is_closed_in_the_meantime():
    stage, ordered = handle(DELETED, SILENCE, created())
    ordered.cursor._oldest = Timestamp.parse(T[2])
    wait = stage.wait

    async def close(waitable):
        if stage.answers:
            await wait(waitable)
        else:
            stage.wire.tell("close")

    stage.wait = close
    with pytest.raises(ConnectionClosed):
        stage.run(ordered.fetch(3))
