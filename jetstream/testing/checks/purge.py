"""Purging streams: everything, or a part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.testing.streams import fill, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import LocalError
from natsproto.testing.context import Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream, Stream


async def _purge(ctx: Context, js: JetStream, stream: Stream, **how: Any) -> tuple[int, list[int]]:
    """Fill the stream and purge; return the count, and the remaining messages from 1 on."""
    await stream.purge()
    first = (await stream.info()).state.last_seq
    for token in "aab":
        await fill(ctx, js, numbers(2), token)
    if "seq" in how:
        how["seq"] += first
    purged = await stream.purge(**how)
    state = (await stream.info(deleted_details=True)).state
    left = set(range(state.first_seq, state.last_seq + 1)) - set(state.deleted)
    return purged, [seq - first for seq in sorted(left)]


@check()
async def check_stream_purge(ctx: Context) -> None:
    """A purge removes everything, a subject, up to a sequence, or all but the newest."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    assert await _purge(ctx, js, stream) == (6, [])
    assert await _purge(ctx, js, stream, subject=ctx.subject + ".a") == (4, [5, 6])
    assert await _purge(ctx, js, stream, subject=ctx.subject + ".c") == (0, [1, 2, 3, 4, 5, 6])
    assert await _purge(ctx, js, stream, seq=3) == (2, [3, 4, 5, 6])
    assert await _purge(ctx, js, stream, keep=2) == (4, [5, 6])
    assert await _purge(ctx, js, stream, subject=ctx.subject + ".a", keep=1) == (3, [4, 5, 6])
    assert await _purge(ctx, js, stream, subject=ctx.subject + ".a", seq=4) == (3, [4, 5, 6])


@check()
async def check_stream_purge_rejected_locally(ctx: Context) -> None:
    """An empty value or 0 is rejected, so that a mistake cannot purge everything."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    wrong: list[dict[str, Any]] = [
        {"seq": 0},
        {"keep": 0},
        {"subject": ""},
        {"seq": 1, "keep": 1},
        {"seq": True},
    ]
    for how in wrong:
        with raises(LocalError):
            await stream.purge(**how)
    assert (await stream.info()).state.messages == 3
