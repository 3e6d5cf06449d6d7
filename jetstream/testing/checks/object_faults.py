"""The object store when something goes wrong: losses, failures, damage; and much data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    BucketNotFound,
    InvalidResponse,
    ObjectChanged,
    ObjectCorrupt,
    StoreFailed,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.objects import new_store, sample, stored
from jetstream.testing.streams import js_server, left_alone, name_of, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, InvalidValue
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from jetstream import JetStream
    from jetstream.objects import ObjectStore
    from natsproto.client import Client

MEGABYTE = 1_000_000


def _pieces(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield bytes([number % 251]) * 100_000


@check(slow=True, needs=("_tracemalloc",))
async def check_object_of_20_megabytes(ctx: Context) -> None:
    """It streams through: neither putting nor getting holds much of it."""
    import tracemalloc  # PyPy has none

    js, store = await new_store(ctx)
    tracemalloc.start()
    try:
        info = await store.put("big", _pieces(200))
        most = tracemalloc.get_traced_memory()[1]
        size = 0
        async with await store.get("big") as reader:
            async for chunk in reader:
                assert chunk[0] == size // 100_000 % 251
                size += len(chunk)
        most = max(most, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert info.size == size == 20 * MEGABYTE
    assert await stored(js, store) == (153, 1)
    assert most < 16 * MEGABYTE, most


@check()
async def check_object_got_over_a_lost_connection(ctx: Context) -> None:
    """If the connection is lost twice while an object is read, no byte is lost."""
    _, store = await new_store(ctx)
    data = sample(6 * MEGABYTE)
    await store.put("o", data)
    client = await ctx.connect(js_server(ctx))
    mine = await jetstream_of(client).object_store(store.bucket)
    found = bytearray()
    async with await mine.get("o") as reader:
        async for chunk in reader:
            found += chunk
            if len(found) // len(chunk) in (1, 40):
                await client.force_reconnect()
    assert found == data


async def _interrupted(client: Client, data: bytes, places: list[int]) -> AsyncIterator[bytes]:
    for number, start in enumerate(range(0, len(data), 10_000)):
        if number in places:
            await client.force_reconnect()
        yield data[start : start + 10_000]


@check()
async def check_object_put_over_a_lost_connection(ctx: Context) -> None:
    """If the connection is lost during a put, the object is stored once."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    store = await js.create_object_store(bucket=name_of(ctx), storage="memory")
    data = sample(MEGABYTE)
    await store.put("o", b"what was there before")
    for places in ([20, 60, 99], [99]):
        info = await store.put("o", _interrupted(client, data, places), chunk_size=50_000)
        assert info.chunks == 20
        assert await store.get_bytes("o") == data
        assert await stored(js, store) == (20, 1)


class _Stopped(BaseException):
    pass


def _failing(error: BaseException) -> Iterator[bytes]:
    yield sample(1000)
    raise error


async def _left(ctx: Context, js: JetStream, store: ObjectStore, left: tuple[int, int]) -> None:
    """Wait until the bucket has this many chunks and infos."""

    async def look() -> bool:
        return await stored(js, store) == left

    await until(await ctx.connect(js_server(ctx)), look)


@check()
async def check_object_not_put(ctx: Context) -> None:
    """A failed put leaves no chunks and keeps the previous object."""
    js, store = await new_store(ctx, max_bytes=100_000)
    await store.put("o", b"before")
    odd: Any = [b"data" * 10, "text"]
    table: list[tuple[Any, int, Any]] = [
        (_failing(ValueError("of the user")), 300, ValueError),
        (odd, 300, InvalidValue),
        (sample(200_000), 3000, StoreFailed),
        (_failing(_Stopped()), 300, _Stopped),
    ]
    for data, chunk_size, error in table:
        with raises(error, within=SOON):
            await store.put("o", data, chunk_size=chunk_size)
        await _left(ctx, js, store, (1, 1))
        assert await store.get_bytes("o") == b"before"


@check()
async def check_object_orphans(ctx: Context) -> None:
    """Orphaned chunks are removed unless they are young; all others stay."""
    # Orphans are left by a program that ends during a put, or before it has purged a replaced
    # object; and a killed nats-server 2.15.1 restores some purged messages.
    js, store = await new_store(ctx)
    for name in ("o", "renamed", "deleted"):
        await store.put(name, sample(50), chunk_size=10)
    await store.update_meta("renamed", new_name="new")
    gone = await store.get_info("deleted")
    await store.delete("deleted")
    assert await store.purge_orphans(older_than=0) == 0
    for nuid, count in (("ofNobody", 3), (gone.nuid, 5)):
        for _ in range(count):
            await js.publish(f"$O.{store.bucket}.C.{nuid}", b"chunk")
    assert await store.purge_orphans() == 0
    assert await stored(js, store) == (18, 3)
    assert await store.purge_orphans(older_than=0) == 8
    assert await stored(js, store) == (10, 3)
    for name in ("o", "new"):
        assert await store.get_bytes(name) == sample(50)
    await js.publish(f"$O.{store.bucket}.M.odd", b"{")
    await js.publish(f"$O.{store.bucket}.C.ofAnOddOne", b"chunk")
    with raises(InvalidResponse):
        await store.purge_orphans(older_than=0)
    assert await stored(js, store) == (11, 4)


@check()
async def check_object_deleted_again(ctx: Context) -> None:
    """A second delete or put purges chunks that the first delete left."""
    js, store = await new_store(ctx)
    info = await store.put("o", sample(50), chunk_size=10)
    await store.delete("o")
    for again in (lambda: store.delete("o"), lambda: store.put("o")):
        await js.publish(f"$O.{store.bucket}.C.{info.nuid}", b"chunk")
        assert await stored(js, store) == (1, 1)
        await again()
        assert await stored(js, store) == (0, 1)


@check()
async def check_object_damaged(ctx: Context) -> None:
    """Missing, changed or additional chunks are noticed: a partial object is never complete."""
    js, store = await new_store(ctx)
    stream = await js.stream("OBJ_" + store.bucket)
    for number, missing in enumerate((1, 3, 5)):
        await store.put("o", b"123456789", chunk_size=2)
        await stream.delete_msg(6 * number + missing)
        for _ in range(2):
            with raises(ObjectCorrupt, within=SOON):
                await store.get_bytes("o")
    info = await store.put("o", b"123456789", chunk_size=4)
    chunks = f"$O.{store.bucket}.C.{info.nuid}"
    await js.publish(chunks, b"more")
    assert await store.get_bytes("o") == b"123456789"
    for parts in ([b"1234", b"5678", b"0"], [b"12345", b"6789"], [b"1234", b"567", b"89x"], []):
        await stream.purge(subject=chunks)
        for part in parts:
            await js.publish(chunks, part)
        async with await store.get("o") as reader:
            found: list[bytes] = []
            with raises(ObjectCorrupt, within=SOON):
                async for chunk in reader:
                    found.append(chunk)  # noqa: PERF401 - those that come before the error count
            with raises(ObjectCorrupt, within=SOON):
                await reader.read()
            assert found == parts[:-1]


@check(slow=True)
async def check_object_changed_while_it_is_read(ctx: Context) -> None:
    """An object that is replaced while it is read raises an error at the end."""
    _, store = await new_store(ctx)
    await store.put("o", sample(9 * MEGABYTE))
    async with await store.get("o") as reader:
        await reader.read(10)
        await store.put("o", b"new")
        with raises(ObjectChanged, within=WAIT):
            await reader.read()


@check()
async def check_object_reader_closed(ctx: Context) -> None:
    """A closed reader raises an error instead of returning the end of the object."""
    js, store = await new_store(ctx)
    await store.put("o", sample(100), chunk_size=10)
    reader = await store.get("o")
    assert await reader.read(15) == sample(15)
    await reader.close()
    with raises(InvalidState):
        await reader.read()
    assert await store.get_bytes("o") == sample(100)
    await left_alone(ctx, js, "OBJ_" + store.bucket)


@check(since=(2, 10))
async def check_deleted_object_store(ctx: Context) -> None:
    """If the bucket is deleted during a read, an error is raised, and later puts fail."""
    js, store = await new_store(ctx)
    await store.put("o", sample(6 * MEGABYTE))
    async with await store.get("o") as reader:
        await reader.read(10)
        await js.delete_object_store(store.bucket)
        with raises(BucketNotFound, within=WAIT):
            await reader.read()


# Where it is


@check()
async def check_objects_of_a_domain(ctx: Context) -> None:
    """Objects can be stored in a domain that is reached by its name."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="hub")
    store = await js.create_object_store(bucket=name_of(ctx), storage="memory")
    await store.put("o", sample(5000), chunk_size=1000)
    await store.put("o", sample(6000), chunk_size=1000)
    assert await store.get_bytes("o") == sample(6000)
    assert [info.name for info in await store.list()] == ["o"]
    assert await stored(js, store) == (6, 1)


@check()
async def check_objects_of_another_account(ctx: Context) -> None:
    """Objects can be stored under the prefix of another account, whose subjects are imported."""
    exports = ["$JS.API.>", "$O.>", "$JS.FC.>"]
    imports = [
        {"service": {"account": "A", "subject": "$JS.API.>"}, "to": "fromA.>"},
        {"service": {"account": "A", "subject": "$O.>"}, "to": "fromA.$O.>"},
        {"service": {"account": "A", "subject": "$JS.FC.>"}},
        {"stream": {"account": "A", "subject": "_INBOX.B.>"}},
    ]
    accounts = {
        "A": {
            "jetstream": "enabled",
            "users": [{"user": "a", "password": "a"}],
            "exports": [*({"service": each} for each in exports), {"stream": "_INBOX.B.>"}],
        },
        "B": {"users": [{"user": "b", "password": "b"}], "imports": imports},
    }
    server = ctx.shared_server(jetstream="enabled", accounts=accounts)
    client = await ctx.connect(server, user="b", password="b", inbox_prefix="_INBOX.B")
    guest = jetstream_of(client, prefix="fromA")
    store = await guest.create_object_store(bucket=name_of(ctx), storage="memory")
    await store.put("o", sample(5000), chunk_size=1000)
    assert await store.get_bytes("o") == sample(5000)
    assert [info.name for info in await store.list()] == ["o"]
    owner = jetstream_of(await ctx.connect(server, user="a", password="a"))
    assert await (await owner.object_store(store.bucket)).get_bytes("o") == sample(5000)
