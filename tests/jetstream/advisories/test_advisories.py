"""The names of the room."""

from __future__ import annotations

import pytest

from jetstream import advisories


def test_every_name_is_there():
    names = dir(advisories)
    assert {"Advisories", "Advisory", "MaxDeliverAdvisory", "ConsumerAckMetric"} <= set(names)
    assert names == sorted(names)
    for name in names:
        assert getattr(advisories, name).__name__ == name
    with pytest.raises(AttributeError):
        advisories.Nothing  # noqa: B018
