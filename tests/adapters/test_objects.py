"""Puts and deletions of objects, canceled at any moment: no chunk is left."""

from __future__ import annotations

import pytest

from jetstream import JetStream


async def subjects(js):
    stream = await js.stream("OBJ_b")
    return (await stream.info(subjects_filter="$O.>")).state.subjects


async def until(runtime, look):
    """Wait until chunks that are deleted in the background are gone."""
    for _ in range(300):
        if await look():
            return
        await runtime.sleep(0.02)
    pytest.fail("chunks are left")


@pytest.mark.rule("OBJ-25")
def test_a_canceled_put(runtime, js_server):
    """A put that is canceled at any time leaves either the complete object or nothing."""

    async def main():
        async with (
            runtime.connect(js_server.url) as client,
            runtime.connect(js_server.url) as other,
        ):
            js = JetStream(client)
            store = await js.create_object_store(bucket="b", storage="memory")

            async def put(name):
                await store.put(name, b"x" * 100, chunk_size=1)

            names = [str(turn) for turn in range(20)]
            for turn, name in enumerate(names):
                await store.put(name, b"before", chunk_size=1)
                putter = runtime.start(lambda name=name: put(name))
                for _ in range(turn):
                    await other.flush()
                await putter.stop()
            sizes = []

            async def nothing_is_left():
                sizes[:] = [len(await store.get_bytes(name)) for name in names]
                return sorted((await subjects(js)).values()) == sorted([1] * 20 + sizes)

            await until(runtime, nothing_is_left)
            assert set(sizes) <= {6, 100}
            await js.delete_object_store("b")

    runtime.run(main)


@pytest.mark.rule("OBJ-24", "OBJ-34")
def test_a_canceled_deletion(runtime, js_server):
    """Either the object exists with all its chunks, or it is deleted and has none."""

    async def main():
        async with (
            runtime.connect(js_server.url) as client,
            runtime.connect(js_server.url) as other,
        ):
            js = JetStream(client)
            store = await js.create_object_store(bucket="b", storage="memory")
            names = [str(turn) for turn in range(12)]
            for turn, name in enumerate(names):
                await store.put(name, b"before", chunk_size=1)
                deleter = runtime.start(lambda name=name: store.delete(name))
                for _ in range(turn // 2):
                    await other.flush()
                await deleter.stop()
            infos = []
            chunks = {}

            async def nothing_is_left():
                infos[:] = await store.list(show_deleted=True)
                chunks.clear()
                chunks.update({"$O.b.C." + each.nuid: each.chunks for each in infos if each.chunks})
                found = await subjects(js)
                return {name: found[name] for name in found if ".C." in name} == chunks

            await until(runtime, nothing_is_left)
            assert set(chunks.values()) <= {6}
            assert [info.chunks for info in infos if info.deleted] == [0] * (12 - len(chunks))
            await js.delete_object_store("b")

    runtime.run(main)
