"""All responses have one home, whichever module defines them."""

from __future__ import annotations

import pytest

from jetstream.schema import account_info, cluster_info, consumer_info, info, pub_ack, stream_info
from jetstream.schema.fields import Fields

HOMES = [account_info, cluster_info, consumer_info, pub_ack, stream_info]


@pytest.mark.parametrize("module", HOMES, ids=lambda module: module.__name__)
def test_every_response_is_there(module):
    own = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Fields)
        and each.__module__ == module.__name__
    ]
    assert own
    assert [getattr(info, each.__name__) for each in own] == own
