from __future__ import annotations

import gc

import pytest

from jetstream.api.stored_batch import (
    StoredMsgs,
    batch_request,
    check_sequence,
    get_direct_batch,
    last_request,
)
from jetstream.errors import InvalidResponse, JetStreamError
from natsproto.errors import InvalidSubject, InvalidValue, NotSupported, TimeoutExpired
from tests.jetstream.api.test_stored import PAGES, TIME, answer, api, eob
from tests.jetstream.support import NOBODY, SILENCE, Stage, Status


async def every(messages):
    return [msg.seq async for msg in messages]


def open_requests(stage):
    return list(stage.connection.requests.inbox.open)


@pytest.mark.rule("GET-3", "GET-5", "GET-6", "D-GET-14")
@pytest.mark.parametrize(
    ("body", "most", "answers", "bodies", "sequences"),
    [pytest.param(*row[1:], id=row[0]) for row in PAGES],
)
def test_one_by_one_and_as_a_list(body, most, answers, bodies, sequences):
    stage = Stage(*answers)
    before = dict(body)
    messages = StoredMsgs(api(stage), "S", body, most)
    assert stage.asked == []  # until the iteration starts
    assert stage.run(every(messages)) == sequences
    assert stage.asked == [("$JS.API.DIRECT.GET.S", each) for each in bodies]
    assert (body, open_requests(stage)) == (before, [])
    assert stage.run(every(messages)) == []
    stage.answers = list(answers)
    found = stage.run(get_direct_batch(api(stage), "S", body, most))
    assert [msg.seq for msg in found] == sequences


@pytest.mark.rule("D-GET-14")
def test_an_iteration_requests_pages_of_a_thousand():
    first = [answer(seq) for seq in range(1, 1001)]
    stage = Stage([*first, eob(500, 1000)], [answer(1001), eob(0, 1001)])
    messages = StoredMsgs(api(stage), "S", {"seq": 1, "batch": 10**9}, 10**9)
    assert stage.run(every(messages)) == list(range(1, 1002))
    bodies = [body for _, body in stage.asked]
    assert bodies == [{"seq": 1, "batch": 1000}, {"seq": 1001, "batch": 1000}]


@pytest.mark.rule("D-GET-14")
def test_a_message_is_returned_before_the_others_arrive():
    stage = Stage([answer(1)])
    messages = StoredMsgs(api(stage), "S", {"seq": 1, "batch": 3}, 3)
    assert stage.run(messages.__anext__()).seq == 1
    stage.wire.timer(at=100.0)  # the time between two messages does not count
    with pytest.raises(TimeoutExpired, match="did not end in time"):
        stage.run(messages.__anext__())
    assert (stage.now(), open_requests(stage)) == (105.0, [])
    assert stage.run(every(messages)) == []


FAILURES = [  # the answers, the error
    (NOBODY, NotSupported, "does not allow direct get"),
    ([Status("408 Bad Request")], JetStreamError, "408 Bad Request"),
    ([Status("204 EOB", Nats_Num_Pending="x")], InvalidResponse, "Nats-Num-Pending"),
    (SILENCE, TimeoutExpired, "did not end in time"),
]


@pytest.mark.rule("GET-3", "GET-5", "D-GET-9")
@pytest.mark.parametrize(("answers", "error", "text"), FAILURES)
def test_failures(answers, error, text):
    stage = Stage(answers, answers)
    with pytest.raises(error, match=text):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 3}))
    messages = StoredMsgs(api(stage), "S", {"batch": 3}, 3)
    with pytest.raises(error, match=text):
        stage.run(every(messages))
    assert (stage.run(every(messages)), open_requests(stage)) == ([], [])


@pytest.mark.rule("D-GET-14")
@pytest.mark.parametrize("how", ["aclose", "drop"])
def test_nothing_is_left_by_a_loop_that_is_left(how):
    stage = Stage([answer(1), answer(2)])
    messages = StoredMsgs(api(stage), "S", {"batch": 3}, 3)
    assert stage.run(messages.__anext__()).seq == 1
    if how == "aclose":
        stage.run(messages.aclose())
        assert stage.run(every(messages)) == []
    del messages
    gc.collect()
    assert open_requests(stage) == []


@pytest.mark.rule("GET-7")
def test_an_old_server_has_no_batches():
    stage = Stage(version="2.10.0", api_lvl=0)
    with pytest.raises(NotSupported):
        StoredMsgs(api(stage), "S", {"batch": 2}, 2)
    with pytest.raises(NotSupported):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))


def test_requests():
    assert batch_request(3, 0, None, "", 0) == {"batch": 3, "seq": 1}
    body = {"batch": 3, "start_time": TIME, "next_by_subj": "a.>", "max_bytes": 9}
    assert batch_request(3, 0, TIME, "a.>", 9) == body
    assert last_request(["a", "b.*"], 0, None, 0) == {"multi_last": ["a", "b.*"]}
    assert last_request(["a"], 5, None, 2) == {"multi_last": ["a"], "up_to_seq": 5, "batch": 2}
    assert last_request(["a"], 0, TIME, 0) == {"multi_last": ["a"], "up_to_time": TIME}


WRONG = [  # what the call is, its arguments, the error
    (batch_request, (0, 0, None, "", 0), InvalidValue),
    (batch_request, (1, 1, TIME, "", 0), InvalidValue),
    (batch_request, (1, 0, None, "a..b", 0), InvalidSubject),
    (last_request, ("a", 0, None, 0), InvalidValue),
    (last_request, (["a"], 1, TIME, 0), InvalidValue),
    (check_sequence, ("seq", 0), InvalidValue),
]


@pytest.mark.parametrize(("call", "args", "error"), WRONG)
def test_wrong_requests(call, args, error):
    with pytest.raises(error):
        call(*args)
