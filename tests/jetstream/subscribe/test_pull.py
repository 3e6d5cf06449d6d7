"""The workflow of ADR-13: find or create a consumer, and fetch from it."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.config import ConsumerConfig
from jetstream.errors import (
    ApiError,
    ConfigMismatch,
    ConsumerDeleted,
    ConsumerExists,
    ConsumerNotFound,
    ConsumerUnavailable,
    JetStreamNotAvailable,
    JetStreamNotEnabled,
    PullOfPushConsumer,
    PullRefused,
    StreamNotFound,
    SubjectMismatch,
)
from jetstream.machine.cleanup import Cleanup
from jetstream.subscribe.pull import PullSubscribeOptions, PullSubscription, pull_subscribe
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidName,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.port import run_sync
from tests.jetstream import support
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import SILENCE, Delivery, Lost, Status

NONE = Status("404 No Messages")
OVER = Status("408 Request Timeout")
LEADER = Status("409 Leadership Change")


class At:
    """An answer that arrives after some seconds."""

    def __init__(self, seconds, *answers):
        self.seconds = seconds
        self.answers = list(answers)


class Stage(support.Stage):
    def _answer(self, reply):
        if self.answers and isinstance(self.answers[0], At):
            self.wire.now += self.answers[0].seconds
            self.answers[0] = self.answers[0].answers
        return super()._answer(reply)


def names(*streams):
    return {"streams": list(streams), "total": len(streams)}


def consumer(name="C", **config):
    config = {"ack_policy": "explicit", "durable_name": name, **config}
    return {"stream_name": "S", "name": name, "config": config}


def failure(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "..."}}


NOT_FOUND = failure(404, 10014)
EXISTS = failure(400, 10148)


def message(number):
    return Delivery("s.a", f"$JS.ACK.S.C.1.{number}.{number}.1794786953259130270.0", b"%d" % number)


def subscribe(stage, subject="s.a", stream="", durable="", bind=False, config=None, **fields):
    js = JetStream(stage.client)
    wanted = PullSubscribeOptions(subject, stream, durable, bind, config, fields)
    return run_sync(pull_subscribe(js._streams, js._api, wanted))


def begin(*answers, **config):
    """Return a subscription to an existing consumer."""
    stage = Stage(consumer(**config), *answers)
    sub = subscribe(stage, stream="S", durable="C")
    assert len(stage.asked) == 1
    return stage, sub


def payloads(batch):
    return [msg.data for msg in batch]


def pulls(stage):
    """Return the bodies of the pulls, in milliseconds."""
    asked = [body for subject, body in stage.asked if "MSG.NEXT" in subject]
    for body in asked:
        if "expires" in body:
            body["expires"] //= 1_000_000
    return asked


# The way to a consumer

REFUSED = [
    ({"subject": ""}, InvalidValue, "needs a subject or a stream"),
    ({"subject": "a b"}, InvalidSubject, "a b"),
    ({"stream": "a.b"}, InvalidName, "a.b"),
    ({"durable": 3}, InvalidValue, "durable 3 is not a str"),
    (
        {"durable": "a", "durable_name": "b"},
        InvalidValue,
        "conflicts with durable_name 'b'",
    ),
    ({"durable": "a.b"}, InvalidName, "a.b"),
    ({"bind": True}, InvalidValue, "bind needs the name"),
    ({"bind": "yes"}, InvalidValue, "bind 'yes' is neither True nor False"),
    ({"bind": True, "durable": "a.b"}, InvalidName, "a.b"),
    ({"filter_subject": "s.b"}, InvalidValue, "subject 's.a' conflicts with filter_subject 's.b'"),
    ({"deliver_subject": "d"}, InvalidValue, "deliver_subject='d' is for push"),
    ({"deliver_group": "g"}, InvalidValue, "deliver_group='g' is for push"),
    ({"flow_control": True}, InvalidValue, "flow_control=True is for push"),
    ({"idle_heartbeat": 5.0}, InvalidValue, "idle_heartbeat=5.0 is for push"),
    ({"rate_limit_bps": 5}, InvalidValue, "rate_limit_bps=5 is for push"),
    ({"config": ConsumerConfig(deliver_subject="d")}, InvalidValue, "is for push"),
    ({"config": {"flow_control": True}}, InvalidValue, "is for push"),
    ({"ack_wait": -1.0}, InvalidValue, "ack_wait"),
    ({"nonsense": 1}, InvalidValue, "nonsense"),
]


@pytest.mark.rule("PSUB-1")
@pytest.mark.rule("D-PSUB-3")
@pytest.mark.rule("PSUB-4")
@pytest.mark.parametrize(("options", "kind", "text"), REFUSED)
def test_invalid_options(options, kind, text):
    stage = Stage()
    with pytest.raises(kind, match=text):
        subscribe(stage, **options)
    assert stage.quiet()


# What is asked, what the server says; the endpoints asked for, and whether it deletes in the end.
WAYS = [
    ("by subject", {}, [names("S"), consumer()], "NAMES CREATE", True),
    ("durable", {"durable": "C"}, [names("S"), consumer()], "NAMES INFO", False),
    ("new", {"durable": "C"}, [names("S"), NOT_FOUND, consumer()], "NAMES INFO CREATE", False),
    ("stream", {"stream": "S", "durable": "C"}, [consumer()], "INFO", False),
    ("no subject", {"subject": "", "stream": "S", "durable": "C"}, [consumer()], "INFO", False),
    ("config", {"stream": "S", "config": {"durable_name": "C"}}, [consumer()], "INFO", False),
    ("name", {"stream": "S", "name": "C"}, [consumer()], "INFO", False),
    ("new name", {"stream": "S", "name": "C"}, [NOT_FOUND, consumer()], "INFO CREATE", True),
    ("bind", {"stream": "S", "name": "C", "bind": True}, [consumer()], "INFO", False),
    (
        "bind a durable",
        {"stream": "S", "durable_name": "C", "bind": True},
        [consumer()],
        "INFO",
        False,
    ),
    (
        "race",
        {"stream": "S", "durable": "C"},
        [NOT_FOUND, EXISTS, consumer()],
        "INFO CREATE INFO",
        False,
    ),
]


@pytest.mark.rule("PSUB-1")
@pytest.mark.rule("PSUB-2")
@pytest.mark.parametrize(("way", "options", "answers", "endpoints", "deletes"), WAYS)
def test_find_or_create_the_consumer(way, options, answers, endpoints, deletes):
    stage = Stage(*answers)
    sub = subscribe(stage, **options)
    assert [subject.split(".")[3] for subject, _ in stage.asked] == endpoints.split()
    name = "C" if endpoints != "NAMES CREATE" else "1" * 22
    assert (sub.stream, sub.name, sub._deletes, sub.closed) == ("S", name, deletes, False)
    assert repr(sub) == "<PullSubscription of consumer %s of S>" % name
    assert stage.quiet()


@pytest.mark.rule("PSUB-4")
@pytest.mark.parametrize(
    ("options", "filters"),
    [
        ({}, {"filter_subject": "s.a"}),
        ({"filter_subject": "s.a"}, {"filter_subject": "s.a"}),
        ({"filter_subjects": ["s.b", "s.c"]}, {"filter_subjects": ["s.b", "s.c"]}),
        ({"subject": "", "filter_subject": "s.b"}, {"filter_subject": "s.b"}),
        ({"subject": ""}, {}),
    ],
)
def test_the_filter_of_a_new_consumer(options, filters):
    stage = Stage(consumer(**filters))
    subscribe(stage, stream="S", ack_wait=5.0, **options)
    ((_, body),) = stage.asked
    config = body["config"]
    assert config.pop("name")
    assert config == {"ack_policy": "explicit", "ack_wait": 5_000_000_000, **filters}


FAILURES = [
    ("no stream", {}, [names()], StreamNotFound),
    ("not there", {"stream": "S", "durable": "C", "bind": True}, [NOT_FOUND], ConsumerNotFound),
    ("exists", {"stream": "S"}, [EXISTS], ConsumerExists),
    ("push", {"stream": "S", "durable": "C"}, [consumer(deliver_subject="d")], PullOfPushConsumer),
    ("filter", {"stream": "S", "durable": "C"}, [consumer(filter_subject="x")], SubjectMismatch),
    (
        "config",
        {"stream": "S", "durable": "C", "max_deliver": 5},
        [consumer(max_deliver=3)],
        ConfigMismatch,
    ),
    (
        "race",
        {"stream": "S", "durable": "C"},
        [NOT_FOUND, EXISTS, consumer(filter_subject="x")],
        SubjectMismatch,
    ),
]


@pytest.mark.rule("PSUB-2")
@pytest.mark.parametrize(("way", "options", "answers", "kind"), FAILURES)
def test_errors_of_the_workflow(way, options, answers, kind):
    stage = Stage(*answers)
    with pytest.raises(kind):
        subscribe(stage, **options)
    assert stage.answers == []


DISABLED = failure(503, 10039)


@pytest.mark.rule("PSUB-11")
@pytest.mark.parametrize("bind", [True, False])
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (DISABLED, JetStreamNotEnabled),
        (Status("503"), JetStreamNotAvailable),
        (SILENCE, TimeoutExpired),
        ("denied", PermissionDenied),
    ],
)
def test_a_lookup_that_fails(answer, kind, bind):
    """By ADR-15 a pull subscription with `bind` proceeds with the name alone."""
    stage = Stage(SILENCE if answer == "denied" else answer)
    wait = stage.wait

    async def denied(waitable):
        stage.serve()
        text = b'Permissions Violation for Publish to "$JS.API.CONSUMER.INFO.S.C"'
        stage.wire.data(b"-ERR '%s'\r\n" % text)
        stage.wait = wait

    if answer == "denied":
        stage.wait = denied
    options = {"subject": "", "stream": "S", "durable": "C", "bind": bind}
    if not bind:
        with pytest.raises(kind):
            subscribe(stage, **options)
        return
    sub = subscribe(stage, **options)
    assert (sub.stream, sub.name, sub.cached_info, sub._deletes) == ("S", "C", None, False)
    stage.answers.append([message(1)])
    assert payloads(run_sync(sub.fetch())) == [b"1"]
    stage.answers.append(consumer(max_deliver=7))
    assert run_sync(sub.info()).config.max_deliver == 7
    assert sub.cached_info is not None


def test_info():
    stage, sub = begin(consumer(max_deliver=7))
    assert run_sync(sub.info()).config.max_deliver == 7
    assert sub.cached_info.config.max_deliver == 7
    assert stage.quiet() is False


# Fetching


class First:
    """Return the pull for available messages, or for the first one."""

    def __mod__(self, batch):
        return {"batch": batch, "no_wait": True, "expires": 1900}


FIRST = First()
# The batch, the answers to the pulls; the pulls, and the outcome.
FETCHES = [
    (1, [[message(1)]], [{"batch": 1, "expires": 1900}], [b"1"]),
    (1, [At(1.9, OVER)], [{"batch": 1, "expires": 1900}], TimeoutExpired),
    (2, [[message(1), message(2)]], [FIRST % 2], [b"1", b"2"]),
    # Fewer than were asked for are enough, if they are there, or arrive.
    (3, [[message(1), NONE]], [FIRST % 3], [b"1"]),
    (3, [[message(1), message(2), OVER]], [FIRST % 3], [b"1", b"2"]),
    (3, [At(1.0, message(1), OVER)], [FIRST % 3], [b"1"]),
    (2, [At(1.9, OVER)], [FIRST % 2], TimeoutExpired),
    (2, [SILENCE], [FIRST % 2], TimeoutExpired),
    # max_ack_pending: the server says nothing after the message, but answers the probe.
    (2, [[message(1)], [OVER]], [FIRST % 2, {"batch": 1, "expires": 0}], [b"1"]),
    (2, [[message(1)], SILENCE], [FIRST % 2, {"batch": 1, "expires": 0}], [b"1"]),
    (2, [[Status("409 Exceeded MaxRequestBatch of 1")]], [FIRST % 2], PullRefused),
    (1, [[Status("409 Consumer Deleted")]], [{"batch": 1, "expires": 1900}], ConsumerDeleted),
    (1, [[Status("503")]], [{"batch": 1, "expires": 1900}], ConsumerUnavailable),
    (1, [Lost()], [{"batch": 1, "expires": 1900}], ConnectionLost),
]


@pytest.mark.rule("PSUB-5")
@pytest.mark.rule("PSUB-6")
@pytest.mark.rule("PSUB-7")
@pytest.mark.rule("PSUB-8")
@pytest.mark.parametrize(("count", "answers", "asked", "outcome"), FETCHES)
def test_fetch(count, answers, asked, outcome):
    stage, sub = begin(*answers)
    start = stage.now()
    if isinstance(outcome, list):
        batch = run_sync(sub.fetch(count, timeout=2.0))
        assert (payloads(batch), batch.error) == (outcome, None)
    else:
        with pytest.raises(outcome):
            run_sync(sub.fetch(count, timeout=2.0))
    assert pulls(stage) == asked
    assert stage.now() - start <= 2.0
    assert stage.answers == []


@pytest.mark.rule("PSUB-7")
def test_a_pull_that_ends_early_is_sent_again():
    stage, sub = begin([LEADER], [LEADER], [message(1)])
    assert payloads(run_sync(sub.fetch(timeout=2.0))) == [b"1"]
    assert pulls(stage) == [{"batch": 1, "expires": wait} for wait in (1900, 1850, 1800)]


@pytest.mark.rule("PSUB-6")
@pytest.mark.parametrize(
    ("timeout", "expires"), [(0.01, 9), (0.5, 450), (1.0, 900), (5.0, 4900), (20.0, 19900)]
)
def test_the_margin(timeout, expires):
    stage, sub = begin(At(expires / 1000, OVER))
    with pytest.raises(TimeoutExpired, match="no message within %g s" % timeout):
        run_sync(sub.fetch(timeout=timeout))
    assert pulls(stage) == [{"batch": 1, "expires": expires}]


@pytest.mark.rule("PSUB-8")
@pytest.mark.parametrize("first", [True, False])
def test_a_failure_after_messages(first):
    end = [message(1), Status("409 Consumer Deleted")]
    _, sub = begin(*([end] if first else [[LEADER], end]))
    batch = run_sync(sub.fetch(5))
    assert payloads(batch) == [b"1"]
    assert isinstance(batch.error, ConsumerDeleted)


@pytest.mark.rule("PSUB-8")
@pytest.mark.parametrize(
    ("batch", "timeout"),
    [(0, 1.0), (-1, 1.0), (True, 1.0), (1.5, 1.0), (1, 0), (1, -1.0), (1, float("nan")), (1, "1")],
)
def test_invalid_numbers(batch, timeout):
    stage, sub = begin()
    with pytest.raises(InvalidValue):
        run_sync(sub.fetch(batch, timeout))
    assert stage.quiet()


@pytest.mark.rule("D-PSUB-10")
def test_a_canceled_fetch():
    stage, sub = begin([message(1), message(2)])
    wait = stage.wait

    async def cancelled(waitable):
        if not stage.answers:
            raise Cancelled
        await wait(waitable)

    stage.wait = cancelled
    with pytest.raises(Cancelled):
        run_sync(sub.fetch(4))
    stage.wait = wait
    pulls(stage)
    assert payloads(run_sync(sub.fetch(1))) == [b"1"]
    assert payloads(run_sync(sub.fetch(2))) == [b"2"]  # at once, because messages are available
    assert pulls(stage) == []
    stage.answers.append([message(3)])
    assert payloads(run_sync(sub.fetch(1))) == [b"3"]


# The end


@pytest.mark.rule("PSUB-9")
@pytest.mark.parametrize("answer", [{"success": True}, NOT_FOUND])
@pytest.mark.parametrize("own", [True, False])
def test_unsubscribe(own, answer):
    stage = Stage(consumer(), [message(1)])
    sub = subscribe(stage, stream="S", **({} if own else {"durable": "C"}))

    async def use():
        async with sub as entered:
            assert entered is sub
            await sub.fetch()
            stage.answers += [answer] if own else []
        assert sub.closed
        await sub.unsubscribe()

    run_sync(use())
    endpoints = [subject.split(".")[3] for subject, _ in stage.asked]
    assert endpoints == (["CREATE", "MSG", "DELETE"] if own else ["INFO", "MSG"])
    assert len(stage.connection.subscriptions.by_sid) == 1  # for the answers to requests
    with pytest.raises(InvalidState, match="the subscription has ended"):
        run_sync(sub.fetch())


@pytest.mark.rule("PSUB-9")
def test_unsubscribe_naks_messages_that_were_not_returned():
    stage, sub = begin([message(1), message(2), message(3)])
    run_sync(sub.fetch(1))  # the server has sent more than was asked for
    pulls(stage)
    run_sync(sub.unsubscribe())
    assert [body for _, body in stage.asked] == [b"-NAK", b"-NAK"]


@pytest.mark.rule("PSUB-9")
def test_unsubscribe_while_a_fetch_waits():
    stage, sub = begin(SILENCE)

    async def unsubscribed(waitable):
        assert not sub.closed
        await sub.unsubscribe()

    stage.wait = unsubscribed
    with pytest.raises(InvalidState, match="during the fetch"):
        run_sync(sub.fetch())


@pytest.mark.rule("PSUB-9")
def test_after_the_client_is_closed():
    stage, sub = begin(SILENCE)

    async def closed(waitable):
        stage.wire.tell("close")

    stage.wait = closed
    with pytest.raises(ConnectionClosed):
        run_sync(sub.fetch())
    sub._deletes = True
    run_sync(sub.unsubscribe())
    assert sub.closed


def test_properties_of_the_consumer():
    stage = Stage(
        consumer(ack_policy="none", priority_policy="pinned_client", priority_groups=["g"]),
        [message(1)],
    )
    sub = subscribe(stage, stream="S", durable="C")
    assert isinstance(sub, PullSubscription)
    assert run_sync(sub.fetch())[0].settled


MISSING = [  # how the consumer is named, what becomes of the creation; whether it is looked for
    ({}, SILENCE, TimeoutExpired, True),
    ({}, Lost(), TimeoutExpired, True),
    ({}, failure(500, 10000), ApiError, False),
    ({}, Status("503"), JetStreamNotAvailable, False),
    ({"durable": "C"}, SILENCE, TimeoutExpired, False),
    ({"name": "C"}, SILENCE, TimeoutExpired, False),
]


@pytest.mark.rule("D-JSSUB-17")
@pytest.mark.parametrize(("named", "answer", "error", "looked"), MISSING)
def test_a_creation_without_an_answer(named, answer, error, looked):
    stage = Stage(*[NOT_FOUND] * len(named), answer)
    with pytest.raises(error):
        subscribe(stage, stream="S", **named)
    stage.answers = [consumer("0" * 22), {"success": True}]
    while any(isinstance(each, Cleanup) for each in stage.connection.subscriptions.receivers()):
        assert stage.serve()
    asked = [subject for subject, _ in stage.asked]
    name = "0" * 22
    expected = [f"$JS.API.CONSUMER.INFO.S.{name}", f"$JS.API.CONSUMER.DELETE.S.{name}"]
    assert [each for each in asked if each in expected] == (expected if looked else [])


@pytest.mark.rule("D-JSSUB-17")
def test_it_is_canceled():
    stage = Stage(SILENCE, SILENCE)

    async def cancel(waitable):
        stage.serve()
        raise Cancelled

    stage.wait = cancel
    with pytest.raises(Cancelled):
        subscribe(stage, stream="S")
    assert [type(each) for each in stage.connection.subscriptions.receivers()][-1] is Cleanup
