from __future__ import annotations

import pickle

import pytest

from jetstream import errors
from jetstream.errors.groups import GroupError


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (errors.GroupNotFound, "consumer group S.g does not exist"),
        (errors.GroupExists, "consumer group S.g already exists with a different configuration"),
        (errors.GroupChanged, "configuration of the consumer group has changed: member S.g stops"),
        (errors.NotAMember, "static consumer group has no partitions for S.g"),
    ],
)
def test_the_errors_of_groups(kind, text):
    error = kind("S.g")
    assert isinstance(error, GroupError)
    assert str(error).replace("'", "") == text
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.name, str(again)) == (kind, "S.g", str(error))
