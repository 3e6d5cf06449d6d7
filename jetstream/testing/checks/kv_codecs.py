"""Buckets with codecs of their keys and values (ADR-54)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import CodecError, KeyDeleted, KeyExists, KeyNotFound, WrongLastRevision
from jetstream.kv import AesGcmCodec, Base64Codec, PathCodec
from jetstream.testing.checks.kv import fields_of, new_bucket
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue
from natsproto.testing.context import WAIT, raises

if TYPE_CHECKING:
    from natsproto.testing.context import Context

_SECRET = bytes(range(32))


class Mirrored:
    """A codec of keys without support for wildcards."""

    def encode_key(self, key: str) -> str:
        """Return the key backwards."""
        return key[::-1]

    def decode_key(self, key: str) -> str:
        """Return the key forwards."""
        return key[::-1]


@check()
async def check_kv_codecs_of_keys_and_values(ctx: Context) -> None:
    """Callers see decoded keys and values; the bucket stores encoded ones."""
    _, plain = await new_bucket(ctx, history=5)
    codec = Base64Codec()
    kv = plain.with_codecs(keys=[PathCodec(), codec], values=[AesGcmCodec(_SECRET), codec])
    key, stored = "/my files/ä*", "X3Jvb3Rf.bXkgZmlsZXM.w6Qq"
    assert await kv.create(key, b"1") == 1
    assert await kv.update(key, b"2", 1) == 2
    assert await kv.put(key, memoryview(b"")) == 3
    assert fields_of(await kv.get(key)) == (key, b"", 3, "PUT")
    assert fields_of(await kv.get(key, 1)) == (key, b"1", 1, "PUT")
    assert [fields_of(each)[:2] for each in await kv.history(key)] == [
        (key, b"1"),
        (key, b"2"),
        (key, b""),
    ]
    assert await kv.keys() == [key]
    assert await plain.keys() == [stored]
    assert len(codec.decode_value((await plain.get(stored)).value, stored)) == 12 + 16
    with raises(KeyExists) as exists:
        await kv.create(key, b"")
    with raises(WrongLastRevision) as wrong:
        await kv.update(key, b"", 1)
    assert (exists.error.key, wrong.error.key) == (key, key)
    await kv.delete(key)
    with raises(KeyDeleted) as deleted:
        await kv.get(key)
    assert fields_of(deleted.error.entry) == (key, b"", 4, "DEL")
    with raises(KeyNotFound) as missing:
        await kv.get("/never")
    assert missing.error.key == "/never"
    assert await kv.purge_deletes(0) == 4
    assert await plain.keys() == []


@check()
async def check_kv_codecs_in_watches(ctx: Context) -> None:
    """Filters keep their wildcards, and watches return decoded entries and markers."""
    _, plain = await new_bucket(ctx)
    kv = plain.with_codecs(keys=Base64Codec(), values=AesGcmCodec(_SECRET))
    for key in ("a.x y", "a.b.c", "b.x y"):
        await kv.put(key, key.encode())
    assert await kv.keys("a.*") == ["a.x y"]
    assert await kv.keys(["a.>", "b.x y"]) == ["a.b.c", "a.x y", "b.x y"]
    listed: list[str] = []
    async with await kv.list_keys("*.x y") as lister:
        async for key in lister:
            listed.append(key)  # noqa: PERF401 - blocking views have no asynchronous comprehensions
    assert sorted(listed) == ["a.x y", "b.x y"]
    async with await kv.watch("a.*") as watcher:
        first = await watcher.next(timeout=WAIT)
        assert fields_of(first) == ("a.x y", b"a.x y", 1, "PUT")
        await kv.delete("a.x y")
        assert fields_of(await watcher.next(timeout=WAIT)) == ("a.x y", b"", 4, "DEL")
    async with await kv.watch("b.>", meta_only=True) as watcher:
        assert fields_of(await watcher.next(timeout=WAIT)) == ("b.x y", b"", 3, "PUT")


@check()
async def check_kv_codec_without_wildcards(ctx: Context) -> None:
    """A codec without encode_filter lists and watches all keys or one, but no wildcards."""
    _, plain = await new_bucket(ctx)
    kv = plain.with_codecs(keys=Mirrored())
    await kv.put("ab.c", b"v")
    assert await plain.keys() == ["c.ba"]
    assert await kv.keys() == await kv.keys("ab.c") == ["ab.c"]
    for pattern in ("ab.*", "*.c", "ab.>"):
        with raises(InvalidValue):
            await kv.keys(pattern)
        with raises(InvalidValue):
            await kv.watch(pattern)


@check()
async def check_kv_codec_that_cannot_decode(ctx: Context) -> None:
    """A value that was moved or not encrypted raises CodecError; a watch continues after it."""
    _, plain = await new_bucket(ctx)
    kv = plain.with_codecs(values=AesGcmCodec(_SECRET))
    await kv.put("a", b"v")
    moved = (await plain.get("a")).value
    await plain.put("b", moved)
    await plain.put("c", b"not encrypted")
    await kv.put("d", b"w")
    for key in ("b", "c"):
        with raises(CodecError) as caught:
            await kv.get(key)
        assert caught.error.entry is not None
        assert caught.error.entry.key == key
    async with await kv.watch() as watcher:
        assert (await watcher.next(timeout=WAIT)).value == b"v"
        for key in ("b", "c"):
            with raises(CodecError) as caught:
                await watcher.next(timeout=WAIT)
            assert caught.error.entry is not None
            assert caught.error.entry.key == key
        assert (await watcher.next(timeout=WAIT)).value == b"w"
    keys = plain.with_codecs(keys=Base64Codec())
    with raises(CodecError):
        await keys.keys()
