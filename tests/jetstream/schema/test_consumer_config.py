from __future__ import annotations

import pytest

from jetstream.schema.consumer_config import ConsumerConfig
from natsproto.errors import InvalidName


def test_a_check_is_by_the_rules():
    ConsumerConfig(name="c").check()
    ConsumerConfig(name="é").check(new=False)
    with pytest.raises(InvalidName):
        ConsumerConfig(name="é").check()


@pytest.mark.rule("CONS-24")
def test_ack_policy_is_always_sent():
    assert ConsumerConfig().to_json() == {"ack_policy": "explicit"}
    assert ConsumerConfig(ack_policy="none").to_json() == {"ack_policy": "none"}


def test_zeros():
    config = ConsumerConfig()
    assert (config.deliver_policy, config.ack_policy) == ("all", "explicit")
    assert (config.replay_policy, config.priority_policy) == ("instant", "none")
    assert config.opt_start_time is None
    assert config.backoff == []
