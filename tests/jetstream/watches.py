"""Helpers for tests of watches, on a scripted bucket."""

from __future__ import annotations

import json

from tests.jetstream.kvs import bucket, created, there

GONE = {"error": {"code": 503, "err_code": 10008, "description": "not available"}}


def start(*answers, keys=0, last=5, snapshot=None, **options):
    """Return a watch of a bucket with this many keys, and the configuration of its consumer."""
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


def comes_with_the_answer(stage, *late):
    """Return the next calls are answered, and before each answer one of these messages arrives.

    None: no message arrives with that answer.
    """
    answer = stage._answer
    left = list(late)

    def come_and_answer(reply):
        msg = left.pop(0)
        if msg is not None:
            sid = max(stage._subs)  # that of the watch
            stage.wire.data((msg.line % sid).encode() + b"\r\n" + msg.data + b"\r\n")
        if not left:
            stage._answer = answer
        return answer(reply)

    stage._answer = come_and_answer
