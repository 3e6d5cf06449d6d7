from __future__ import annotations

import pytest

from natsproto.errors import (
    InvalidName,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    LocalError,
    TimeoutExpired,
)
from tests.jetstream.service_stage import OVERLOADED, ServiceStage


def started(**options):
    stage = ServiceStage()
    service = stage.service(**options)
    stage.run(service.start())
    stage.pump()
    return stage, service


def handle(request):
    return b""


@pytest.mark.rule("SERVICE-5", "SERVICE-6", "SERVICE-7", "SERVICE-8", "SERVICE-9")
@pytest.mark.parametrize(
    ("service", "groups", "options", "subject", "queue"),
    [
        ({}, [], {}, "e", "q"),
        ({}, [], {"subject": "other.*"}, "other.*", "q"),
        ({}, [("g", {})], {}, "g.e", "q"),
        ({}, [("", {})], {}, "e", "q"),
        ({}, [("g", {}), ("h.i", {}), ("", {})], {"subject": "x"}, "g.h.i.x", "q"),
        ({"queue_group": "s"}, [], {}, "e", "s"),
        ({"queue_group": "s"}, [("g", {})], {}, "g.e", "s"),
        ({"queue_group": "s"}, [("g", {"queue_group": "g"}), ("h", {})], {}, "g.h.e", "g"),
        ({"queue_group": "s"}, [("g", {"queue_group": "g"})], {"queue_group": "e"}, "g.e", "e"),
        ({"queue_group": "s"}, [], {"queue_group": ""}, "e", "s"),
        ({"queue_group": "s"}, [], {"queue_group": None}, "e", ""),
        ({"queue_group": None}, [], {}, "e", ""),
        ({"queue_group": None}, [("g", {})], {"queue_group": "e"}, "g.e", "e"),
        ({}, [("g", {"queue_group": None})], {}, "g.e", ""),
    ],
)
def test_subjects_and_queue_groups(service, groups, options, subject, queue):
    stage, made = started(**service)
    group = made
    for name, settings in groups:
        group = group.add_group(name, **settings)
    endpoint = group.add_endpoint("e", **options)
    assert (endpoint.name, endpoint.subject, endpoint.queue_group) == ("e", subject, queue)
    stage.pump()
    assert (subject, queue) in stage.subs.values()
    assert made.info().endpoints[0].to_json() == {
        "name": "e",
        "subject": subject,
        "queue_group": queue,
        "metadata": {},
    }
    assert group.prefix + ("." if group.prefix else "") + options.get("subject", "e") == subject


@pytest.mark.rule("D-SERVICE-1", "D-SERVICE-11")
@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("a b",), {}, InvalidName),
        (("",), {}, InvalidName),
        ((1,), {}, InvalidName),
        (("e",), {"subject": "a b"}, InvalidSubject),
        (("e",), {"subject": "a..b"}, InvalidSubject),
        (("e",), {"subject": ">.a"}, InvalidSubject),
        (("e",), {"queue_group": "a b"}, InvalidSubject),
        (("e",), {"metadata": {"a": 1}}, InvalidValue),
        (("e", 5), {}, InvalidValue),
        (("e",), {"concurrency": 0}, InvalidValue),
        (("e",), {"max_msgs": -1}, InvalidValue),
        (("e",), {"max_bytes": 0.5}, InvalidValue),
    ],
)
def test_arguments_are_checked_before_anything_is_sent(arguments, options, error):
    stage, service = started()
    subs = dict(stage.subs)
    with pytest.raises(error) as caught:
        service.add_endpoint(*arguments, **options)
    assert isinstance(caught.value, LocalError)
    stage.pump()
    assert (stage.subs, service.endpoints) == (subs, [])


@pytest.mark.rule("SERVICE-7")
def test_groups_are_checked():
    _, service = started()
    for name in ["a.>", "a b"]:
        with pytest.raises(InvalidSubject):
            service.add_group(name)
    with pytest.raises(InvalidSubject):
        service.add_group("a", queue_group="b c")


def test_the_decorator():
    _, service = started()

    @service.endpoint()
    async def add(request):
        pass

    group = service.add_group("g")
    options = {"subject": "x", "metadata": {"a": "b"}, "concurrency": 3, "queue_group": None}
    assert group.endpoint("other", **options, max_msgs=1, max_bytes=2)(handle) is handle
    first, second = service.endpoints
    assert (first.name, first.handler, first.concurrency) == ("add", add, 1)
    assert (second.name, second.subject, second.handler) == ("other", "g.x", handle)
    assert (second.concurrency, second.queue_group, second.metadata) == (3, "", {"a": "b"})


@pytest.mark.rule("SERVICE-3")
def test_metadata_cannot_be_changed():
    given = {"a": "b"}
    _, service = started()
    endpoint = service.add_endpoint("e", metadata=given)
    given["c"] = "d"
    endpoint.metadata["e"] = "f"
    assert endpoint.metadata == {"a": "b"}
    assert service.info().endpoints[0].metadata == {"a": "b"}


def test_endpoints_with_the_same_name():
    _, service = started()
    for subject in "ab":
        service.add_endpoint("e", subject=subject)
    assert [each.name for each in service.info().endpoints] == ["e", "e"]


@pytest.mark.rule("D-SERVICE-9")
def test_limits():
    stage, service = started()
    endpoint = service.add_endpoint("e", max_msgs=2)
    stage.send("e", copies=5)
    assert (endpoint.pending, endpoint.dropped) == (2, 3)
    assert stage.answers() == [("r", b"", OVERLOADED)] * 3
    [event] = [each for each in stage.wire.events() if type(each).__name__ == "SlowConsumer"]
    assert (event.subject, event.dropped) == ("e", 3)


@pytest.mark.rule("D-SERVICE-17")
def test_a_loop_over_requests():
    stage, service = started()
    endpoint = service.add_endpoint("e")
    seen = []

    async def loop():
        async for request in endpoint:
            seen.append((request.data, endpoint.in_progress))
            if request.data != b"2":
                await request.respond(request.data)

    task = stage.start(loop())
    stage.settle()
    for data in (b"1", b"2", b"3"):
        stage.send("e", data)
    stage.settle()
    assert seen == [(b"1", 1), (b"2", 1), (b"3", 1)]
    assert [each[1] for each in stage.answers()] == [b"1", b"3"]
    assert endpoint.in_progress == 0
    assert stage.run(service.stop()) is None
    stage.settle()
    assert (task.done, endpoint.ended, service.state) == (True, True, "STOPPED")
    assert (endpoint.stats.num_requests, endpoint.pending) == (3, 0)


@pytest.mark.rule("D-SERVICE-17")
def test_next():
    stage, service = started()
    endpoint = service.add_endpoint("e")
    assert isinstance(stage.run(endpoint.next(0)), TimeoutExpired)
    task = stage.start(endpoint.next(5.0))
    stage.settle()
    stage.send("e", b"1")
    stage.settle()
    request = task.outcome()
    assert (request.data, endpoint.in_progress) == (b"1", 1)
    stage.run(request.respond())
    assert endpoint.in_progress == 0
    late = stage.start(endpoint.next(5.0))
    stage.settle()
    stage.wire.timer(at=6.0)
    stage.settle()
    assert isinstance(late.outcome(), TimeoutExpired)
    stage.run(service.stop())
    assert str(stage.run(endpoint.next())) == "endpoint has ended: 'e'"


@pytest.mark.rule("D-SERVICE-17", "D-SERVICE-8")
def test_a_message_without_a_reply_subject_is_done_when_it_is_taken():
    stage, service = started()
    endpoint = service.add_endpoint("e")
    stage.send("e", b"1", reply="")
    assert stage.run(endpoint.next()).data == b"1"
    assert endpoint.in_progress == 0


@pytest.mark.rule("D-SERVICE-17")
def test_endpoints_with_a_handler_have_no_loop():
    stage, service = started()
    endpoint = service.add_endpoint("e", handle)
    with pytest.raises(InvalidState, match="endpoint has a handler, which receives its requests"):
        endpoint.__aiter__()
    assert isinstance(stage.run(endpoint.next()), InvalidState)


def test_a_loop_needs_a_service_that_is_started():
    stage = ServiceStage()
    endpoint = stage.service().add_endpoint("e")
    assert "service is not started" in str(stage.run(endpoint.next()))


def test_nothing_is_queued():
    _, service = started()
    assert service.add_endpoint("e").take_queued() is None


@pytest.mark.rule("D-SERVICE-12")
def test_refuse():
    stage, service = started()
    endpoint = service.add_endpoint("e")
    stage.send("e", copies=2)
    endpoint.refuse()
    assert len(stage.answers()) == 2
    assert endpoint.queue.queued == 0


def test_repr():
    _, service = started()
    assert repr(service.add_endpoint("e", subject="x")) == "<Endpoint 'e' of 'x'>"
    assert aiter_is_itself(service.add_endpoint("f"))


def aiter_is_itself(endpoint):
    loop = endpoint.__aiter__()
    return loop.__aiter__() is loop


@pytest.mark.rule("D-SERVICE-10")
def test_a_loop_ends_when_a_subscription_is_denied():
    stage, service = started()
    endpoint = service.add_endpoint("e")
    other = service.add_endpoint("f")
    stage.pump()

    async def loop():
        return [request.data async for request in endpoint]

    task = stage.start(loop())
    polling = stage.start(other.next())
    stage.settle()
    stage.send("e", b"1")
    stage.deny("$SRV.PING")
    stage.settle()
    assert task.outcome() == [b"1"]
    assert isinstance(polling.outcome(), InvalidState)
    assert service.state == "STOPPED"
