"""Every public coroutine is swept."""

from __future__ import annotations

from tests.sweep import bucket_calls as bucket_calls
from tests.sweep import core_calls as core_calls
from tests.sweep import group_calls as group_calls
from tests.sweep import pull_calls as pull_calls
from tests.sweep import service_calls as service_calls
from tests.sweep import stream_calls as stream_calls
from tests.sweep.coroutines import CALLS, coroutines_of, public_coroutines

COVERED = {name for each in CALLS.values() for name in each.covers}


def test_every_public_coroutine_has_a_call():
    assert sorted(set(public_coroutines()) - COVERED) == []


def test_calls_name_public_coroutines_only():
    assert sorted(COVERED - set(public_coroutines())) == []


def test_a_new_coroutine_is_noticed():
    class Client:
        async def invent(self) -> None:
            """Do something that no call covers."""

        async def _private(self) -> None: ...

        async def __aenter__(self) -> None: ...

        def plain(self) -> None: ...

    assert coroutines_of(Client) == ["Client.__aenter__", "Client.invent"]
