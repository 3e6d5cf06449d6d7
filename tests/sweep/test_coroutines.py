"""Every public coroutine is swept."""

from __future__ import annotations

from tests.sweep import bucket_calls as bucket_calls
from tests.sweep import core_calls as core_calls
from tests.sweep import group_calls as group_calls
from tests.sweep import pull_calls as pull_calls
from tests.sweep import service_calls as service_calls
from tests.sweep import stream_calls as stream_calls
from tests.sweep.coroutines import CALLS, coroutines_of, other_classes, public_coroutines

COVERED = {name for each in CALLS.values() for name in each.covers}
#: No public function returns them, and no public attribute has them.
INTERNAL = [
    "jetstream.api.client.ApiClient",
    "jetstream.dead_letters.api.Captured",
    "jetstream.dead_letters.api.Live",
    "jetstream.kv.buckets.BucketManager",
    "jetstream.kv.manager.KeyValueManager",
    "jetstream.kv.snapshot.Lister",
    "jetstream.machine.callbacks.CallbackRunner",
    "jetstream.objects.files.CountedFile",
    "jetstream.objects.manager.ObjectStoreManager",
    "jetstream.objects.meta.MetaStore",
    "jetstream.objects.put.Upload",
    "jetstream.publish.request.Publisher",
    "jetstream.publish.source.Source",
    "jetstream.publish.source._AsyncIterated",
    "jetstream.publish.source._Iterated",
    "jetstream.publish.source._Read",
    "jetstream.pull.api.Puller",
    "jetstream.pull.groups.actor.Actor",
    "jetstream.pull.groups.plan.MemberPlan",
    "jetstream.services.callout.CalloutHandler",
    "jetstream.services.hub.Hub",
    "jetstream.services.runner.ServiceRunner",
    "jetstream.streams.manager.StreamManager",
    "jetstream.streams.restore.Transfer",
    "natsproto.callbacks.CallbackRunner",
    "natsproto.paths.send.Traced",
    "natsproto.replies.ReplyReader",
    "natsproto.session.Session",
    "natsproto.workers.Workers",
]


def test_every_public_coroutine_has_a_call():
    assert sorted(set(public_coroutines()) - COVERED) == []


def test_calls_name_public_coroutines_only():
    assert sorted(COVERED - set(public_coroutines())) == []


def test_a_class_is_public_or_known_to_be_internal():
    assert other_classes() == sorted(INTERNAL)


def test_a_new_coroutine_is_noticed():
    class Client:
        async def invent(self) -> None:
            """Do something that no call covers."""

        async def _private(self) -> None: ...

        async def __aenter__(self) -> None: ...

        def plain(self) -> None: ...

    assert coroutines_of(Client) == ["Client.__aenter__", "Client.invent"]
