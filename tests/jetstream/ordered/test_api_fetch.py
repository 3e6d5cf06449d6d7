from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerUnavailable,
    MessagesMissed,
    PullRefused,
    StreamNotFound,
    UnknownStatus,
)
from natsproto.errors import (
    ConnectionLost,
    LocalError,
    TimeoutExpired,
)
from tests.jetstream.ordered_handles import (
    ABSENT,
    DELETED,
    EMPTY,
    LEADER,
    NO_STREAM,
    TIMEOUT,
    created,
    delivery,
    handle,
    sent,
    seqs,
)
from tests.jetstream.support import NOBODY, SILENCE, Delivery, Lost, Status


@pytest.mark.rule("ORDERED-22")
def test_fetch_after_fetch():
    stage, ordered = handle(
        [delivery(1, 4, 1), delivery(1, 6, 2)],
        [delivery(1, 7, 3), EMPTY],
        [delivery(1, 9, 4)],
        TIMEOUT,
    )
    batch = stage.run(ordered.fetch(2))
    assert (seqs(batch), batch.error, batch[0].settled) == ([4, 6], None, True)
    assert seqs(stage.run(ordered.fetch(5, no_wait=True))) == [7]
    assert stage.run(ordered.next(expires=2.0)).data == b"9"
    assert stage.run(ordered.next(expires=2.0)) is None
    assert sent(stage) == ["pull 1 2", "pull 1 5", "pull 1 1", "pull 1 1"]


@pytest.mark.rule("ORDERED-22")
@pytest.mark.parametrize("answer", [DELETED, NOBODY])
def test_the_consumer_is_gone(answer):
    stage, ordered = handle(
        [delivery(1, 4, 1)], answer, SILENCE, created(4), [delivery(2, 5, 1), TIMEOUT]
    )
    assert seqs(stage.run(ordered.fetch(1))) == [4]
    assert seqs(stage.run(ordered.fetch(3, heartbeat=1.0))) == [5]
    assert sent(stage) == ["pull 1 1", "pull 1 3", "delete 1", "create 2 from 5", "pull 2 3"]


@pytest.mark.rule("ORDERED-22")
def test_it_is_gone_twice():
    stage, ordered = handle(DELETED, SILENCE, created(), NOBODY, SILENCE, created(), TIMEOUT)
    with pytest.raises(ConsumerUnavailable):
        stage.run(ordered.fetch(3))
    assert len(stage.run(ordered.fetch(3))) == 0
    assert sent(stage)[-2:] == ["create 3 from 1", "pull 3 3"]


@pytest.mark.rule("ORDERED-22")
def test_it_is_gone_when_the_time_is_nearly_over():
    stage, ordered = handle([], SILENCE)
    fetching = ordered.fetch(3, expires=30.0)
    stage.answers[0] = []
    wait = stage.wait

    async def later(waitable):
        stage.wait = wait
        stage.serve()
        stage.wire.now += 29.96
        reply = stage._pubs[-1].reply.encode()
        block = DELETED.block
        head = (reply, len(block), len(block), block)
        stage.wire.data(b"HMSG %s 2 %d %d\r\n%s\r\n" % head)

    stage.wait = later
    with pytest.raises(ConsumerDeleted):
        stage.run(fetching)
    assert sent(stage) == ["pull 1 3", "delete 1"]


@pytest.mark.rule("ORDERED-22")
def test_the_stream_is_gone():
    stage, ordered = handle(DELETED, SILENCE, NO_STREAM)
    with pytest.raises(StreamNotFound):
        stage.run(ordered.fetch(3))


GAPS = [  # deliveries of the first consumer, results of the fetch and of the next one
    ([delivery(1, 1, 1), delivery(1, 3, 3), TIMEOUT], [1], [2]),
    ([delivery(1, 1, 1), DELETED], [1], [2]),
    ([delivery(1, 1, 1), Status("408 x", Nats_Pending_Messages=1)], [1], [2]),
    ([delivery(1, 1, 1), Status("408 x", Nats_Pending_Messages=2)], [1], None),
    ([Delivery("s.a", "reply", b"9"), delivery(1, 1, 1), TIMEOUT], [1], None),
]


@pytest.mark.rule("ORDERED-22")
@pytest.mark.parametrize(("answers", "first", "second"), GAPS)
def test_gaps(answers, first, second):
    stage, ordered = handle(answers, SILENCE, created(1), [delivery(2, 2, 1), TIMEOUT])
    batch = stage.run(ordered.fetch(3))
    assert seqs(batch) == first
    assert (batch.error is not None) == (DELETED in answers)
    if second is None:
        assert ordered.name == "o_1"
        return
    assert seqs(stage.run(ordered.fetch(3))) == second
    assert sent(stage) == ["pull 1 3", "delete 1", "create 2 from 2", "pull 2 3"]


@pytest.mark.rule("D-ORDERED-27")
@pytest.mark.parametrize("end", [LEADER, Status("408 Request Timeout"), Status("409 Something")])
@pytest.mark.parametrize("first", [[], [delivery(1, 1, 1)]])
def test_an_end_that_does_not_count(end, first):
    """The second message may have been sent and lost, so another consumer starts with it."""
    start = len(first)
    stage, ordered = handle(
        [*first, end], SILENCE, created(start), [delivery(2, start + 1, 1), TIMEOUT]
    )
    if "Something" in end.block.decode() and not first:
        with pytest.raises(UnknownStatus):
            stage.run(ordered.fetch(3))
    else:
        assert len(stage.run(ordered.fetch(3))) == start
    assert seqs(stage.run(ordered.fetch(3))) == [start + 1]
    create = "create 2 from %d" % (start + 1)
    assert sent(stage) == ["pull 1 3", "delete 1", create, "pull 2 3"]


LOOKS = [  # messages before 404, time of the next fetch, response to INFO, later requests
    ("too early", [1], 0.9, None, ["pull 1 1"]),
    ("nothing is missing", [1], 1.0, created(1, 1), ["info 1", "pull 1 1"]),
    ("nothing came, nothing is missing", [], 1.0, created(0, 0), ["info 1", "pull 1 1"]),
    (
        "one is missing",
        [1],
        1.0,
        created(2, 2),
        ["info 1", "delete 1", "create 2 from 2", "pull 2 1"],
    ),
    (
        "the only one is missing",
        [],
        9.0,
        created(1, 1),
        ["info 1", "delete 1", "create 2 from 1", "pull 2 1"],
    ),
    (
        "the consumer is gone",
        [1],
        1.0,
        ABSENT,
        ["info 1", "delete 1", "create 2 from 2", "pull 2 1"],
    ),
    ("nobody answers", [1], 1.0, NOBODY, ["info 1", "delete 1", "create 2 from 2", "pull 2 1"]),
]


@pytest.mark.rule("D-ORDERED-27")
@pytest.mark.parametrize(("name", "before", "after", "info", "expected"), LOOKS)
def test_after_no_messages(name, before, after, info, expected):
    """404 has no count: a second later the consumer is asked how many messages it has delivered."""
    stage, ordered = handle([*[delivery(1, seq, seq) for seq in before], EMPTY])
    assert seqs(stage.run(ordered.fetch(3, no_wait=True))) == before
    assert sent(stage) == ["pull 1 3"]
    stage.wire.now += after
    stage.answers = [] if info is None else [info]
    if "delete 1" in expected:
        stage.answers += [SILENCE, created(len(before))]
    stage.answers += [TIMEOUT]
    assert stage.run(ordered.next()) is None
    assert sent(stage) == expected


@pytest.mark.rule("D-ORDERED-27")
def test_the_doubt_is_as_old_as_the_first_empty_fetch():
    stage, ordered = handle(EMPTY, EMPTY, created(), EMPTY, EMPTY)
    for _ in range(4):
        assert len(stage.run(ordered.fetch(3, no_wait=True))) == 0
        stage.wire.now += 0.6
    assert sent(stage) == ["pull 1 3", "pull 1 3", "info 1", "pull 1 3", "pull 1 3"]


# Time


@pytest.mark.rule("D-ORDERED-28")
def test_the_shortest_fetch():
    """Time passes between the call and the pull, whose time servers still accept."""
    stage, ordered = handle([delivery(1, 1, 1)], TIMEOUT)
    clock = iter(range(1000))
    stage.now = lambda: stage.wire.now + next(clock) / 10_000
    assert seqs(stage.run(ordered.fetch(1, expires=0.001))) == [1]
    assert stage.run(ordered.next(expires=0.001)) is None
    assert [json.loads(pub.data)["expires"] for pub in stage.pubs] == [1_000_000] * 2


@pytest.mark.rule("D-ORDERED-28")
@pytest.mark.parametrize("heartbeat", [None, 0.5])
def test_a_pull_at_once_has_all_its_time(heartbeat):
    stage, ordered = handle(TIMEOUT)
    clock = iter(range(1000))
    stage.now = lambda: stage.wire.now + next(clock) / 10_000
    assert stage.run(ordered.next(expires=1.0, heartbeat=heartbeat)) is None
    (pub,) = stage.pubs
    body = json.loads(pub.data)
    assert body["expires"] == 10**9
    assert body.get("idle_heartbeat") == (heartbeat and 500_000_000)


TIMES = [  # how the fetch is called, the answers; when it ends
    ("the creation is not answered", {"expires": 1.0}, [DELETED, SILENCE, SILENCE], 2.0),
    ("a long fetch", {"expires": 30.0}, [DELETED, SILENCE, SILENCE], 5.0),
    ("a fetch that does not wait", {"no_wait": True}, [DELETED, SILENCE, SILENCE], 5.0),
    (
        "the second pull is not answered",
        {"expires": 1.0},
        [DELETED, SILENCE, created(), SILENCE],
        2.0,
    ),
    ("nor that of no_wait", {"no_wait": True}, [DELETED, SILENCE, created(), SILENCE], 6.0),
]


@pytest.mark.rule("D-ORDERED-28")
@pytest.mark.parametrize(("name", "options", "answers", "end"), TIMES)
def test_it_ends_in_time(name, options, answers, end):
    stage, ordered = handle(*answers, SILENCE)
    begin = stage.now()
    with pytest.raises(TimeoutExpired):
        stage.run(ordered.fetch(1, **options))
    assert stage.now() - begin == pytest.approx(end)


@pytest.mark.rule("D-ORDERED-28")
def test_a_creation_that_takes_all_the_time():
    """The pull after it gets the shortest possible time, and the rest of the margin."""
    stage, ordered = handle(DELETED, SILENCE)
    wait = stage.wait

    async def later(waitable):
        if len(stage.answers) == 1:
            stage.wait = wait
            stage.wire.now += 1.9
            stage.answers = [SILENCE, created(), SILENCE, SILENCE]
        await wait(waitable)

    stage.wait = later
    begin = stage.now()
    with pytest.raises(TimeoutExpired):
        stage.run(ordered.fetch(1, expires=1.0))
    assert stage.now() - begin == pytest.approx(2.0)
    assert json.loads(stage.pubs[3].data)["expires"] == 1_000_000


@pytest.mark.rule("ORDERED-22")
def test_a_gap_at_once():
    stage, ordered = handle(
        [delivery(1, 2, 2), TIMEOUT], SILENCE, created(), [delivery(2, 1, 1), TIMEOUT]
    )
    assert seqs(stage.run(ordered.fetch(3))) == [1]
    assert sent(stage) == ["pull 1 3", "delete 1", "create 2 from 1", "pull 2 3"]
    stage, ordered = handle(
        [delivery(1, 2, 2), TIMEOUT], SILENCE, created(), [delivery(2, 9, 9), TIMEOUT], SILENCE
    )
    with pytest.raises(MessagesMissed, match="'o_2'"):
        stage.run(ordered.fetch(3))


@pytest.mark.rule("ORDERED-22")
def test_a_lost_connection():
    stage, ordered = handle([delivery(1, 1, 1)], Lost(), SILENCE, created(1), [delivery(2, 2, 1)])
    assert seqs(stage.run(ordered.fetch(1))) == [1]
    with pytest.raises(ConnectionLost):
        stage.run(ordered.fetch(1))
    assert seqs(stage.run(ordered.fetch(1))) == [2]


def test_a_fetch_that_the_server_rejects():
    stage, ordered = handle(Status("409 Exceeded MaxRequestBatch of 5"), SILENCE)
    with pytest.raises(PullRefused):
        stage.run(ordered.fetch(10))


@pytest.mark.rule("FETCH-2")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_messages": 1, "max_bytes": 1},
        {"max_messages": 0},
        {"max_bytes": 0},
        {"max_messages": 1, "expires": 0},
        {"max_messages": 1, "no_wait": True, "heartbeat": 1.0},
    ],
)
def test_refused_fetches(options):
    stage, ordered = handle()
    with pytest.raises(LocalError):
        stage.run(ordered.fetch(**options))
    assert stage.quiet()


def test_by_bytes():
    stage, ordered = handle([delivery(1, 1, 1), TIMEOUT])
    assert seqs(stage.run(ordered.fetch(max_bytes=1000))) == [1]
    assert sent(stage) == ["pull 1 1000000"]


BEATS = [  # how the fetch is called, its heartbeat
    ({"expires": 1.9}, None),
    ({"expires": 2.0}, 0.5),
    ({"expires": 30.0}, 5.0),
    ({"expires": 300.0}, 5.0),
    ({"expires": 30.0, "heartbeat": 1.0}, 1.0),
    ({"expires": 30.0, "heartbeat": 0}, None),
    ({"no_wait": True}, None),
]


@pytest.mark.rule("D-ORDERED-32")
@pytest.mark.parametrize(("options", "heartbeat"), BEATS)
def test_heartbeats(options, heartbeat):
    stage, ordered = handle(TIMEOUT)
    stage.run(ordered.fetch(1, **options))
    (pull,) = stage.pubs
    assert json.loads(pull.data).get("idle_heartbeat") == (heartbeat and heartbeat * 1e9)


@pytest.mark.rule("D-ORDERED-32")
def test_silence():
    """The consumer is gone, and an older server does not report it."""
    stage, ordered = handle(SILENCE, SILENCE, created(), [delivery(2, 1, 1)])
    begin = stage.now()
    assert seqs(stage.run(ordered.fetch(1))) == [1]
    assert stage.now() - begin == 10.0
    assert sent(stage) == ["pull 1 1", "delete 1", "create 2 from 1", "pull 2 1"]
    stage, ordered = handle(SILENCE, SILENCE, NO_STREAM)
    with pytest.raises(StreamNotFound):
        stage.run(ordered.fetch(1, expires=4.0))
    assert stage.now() - begin == 2.0
