"""Leaders and replicas: step-downs, removed and evacuated servers, canceled moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import ApiError
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
    CANDIDATE_AFTER,
    ELECTION,
    LONGEST,
    answered,
    delete_at_end,
    share_replicated,
)
from jetstream.testing.streams import fill, js_server, name_of, new_stream, numbers, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue
from natsproto.testing.context import Context, raises

if TYPE_CHECKING:
    from jetstream import ConsumerInfo, Stream, StreamInfo
    from natsproto.client import Client


def _leader(info: StreamInfo | ConsumerInfo) -> str:
    return info.cluster.leader if info.cluster is not None else ""


def _servers(info: StreamInfo) -> set[str]:
    assert info.cluster is not None
    return {info.cluster.leader, *(peer.name for peer in info.cluster.replicas)} - {""}


@check(since=(2, 11), longest=LONGEST)
async def check_step_down(ctx: Context) -> None:
    """Leaders of a stream and of a consumer step down, optionally in favor of a given server."""
    cluster, shared, _ = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    stream = await js.stream(shared.name)
    consumer = await js.consumer(shared.name, "c")

    before = _leader(await answered(client, stream.info))
    await answered(client, stream.step_down)

    async def stream_moved() -> bool:
        return _leader(await answered(client, stream.info)) not in ("", before)

    await until(client, stream_moved, ELECTION)
    before = _leader(await answered(client, consumer.info))
    wanted = next(each.name for each in cluster.members if each.name != before)
    await answered(client, lambda: consumer.step_down(preferred=wanted))

    async def consumer_moved() -> bool:
        return _leader(await answered(client, consumer.info)) == wanted

    await until(client, consumer_moved, ELECTION)
    with raises(ApiError):
        await stream.step_down(preferred="nobody")


async def _unreplicated(ctx: Context, replicas: int) -> tuple[Client, Stream, str]:
    """Create a stream with fewer replicas than servers; return the name of its leader, too."""
    cluster = ctx.shared_cluster()
    await delete_at_end(ctx, cluster, name_of(ctx))
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    stream = await answered(
        client, lambda: new_stream(ctx, js, num_replicas=replicas, storage="file")
    )
    await fill(ctx, js, numbers(5))
    return client, stream, _leader(await answered(client, stream.info))


async def _leaves(client: Client, stream: Stream, server: str, replicas: int) -> None:
    """Wait until the stream has left the server and has all its replicas and messages."""

    async def left() -> bool:
        info = await answered(client, stream.info)
        found = _servers(info)
        complete = len(found) == replicas and _leader(info) != ""
        return complete and server not in found and info.state.messages == 5

    await until(client, left, ELECTION)


@check(longest=LONGEST)
async def check_remove_peer(ctx: Context) -> None:
    """A replica is removed from a server, and another server gets one."""
    client, stream, leader = await _unreplicated(ctx, 2)
    info = await stream.info()
    other = next(iter(_servers(info) - {leader}))
    await answered(client, lambda: stream.remove_peer(other))
    await _leaves(client, stream, other, 2)
    with raises(ApiError):
        await stream.remove_peer("nobody")
    with raises(InvalidValue):
        await stream.remove_peer("")


@check(since=(2, 15), longest=LONGEST)
async def check_evacuate_peer(ctx: Context) -> None:
    """The only replica of a stream moves to another server with its messages."""
    client, stream, leader = await _unreplicated(ctx, 1)
    await answered(client, lambda: stream.evacuate_peer(leader))
    await _leaves(client, stream, leader, 1)
    with raises(ApiError):
        await stream.cancel_move()  # it is complete


@check()
async def check_no_replicas_without_a_cluster(ctx: Context) -> None:
    """A single server has no replicas to move."""
    js = await open_js(ctx, js_server(ctx))
    stream = await new_stream(ctx, js)
    with raises(ApiError):
        await stream.step_down()
    with raises(ApiError):
        await stream.remove_peer("s1")
