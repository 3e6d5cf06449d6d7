from __future__ import annotations

import pytest

from jetstream.advisories import servers
from tests.jetstream.advisories.samples import SERVERS, event

CLASSES = {
    "api_audit": servers.ApiAuditAdvisory,
    "api_limit_reached": servers.ApiLimitReachedAdvisory,
    "server_out_of_space": servers.ServerOutOfSpaceAdvisory,
    "server_removed": servers.ServerRemovedAdvisory,
    "meta_rescue": servers.MetaRescueAdvisory,
    "domain_leader_elected": servers.DomainLeaderElectedAdvisory,
}


@pytest.mark.rule("ADVIS-1", "ADVIS-3")
@pytest.mark.parametrize("kind", SERVERS)
def test_every_field_that_the_server_sends_is_known(kind):
    raw = event(kind)
    found = CLASSES[kind].from_json(raw)
    assert found.extra == {}
    assert found.kind == kind
    assert found.to_json() == raw
    names = {field.name for field in found.FIELDS}
    assert names >= set(SERVERS[kind])
    common = {"type", "id", "timestamp", "domain"}
    assert set(found.__class__.__annotations__) - {"FIELDS"} == names - common


def test_the_samples_are_complete():
    assert set(CLASSES) == set(SERVERS)
