from __future__ import annotations

import pytest

from jetstream.advisories import servers
from tests.jetstream.advisories.samples import SERVERS, check_fields

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
    check_fields(CLASSES[kind], kind)


def test_the_samples_are_complete():
    assert set(CLASSES) == set(SERVERS)
