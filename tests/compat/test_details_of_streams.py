"""Details of publishers, push subscriptions and key-value stores, on nats-py and on the layer."""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.compat.both import processed, run

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
ours: Any = importlib.import_module("natsproto.compat.nats")
SOON = 5.0


def unique(nats: Any, program: Any) -> str:
    """Return a name for what a program creates on the server that all of them share."""
    return f"{program.__name__}_{nats.__name__.replace('.', '_')}"


async def callbacks_of_push_subscriptions_are_checked(nats: Any, nc: Any, name: str) -> None:
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name])
    for options in ({"manual_ack": True}, {"ordered_consumer": True}):
        with pytest.raises(nats.errors.Error, match="must use coroutine"):
            await js.subscribe(name, cb=print, **options)


async def ignored_entries_do_not_extend_the_timeout(nats: Any, nc: Any, name: str) -> None:
    kv = await nc.jetstream().create_key_value(bucket=name)
    watcher = await kv.watchall(ignore_deletes=True)
    assert await watcher.updates() is None

    ended = False  # not cancel(), which a request of nats-py may swallow

    async def delete_again_and_again() -> None:
        while not ended:
            await kv.delete("a")
            await asyncio.sleep(0.02)

    deleting = asyncio.create_task(delete_again_and_again())
    with pytest.raises(nats.errors.TimeoutError):
        await asyncio.wait_for(watcher.updates(timeout=0.2), SOON)
    ended = True
    await deleting


async def a_cluster_has_another_code_for_a_wrong_revision(nats: Any, nc: Any, name: str) -> None:
    error = {"code": 400, "err_code": 10164, "description": "wrong last sequence"}

    async def refuse(msg: Any) -> None:  # as the leader does while an earlier update is in flight
        await nc.publish(msg.reply, json.dumps({"error": error, "stream": "S", "seq": 0}).encode())

    await nc.subscribe(f"$KV.{name}.a", cb=refuse)
    await processed(nc)
    kv = nats.js.kv.KeyValue(name, f"KV_{name}", f"$KV.{name}.", nc.jetstream(), False)
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await kv.update("a", b"1", last=3)


async def the_marker_of_a_deletion_has_no_ttl(nats: Any, nc: Any, name: str) -> None:
    js = nc.jetstream()
    kv = await js.create_key_value(bucket=name)
    with pytest.warns(DeprecationWarning, match="deprecated and ignored"):
        await kv.delete("a", msg_ttl=100)
    marker = await js.get_last_msg(f"KV_{name}", f"$KV.{name}.a")
    assert marker.headers == {"KV-Operation": "DEL"}


PROGRAMS = [
    callbacks_of_push_subscriptions_are_checked,
    ignored_entries_do_not_extend_the_timeout,
    a_cluster_has_another_code_for_a_wrong_revision,
    the_marker_of_a_deletion_has_no_ttl,
]


async def connect_and_run(program: Any, nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    await program(nats, nc, unique(nats, program))
    await nc.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_detail_is_the_same(nats, server, program):
    run(connect_and_run, program, nats, server.url)


# Only on the layer


async def publish_on_two_connections(url: str) -> list[int]:
    nc = await ours.connect(url)
    js = nc.jetstream()
    await js.add_stream(name="AGAIN", subjects=["again"])
    found = [(await (await js.publish_async("again"))).seq]
    await nc.close()
    await nc.connect(url)
    found.append((await (await js.publish_async("again"))).seq)
    await nc.close()
    return found


def test_a_context_publishes_on_the_next_connection_of_its_client(server):
    # On nats-py the second acknowledgment goes to a subscription of the first connection.
    assert run(publish_on_two_connections, server.url) == [1, 2]
