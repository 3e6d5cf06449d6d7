from __future__ import annotations

import pytest

from jetstream.advisories import streams
from tests.jetstream.advisories.samples import STREAMS, check_fields, event

CLASSES = {
    "stream_action": streams.StreamActionAdvisory,
    "stream_leader_elected": streams.StreamLeaderElectedAdvisory,
    "stream_quorum_lost": streams.StreamQuorumLostAdvisory,
    "stream_batch_abandoned": streams.StreamBatchAbandonedAdvisory,
    "snapshot_create": streams.SnapshotCreateAdvisory,
    "snapshot_complete": streams.SnapshotCompleteAdvisory,
    "restore_create": streams.RestoreCreateAdvisory,
    "restore_complete": streams.RestoreCompleteAdvisory,
}


@pytest.mark.rule("ADVIS-1", "ADVIS-3")
@pytest.mark.parametrize("kind", STREAMS)
def test_every_field_that_the_server_sends_is_known(kind):
    check_fields(CLASSES[kind], kind)


def test_the_samples_are_complete():
    assert set(CLASSES) == set(STREAMS)


@pytest.mark.rule("ADVIS-4")
def test_events_in_the_system_account_name_the_account():
    assert (
        streams.StreamLeaderElectedAdvisory.from_json(event("stream_leader_elected")).account == "A"
    )
    assert streams.StreamQuorumLostAdvisory.from_json(event("stream_quorum_lost")).account == ""
