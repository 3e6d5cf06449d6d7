"""What the tests of watches have in common: a watch on a bucket that is scripted."""

from __future__ import annotations

import json

from tests.jetstream.kvs import bucket, created, there

GONE = {"error": {"code": 503, "err_code": 10008, "description": "not available"}}


def start(*answers, keys=0, last=5, snapshot=None, **options):
    """A watch of a bucket that has so many keys at its beginning, and what was sent for it."""
    first = [] if options.get("updates_only") else snapshot or [there(keys, last)]
    stage, kv = bucket(*first, created(keys), *answers)
    watcher = stage.run(kv.watch(options.pop("watched", ">"), **options))
    create = stage._pubs.pop()
    return stage, watcher, json.loads(create.data)["config"]


async def all_of(iterator):
    return [(entry.key, entry.revision) async for entry in iterator]


def initial(stage, watcher):
    return stage.run(all_of(watcher.initial()))


def following(stage, watcher, count):
    found = [stage.run(watcher.__anext__()) for _ in range(count)]
    return [(entry.key, entry.revision) for entry in found]


def comes_with_the_answer(stage, late):
    """The next call is answered, and this message is there before."""
    answer = stage._answer

    def come_and_answer(reply):
        sid = max(stage._subs)  # that of the watch
        stage.wire.data((late.line % sid).encode() + b"\r\n" + late.data + b"\r\n")
        stage._answer = answer
        return answer(reply)

    stage._answer = come_and_answer
