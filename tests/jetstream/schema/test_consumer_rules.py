from __future__ import annotations

import pytest

from jetstream.schema.consumer_config import ConsumerConfig
from jetstream.schema.consumer_rules import check_consumer
from natsproto.errors import InvalidName, InvalidValue, LocalError
from tests.configs import REFUSED_CONSUMERS, TAKEN_CONSUMERS, refused


@pytest.mark.parametrize(("rule", "config"), refused(REFUSED_CONSUMERS))
def test_refused(rule, config):
    with pytest.raises(LocalError) as error:
        check_consumer(ConsumerConfig(**config), new=True)
    assert error.value.rule == rule


@pytest.mark.parametrize("config", TAKEN_CONSUMERS)
def test_taken(config):
    check_consumer(ConsumerConfig(**config), new=True)


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
            " it must be a percentage, such as '30' or '30%' (CONS-18)",
            {"sample_freq": "x"},
        ),
        (
            "ConsumerConfig with deliver_policy='all', opt_start_seq=5:"
            " by_start_sequence and opt_start_seq need each other (CONS-7)",
            {"opt_start_seq": 5},
        ),
    ],
)
def test_errors_state_the_problem(text, config):
    with pytest.raises(InvalidValue) as error:
        check_consumer(ConsumerConfig(**config), new=True)
    assert str(error.value) == text


def test_a_consumer_that_exists_may_have_the_name_of_a_laxer_client():
    check_consumer(ConsumerConfig(name="é", durable_name="é"), new=False)
    with pytest.raises(InvalidName) as error:
        check_consumer(ConsumerConfig(name="a.b"), new=False)
    assert error.value.rule == "SUBJ-8"
