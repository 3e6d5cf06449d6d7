"""Actor: each action, its result, and its failures."""

from __future__ import annotations

import pytest

from jetstream.config import ConsumerConfig
from jetstream.errors import ConsumerExists, JetStreamNotAvailable
from jetstream.errors.api import TemporarilyUnavailable, TooManyRequests
from jetstream.pull.groups.actor import Actor
from jetstream.pull.groups.plan import MemberPlan
from natsproto.errors import TimeoutExpired
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, configured

LATE = TimeoutExpired("no answer in time")
ELASTIC = "elastic-consumer-groups"
STATIC = "static-consumer-groups"


def actor_of(elastic=True, **config):
    server = configured(ELASTIC if elastic else STATIC, max_members=2, **config)
    return server, Actor(MemberPlan(Js(server), "S", "g", "a", elastic, ConsumerConfig()))


def joined(elastic=True):
    server, actor = actor_of(elastic, members=["a"])
    run_sync(actor.update())
    run_sync(actor.act("create"))
    assert actor.membership.state == "IN"
    return server, actor


def store(server, value, bucket=ELASTIC):
    server.write(bucket, "S.g", value)


def test_the_configuration_is_read_from_the_leader():
    server, actor = actor_of(members=["a"])
    assert actor.subject == "$KV.elastic-consumer-groups.S.g"
    run_sync(actor.update())
    assert actor.membership.subjects == ["0.>", "1.>"]
    assert actor.feed.next_at == server.now + 5.5
    for rows in ({"S.g": (None, 2)}, {}, None):
        server.buckets[ELASTIC] = rows
        assert run_sync(actor.read()) is None
    server.fail["read"] = LATE
    run_sync(actor.update())
    assert actor.feed.next_at == server.now + 1.0


def test_a_consumer_is_created_and_pulled_from():
    server, actor = joined()
    assert server.last_options == {"max_messages": 1, "expires": 2.5, "group": "PCG"}
    assert actor.feed.target is actor.messages.source
    assert run_sync(actor.take()) is None
    server.publish("S-g", "0.x", b"1")
    assert run_sync(actor.take())._msg.data == b"1"


FOR_NOW = [
    LATE,
    JetStreamNotAvailable("none"),
    TemporarilyUnavailable(503, 10008, "JetStream system temporarily unavailable"),
    TooManyRequests(429, 10167, "too many requests"),
]


@pytest.mark.rule("D-GROUP-18")
@pytest.mark.parametrize("error", FOR_NOW)
def test_a_configuration_that_cannot_be_read_is_read_later(error):
    server, actor = joined()
    server.fail["read"] = error
    run_sync(actor.update())
    assert actor.feed.next_at == server.now + 1.0
    assert actor.membership.state == "IN"


@pytest.mark.rule("D-GROUP-18")
@pytest.mark.parametrize("error", FOR_NOW)
def test_without_an_answer_the_consumer_is_created_again(error):
    server, actor = actor_of(members=["a"])
    run_sync(actor.update())
    server.fail["create"] = error
    run_sync(actor.act("create"))
    assert (actor.membership.state, actor.membership.next_at) == ("WANTED", server.now + 0.25)


@pytest.mark.rule("GROUP-11")
def test_conflicting_consumers():
    server, actor = actor_of(members=["a", "b"])
    other = MemberPlan(Js(server), "S", "g", "b", True, ConsumerConfig())
    run_sync(other.create(["0.>"]))
    run_sync(actor.update())
    run_sync(actor.act("create"))
    assert (actor.membership.state, actor.membership.action(server.now)) == ("WANTED", "wait")
    run_sync(other.delete())
    run_sync(actor.plan.create(["1.>"]))  # by an instance with an older configuration
    run_sync(actor.act("create"))
    assert actor.membership.state == "STOPPED"
    for action in ("look", "delete", "create"):
        run_sync(actor.act(action))
    assert actor.membership.state == "IN"


def test_a_queue_that_is_gone_means_that_the_configuration_is_read():
    server, actor = actor_of(members=["a"])
    run_sync(actor.update())
    del server.streams["S-g"]
    run_sync(actor.act("create"))
    assert actor.feed.next_at == server.now


def test_a_static_consumer_with_other_settings_is_an_error():
    server, actor = actor_of(False, members=["a"])
    run_sync(actor.update())
    server.fail["create"] = ConsumerExists(400, 10148, "consumer already exists")
    with pytest.raises(ConsumerExists):
        run_sync(actor.act("create"))


@pytest.mark.rule("GROUP-11", "D-GROUP-12")
def test_a_consumer_is_deleted_when_its_messages_are_settled():
    server, actor = joined()
    server.publish("S-g", "0.x", b"1")
    run_sync(actor.take())
    store(server, b'{"max_members":2,"members":["b"]}')
    run_sync(actor.update())
    run_sync(actor.act("stop"))
    assert actor.messages is actor.feed.target is None
    server.fail["info"] = LATE
    run_sync(actor.act("look"))
    run_sync(actor.act("look"))
    assert actor.membership.state == "STOPPED"
    server.ack("S-g", "a", 1)
    run_sync(actor.act("look"))
    server.fail["delete"] = LATE
    run_sync(actor.act("delete"))
    assert actor.membership.state == "LEAVING"
    run_sync(actor.act("delete"))
    assert (actor.membership.state, server.consumers) == ("OUT", {})


def test_a_consumer_that_is_gone_need_not_be_deleted():
    for action in ("look", "delete"):
        server, actor = joined()
        store(server, b'{"max_members":2,"members":["b"]}')
        run_sync(actor.update())
        run_sync(actor.act("stop"))
        server.consumers.clear()
        run_sync(actor.act(action))
        assert actor.membership.state == "OUT"


def test_an_elastic_consumer_that_is_lost_is_created_again():
    server, actor = joined()
    server.consumers.clear()
    assert run_sync(actor.take()) is None
    assert (actor.membership.state, actor.membership.next_at) == ("WANTED", server.now + 0.5)
    assert actor.feed.next_at == server.now


@pytest.mark.rule("D-GROUP-16")
@pytest.mark.parametrize("deleted", [True, False])
def test_a_static_consumer_that_is_lost_ends_the_membership(deleted):
    server, actor = joined(False)
    server.consumers.clear()
    if deleted:
        store(server, None, STATIC)
    assert run_sync(actor.take()) is None
    assert actor.membership.state == "ENDED"
    assert (actor.membership.error is None) is deleted


def test_a_closed_client_ends_the_membership():
    _, actor = joined()
    actor.messages.closed = True
    assert run_sync(actor.take()) is None
    assert (actor.membership.state, actor.membership.error) == ("ENDED", None)


def test_an_action_that_it_does_not_know():
    _, actor = joined()
    run_sync(actor.act("wait"))
    assert actor.membership.state == "IN"
