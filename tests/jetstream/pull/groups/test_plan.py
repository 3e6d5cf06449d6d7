"""MemberPlan: the consumer of a member."""

from __future__ import annotations

import pytest

from jetstream.config import ConsumerConfig
from jetstream.pull.groups.config import ElasticGroupConfig, StaticGroupConfig
from jetstream.pull.groups.plan import MemberPlan
from natsproto.errors import InvalidValue
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, configured


def plan_of(elastic, **fields):
    server = configured("x")
    return server, MemberPlan(Js(server), "S", "g", "m", elastic, ConsumerConfig(**fields))


@pytest.mark.rule("GROUP-6", "GROUP-8", "D-GROUP-15")
def test_the_consumer_of_a_static_member():
    server, plan = plan_of(False)
    assert (plan.bucket, plan.key, plan.expires, plan.batch) == (
        "static-consumer-groups", "S.g", 2.5, 1,
    )  # fmt: skip
    run_sync(plan.create(["0.>"]))
    config = server.consumers["S", "g-m"].config
    assert config.to_json() == {
        "durable_name": "g-m",
        "ack_policy": "explicit",
        "ack_wait": 5 * 10**9,
        "max_ack_pending": 1,
        "filter_subjects": ["0.>"],
        "priority_groups": ["PCG"],
        "priority_policy": "pinned_client",
        "priority_timeout": 5 * 10**9,
    }
    assert isinstance(plan.decode(b'{"max_members":1}'), StaticGroupConfig)


@pytest.mark.rule("GROUP-7", "GROUP-8")
def test_the_consumer_of_an_elastic_member():
    server, plan = plan_of(True, ack_wait=0.5, max_ack_pending=900)
    assert (plan.stream, plan.consumer, plan.expires, plan.batch) == ("S-g", "m", 1.0, 500)
    run_sync(plan.create(["0.>"]))
    config = server.consumers["S-g", "m"].config
    assert (config.name, config.durable_name) == ("m", "")
    assert (config.inactive_threshold, config.priority_timeout) == (0.5, 1.0)
    assert run_sync(plan.info()).num_ack_pending == 0
    run_sync(plan.unpin())
    run_sync(plan.delete())
    assert server.consumers == {}
    assert isinstance(plan.decode(b'{"max_members":1}'), ElasticGroupConfig)


def test_settings_of_the_program():
    _, plan = plan_of(False, ack_policy="none", max_deliver=3)
    assert plan.batch == 500
    with pytest.raises(InvalidValue, match="filter_subject is set by the group"):
        plan_of(False, filter_subject="x")
    with pytest.raises(InvalidValue, match="always explicit"):
        plan_of(True, ack_policy="none")
    assert plan_of(True, ack_policy="explicit")[1].batch == 1
