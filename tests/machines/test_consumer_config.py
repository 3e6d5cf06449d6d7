from __future__ import annotations

import pytest

from jetstream.consumer_config import ConsumerConfig
from natsproto.errors import InvalidName, InvalidValue, LocalError
from tests.configs import REFUSED_CONSUMERS, TAKEN_CONSUMERS, refused


@pytest.mark.parametrize(("rule", "config"), refused(REFUSED_CONSUMERS))
def test_refused(rule, config):
    with pytest.raises(LocalError) as error:
        ConsumerConfig(**config).check()
    assert error.value.rule == rule


@pytest.mark.parametrize("config", TAKEN_CONSUMERS)
def test_taken(config):
    ConsumerConfig(**config).check()


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (
            "ConsumerConfig with filter_subject='a', filter_subjects=['b']:"
            " only one of the two can be given (CONS-5)",
            {"filter_subject": "a", "filter_subjects": ["b"]},
        ),
        (
            "ConsumerConfig with sample_freq='x':"
            " it is a number of percent, such as '30' or '30%' (CONS-18)",
            {"sample_freq": "x"},
        ),
        (
            "ConsumerConfig with deliver_policy='all', opt_start_seq=5:"
            " by_start_sequence and opt_start_seq need each other (CONS-7)",
            {"opt_start_seq": 5},
        ),
    ],
)
def test_errors_tell_what_is_wrong(text, config):
    with pytest.raises(InvalidValue) as error:
        ConsumerConfig(**config).check()
    assert str(error.value) == text


def test_a_consumer_that_exists_may_have_the_name_of_a_laxer_client():
    ConsumerConfig(name="é", durable_name="é").check(new=False)
    with pytest.raises(InvalidName) as error:
        ConsumerConfig(name="a.b").check(new=False)
    assert error.value.rule == "SUBJ-8"


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
