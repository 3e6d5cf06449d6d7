from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import (
    InvalidResponse,
    JetStreamError,
    NoStreamResponse,
    PublishInDoubt,
    PublishTimeout,
    TtlDisabled,
    WrongLastSequence,
)
from jetstream.publish.request import Publisher, in_cluster
from jetstream.schema.info import PubAck
from natsproto.errors import (
    ConnectionClosed,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.wire.headers import Headers
from tests.connection.support import err
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage

ACK = {"stream": "S", "seq": 7}


def send(stage, timeout=None, retries=2, headers=None, api_timeout=5.0):
    publisher = Publisher(ApiClient(stage.client.session, "", "$JS.API", api_timeout))
    options = {} if headers is None else {"headers": headers}
    return stage.run(publisher.publish("s.x", b"data", timeout=timeout, retries=retries, **options))


@pytest.mark.rule("PUB-1")
def test_a_publish_is_a_request():
    stage = Stage(ACK)
    assert send(stage, headers=Headers({"A": "b"})) == PubAck(stream="S", seq=7)
    [pub] = stage.pubs
    assert (pub.subject, pub.data, pub.headers) == ("s.x", b"data", Headers({"A": "b"}))


@pytest.mark.rule("PUB-1", "PUB-2")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, InvalidResponse),
        (b"hello", InvalidResponse),
        ({"error": {"code": 400, "err_code": 10166, "description": "x"}}, TtlDisabled),
        (
            {"error": {"code": 400, "err_code": 10071, "description": "x: 1"}, "seq": 0},
            WrongLastSequence,
        ),
    ],
)
def test_refusals_are_not_retried(answer, error):
    stage = Stage(answer)
    with pytest.raises(error):
        send(stage)
    assert (len(stage.asked), stage.now()) == (1, 0.0)


SINGLE = {"cluster": ""}
CLUSTER = {"cluster": "C"}
TRIES = [
    # rule,  INFO, timeout, retries, API timeout; answers; attempts, error or None, time
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY, ACK], 2, None, 0.25),
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY] * 2 + [ACK], 3, None, 0.5),
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY] * 3, 3, NoStreamResponse, 0.5),
    ("PUB-3", SINGLE, None, 0, 5.0, [NOBODY], 1, NoStreamResponse, 0.0),
    ("PUB-3", SINGLE, None, 5, 5.0, [NOBODY] * 6, 6, NoStreamResponse, 1.25),
    ("PUB-3", SINGLE, 1.0, -1, 5.0, [NOBODY] * 4, 4, NoStreamResponse, 0.75),
    ("PUB-3", SINGLE, None, -1, 5.0, [NOBODY] * 20, 20, NoStreamResponse, 4.75),
    ("PUB-5", SINGLE, 0.5, 2, 5.0, [NOBODY] * 2, 2, NoStreamResponse, 0.25),
    ("PUB-5", SINGLE, 0.5, 2, 5.0, [NOBODY, SILENCE], 2, PublishTimeout, 0.5),
    ("PUB-5", SINGLE, None, 2, 5.0, [SILENCE], 1, PublishTimeout, 5.0),
    ("PUB-5", SINGLE, 2.0, 2, 5.0, [SILENCE], 1, PublishTimeout, 2.0),
    ("PUB-5", SINGLE, None, 2, 5.0, [NOBODY, SILENCE], 2, PublishTimeout, 5.0),
    ("PUB-4", CLUSTER, None, 2, 5.0, [NOBODY] * 24 + [ACK], 25, None, 6.0),
    ("PUB-4", CLUSTER, None, 2, 5.0, [NOBODY] * 40, 40, NoStreamResponse, 9.75),
    ("PUB-4", CLUSTER, None, -1, 5.0, [NOBODY] * 40, 40, NoStreamResponse, 9.75),
    ("PUB-4", CLUSTER, None, 2, 12.0, [NOBODY] * 41, 41, NoStreamResponse, 10.0),
    ("PUB-4", CLUSTER, None, 0, 5.0, [NOBODY], 1, NoStreamResponse, 0.0),
    ("PUB-4", CLUSTER, 20.0, 2, 5.0, [NOBODY] * 41, 41, NoStreamResponse, 10.0),
    ("PUB-5", CLUSTER, 1.0, 2, 5.0, [NOBODY] * 4, 4, NoStreamResponse, 0.75),
    ("PUB-5", CLUSTER, None, 2, 5.0, [SILENCE], 1, PublishTimeout, 5.0),
    ("PUB-5", CLUSTER, None, 2, 5.0, [NOBODY] * 2 + [SILENCE], 3, PublishTimeout, 5.5),
]


@pytest.mark.parametrize(
    ("info", "timeout", "retries", "each", "answers", "tries", "error", "at"),
    [pytest.param(*row[1:], marks=pytest.mark.rule(row[0])) for row in TRIES],
)
def test_tries(info, timeout, retries, each, answers, tries, error, at):
    stage = Stage(*answers, **info)
    if error is None:
        assert send(stage, timeout, retries, api_timeout=each).seq == 7
    else:
        with pytest.raises(error):
            send(stage, timeout, retries, api_timeout=each)
    assert (len(stage.asked), stage.answers, stage.now()) == (tries, [], at)


@pytest.mark.rule("PUB-3")
@pytest.mark.parametrize("retries", [-2, 1.0, True, "2", None])
def test_retries_are_a_number(retries):
    stage = Stage()
    with pytest.raises(InvalidValue):
        send(stage, retries=retries)
    assert stage.quiet()


@pytest.mark.rule("PUB-5")
@pytest.mark.parametrize("timeout", [-1, "1", float("nan")])
def test_a_timeout_is_a_number(timeout):
    stage = Stage()
    with pytest.raises(InvalidValue):
        send(stage, timeout)
    assert stage.quiet()


@pytest.mark.rule("PUB-5", "D-PUB-21")
def test_a_lost_connection_leaves_the_publish_in_doubt():
    stage = Stage(Lost())
    text = "publish to 's.x' was not acknowledged: no answer in time: it may or may not be stored"
    with pytest.raises(TimeoutExpired, match=text) as caught:
        send(stage)
    assert isinstance(caught.value, PublishInDoubt)
    assert isinstance(caught.value, JetStreamError)


def during(stage, happens):
    """Let this happen while the publish waits for its answer."""

    async def step(waitable):
        stage.serve()
        happens()

    stage.wait = step


@pytest.mark.rule("D-PUB-21")
@pytest.mark.parametrize(
    ("happens", "text"),
    [
        (lambda stage: stage.connection.close(stage.now()), "the connection is closed"),
        (lambda stage: stage.connection.forked(stage.now()), "process was forked"),
        (
            lambda stage: stage.wire.data(
                err('Permissions Violation for Subscription to "_INBOX.%s.*"' % ("0" * 22))
            ),
            "Permissions Violation for Subscription",
        ),
    ],
)
def test_errors_that_leave_a_publish_in_doubt(happens, text):
    stage = Stage(SILENCE)
    during(stage, lambda: happens(stage))
    with pytest.raises(PublishInDoubt, match=text + ".*: it may or may not be stored") as caught:
        send(stage)
    assert not isinstance(caught.value, TimeoutExpired)
    assert caught.value.__cause__ is not None


@pytest.mark.rule("D-PUB-21")
def test_a_forbidden_publish_is_not_in_doubt():
    stage = Stage(SILENCE)
    during(stage, lambda: stage.wire.data(err('Permissions Violation for Publish to "s.x"')))
    with pytest.raises(PermissionDenied):
        send(stage)


@pytest.mark.rule("D-PUB-22")
def test_a_server_without_jetstream_is_named():
    stage = Stage(NOBODY, jetstream=False, server_name="edge")
    text = "no stream accepts subject 's.x': server 'edge' has JetStream disabled"
    with pytest.raises(NoStreamResponse, match=text) as caught:
        send(stage, retries=0)
    assert caught.value.subject == "s.x"
    stage = Stage(NOBODY)
    with pytest.raises(NoStreamResponse, match=r"'s\.x'$"):
        send(stage, retries=0)
    stage = Stage(NOBODY)
    during(stage, lambda: setattr(stage.connection.lifecycle, "info", None))
    with pytest.raises(NoStreamResponse, match=r"'s\.x'$"):
        send(stage, retries=0)


@pytest.mark.rule("PUB-3")
def test_closing_ends_the_pause():
    stage = Stage(NOBODY)
    wait = stage.wait

    async def close_in_the_pause(waitable):
        if stage.answers:
            await wait(waitable)
        elif stage._pubs:
            stage.connection.close(stage.now())

    stage.wait = close_in_the_pause
    with pytest.raises(ConnectionClosed):
        send(stage)


def test_servers_of_a_cluster_are_recognized():
    assert in_cluster(Stage(cluster="C").connection)
    stage = Stage()
    assert not in_cluster(stage.connection)
    stage.connection.lifecycle.info = None
    assert not in_cluster(stage.connection)
