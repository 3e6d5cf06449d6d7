from __future__ import annotations

import gc

import pytest

from natsproto.errors import ConnectionClosed, NoResponders, TooManyReplies
from natsproto.replies import ReplyReader
from tests.jetstream.support import NOBODY, SILENCE, Stage


async def every(replies):
    return [reply.data async for reply in replies]


def open_requests(stage):
    return list(stage.connection.requests.inbox.open)


MANY = [  # the answers, the options, the data of the replies, when it ends
    ([b"1", b"2"], {}, [b"1", b"2"], 1.0),
    ([b"1", b"2", b"3"], {"max_msgs": 2}, [b"1", b"2"], 0.0),
    ([b"1", b"", b"2"], {"sentinel": lambda msg: not msg.data}, [b"1"], 0.0),
    ([b"1"], {"stall": 0.25}, [b"1"], 0.25),
    ([b"1"], {"stall": 0.25, "timeout": None}, [b"1"], 0.25),
    ([b"1"], {"max_msgs": 1, "timeout": None}, [b"1"], 0.0),
    (SILENCE, {}, [], 1.0),
    ([b"%d" % i for i in range(200)], {}, [b"%d" % i for i in range(200)], 1.0),
]


@pytest.mark.rule("D-REQ-13", "REQ-6", "REQ-8")
@pytest.mark.parametrize(("answers", "options", "expected", "end"), MANY)
def test_the_iteration_ends_by_its_limits(answers, options, expected, end):
    stage = Stage(answers)
    replies = stage.client.iter_request_many("svc", **{"timeout": 1.0, **options})
    assert stage.asked == []  # until the iteration starts
    assert stage.run(every(replies)) == expected
    assert (stage.now(), open_requests(stage)) == (end, [])
    assert stage.run(every(replies)) == []


@pytest.mark.rule("D-REQ-13")
def test_a_reply_that_was_taken_makes_room():
    stage = Stage([b"x" * 300])
    stage.client._connection.options.max_msgs = 1
    replies = stage.client.iter_request_many("svc", max_bytes=400)
    for _ in range(3):
        assert stage.run(replies.__anext__()).data == b"x" * 300
        [request] = stage.connection.requests.inbox.open.values()
        reply = stage.connection.requests.inbox.prefix + request.token
        stage.wire.data(b"MSG %s 1 300\r\n%s\r\n" % (reply, b"x" * 300))
    stage.wire.data(b"MSG %s 1 300\r\n%s\r\n" % (reply, b"x" * 300))
    assert stage.run(replies.__anext__()).data == b"x" * 300
    with pytest.raises(TooManyReplies):
        stage.run(replies.__anext__())


@pytest.mark.rule("D-REQ-13", "REQ-7")
def test_errors_are_raised_after_the_replies():
    stage = Stage(NOBODY, [b"1"])
    replies = stage.client.iter_request_many("svc")
    with pytest.raises(NoResponders):
        stage.run(replies.__anext__())
    replies = stage.client.iter_request_many("svc")
    assert stage.run(replies.__anext__()).data == b"1"
    stage.connection.close(0.0)
    with pytest.raises(ConnectionClosed):
        stage.run(replies.__anext__())
    assert stage.run(every(replies)) == []


@pytest.mark.rule("D-REQ-13")
@pytest.mark.parametrize("how", ["aclose", "drop", "never started"])
def test_nothing_is_left_by_a_loop_that_is_left(how):
    stage = Stage([b"1", b"2"], [b"3"])
    replies = stage.client.iter_request_many("svc")
    if how != "never started":
        assert stage.run(replies.__anext__()).data == b"1"
        assert len(open_requests(stage)) == 1
    if how == "aclose":
        stage.run(replies.aclose())
        assert stage.run(every(replies)) == []
    del replies
    gc.collect()
    assert stage.connection.requests.inbox is None or open_requests(stage) == []


@pytest.mark.rule("D-REQ-13")
def test_a_canceled_wait_leaves_nothing():
    stage = Stage(SILENCE)
    replies = stage.client.iter_request_many("svc")

    async def cancel(waitable):
        raise KeyboardInterrupt

    stage.wait = cancel
    with pytest.raises(KeyboardInterrupt):
        stage.run(replies.__anext__())
    assert open_requests(stage) == []


@pytest.mark.rule("D-GET-14")
def test_with_patience_only_waits_count():
    stage = Stage([b"1"])
    gather = stage.connection.start_gather("svc", deadline=None)
    reader = ReplyReader(stage.client.session, gather, 5.0)
    assert stage.run(reader.next()).data == b"1"
    stage.wire.timer(at=100.0)
    assert (gather.done, gather.deadline) == (False, None)
    assert stage.run(reader.next()) is None
    assert (stage.now(), open_requests(stage)) == (105.0, [])


@pytest.mark.rule("D-GET-14")
def test_a_wake_up_that_is_too_early_does_not_extend_the_patience(monkeypatch):
    stage = Stage(SILENCE)
    gather = stage.connection.start_gather("svc", deadline=None)
    reader = ReplyReader(stage.client.session, gather, 5.0)
    port = stage.client.session.port
    wait = port.wait
    early = [4.0, 3.0]

    async def wait_less(waitable):
        if early:
            stage.wire.timer(at=early.pop())
        else:
            await wait(waitable)

    monkeypatch.setattr(port, "wait", wait_less)
    assert stage.run(reader.next()) is None
    assert stage.now() == 5.0


def test_blocking_code():
    stage = Stage([b"1", b"2"], [b"3", b"4"])
    replies = stage.blocking.iter_request_many("svc", timeout=1.0)
    assert [reply.data for reply in replies] == [b"1", b"2"]
    replies = stage.blocking.iter_request_many("svc")
    assert next(replies).data == b"3"
    replies.close()
    assert (list(replies), open_requests(stage)) == ([], [])
