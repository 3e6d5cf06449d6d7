from __future__ import annotations

import pytest

from jetstream.advisories import consumers
from tests.jetstream.advisories.samples import CONSUMERS, check_fields

CLASSES = {
    "consumer_action": consumers.ConsumerActionAdvisory,
    "consumer_pause": consumers.ConsumerPauseAdvisory,
    "max_deliver": consumers.MaxDeliverAdvisory,
    "terminated": consumers.TerminatedAdvisory,
    "nak": consumers.NakAdvisory,
    "consumer_ack": consumers.ConsumerAckMetric,
    "consumer_group_pinned": consumers.ConsumerGroupPinnedAdvisory,
    "consumer_group_unpinned": consumers.ConsumerGroupUnpinnedAdvisory,
    "consumer_leader_elected": consumers.ConsumerLeaderElectedAdvisory,
    "consumer_quorum_lost": consumers.ConsumerQuorumLostAdvisory,
}


@pytest.mark.rule("ADVIS-1", "ADVIS-3")
@pytest.mark.parametrize("kind", CONSUMERS)
def test_every_field_that_the_server_sends_is_known(kind):
    check_fields(CLASSES[kind], kind)


def test_the_samples_are_complete():
    assert set(CLASSES) == set(CONSUMERS)
