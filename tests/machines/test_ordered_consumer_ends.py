"""Ordered consumers leave nothing behind, whenever they end."""

from __future__ import annotations

import pytest

from jetstream.call import Api
from jetstream.cleanup import Cleanup
from jetstream.errors import JetStreamError
from jetstream.ordered_consumer import open_ordered
from natsproto.errors import ConnectionLost, InvalidState, TimeoutExpired

from .api import Cancelled
from .ordered_handles import ABSENT, DELETED, NO_STREAM, config, created, delivery, handle, sent
from .support import NOBODY, SILENCE, Lost, Stage


def left_behind(stage, answers):
    """What was sent when nothing is done any more; `answers` to what is sent from now on."""
    stage.answers = list(answers)
    while any(isinstance(each, Cleanup) for each in stage.connection._receivers()):
        if not stage.serve():
            stage.wire.ring()
    return sent(stage)


def there(serial):
    return {"stream_name": "S", "name": "o_%d" % serial, "config": {}}


DONE = {"success": True}


async def cancel(waitable):
    raise Cancelled


@pytest.mark.rule("ORDERED-29")
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("how", ["cancelled", "no answer", "lost"])
def test_creations_of_which_nothing_is_known(how, answered):
    """The consumer is looked for: also if the answer was there when the caller was cancelled."""
    stage = Stage(Lost() if how == "lost" else created() if answered else SILENCE)
    api = Api(stage.client.session, "", "$JS.API", 5.0)
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


@pytest.mark.rule("ORDERED-29")
@pytest.mark.parametrize("answer", [NO_STREAM, NOBODY])
def test_creations_that_failed(answer):
    stage = Stage(answer)
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(JetStreamError):
        stage.run(open_ordered(api, "S", "o", config(), None))
    assert left_behind(stage, []) == ["create 1"]


@pytest.mark.rule("ORDERED-29")
@pytest.mark.parametrize("how", ["stop", "drain", "iteration"])
def test_the_end_during_a_reset(how):
    """The deletion may overtake the creation, so the consumer is looked for afterwards."""
    stage, ordered = handle([delivery(1, 1, 1), DELETED], *[SILENCE] * 4)
    messages = ordered.consume(max_messages=5, stop_after=1 if how == "iteration" else None)
    if how == "iteration":
        stage.wait = cancel  # the machine has to do everything by itself
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


@pytest.mark.rule("ORDERED-29")
def test_the_end_without_a_connection():
    stage, ordered = handle([delivery(1, 1, 1)])
    messages = ordered.consume(max_messages=5)
    assert stage.run(messages.next()).data == b"1"
    stage.wire.lost()
    stage.forget_transport()
    stage.run(messages.stop())
    stage.wire.greet(jetstream=True, api_lvl=5).data(b"PONG\r\n")
    assert left_behind(stage, [there(1), DONE]) == ["pull 1 5", "info 1", "delete 1"]


@pytest.mark.rule("ORDERED-29")
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
