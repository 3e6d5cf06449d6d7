from __future__ import annotations

import pytest

from jetstream.errors import PullRefused
from jetstream.pull.events import Pinned, PullWarning, Unpinned


@pytest.mark.rule("CONSUME-13")
def test_events():
    error = PullRefused(409, "x")
    assert PullWarning(error).error is error
    assert Pinned("id") == Pinned("id")
    assert Pinned("id") != Pinned("other")
    assert Unpinned() == Unpinned()
