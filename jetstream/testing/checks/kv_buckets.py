"""Buckets: creating, finding and listing them; mirrors, sources, domains, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import SubjectTransform
from jetstream.errors import (
    ApiError,
    BucketExists,
    BucketNotFound,
    JetStreamNotAvailable,
    KeyExists,
    NotABucket,
    WrongLastRevision,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.kv import fields_of, new_bucket
from jetstream.testing.clusters import CANDIDATE_AFTER, LONGEST, answered, delete_at_end
from jetstream.testing.streams import js_server, name_of, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import NotSupported, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises
from natsproto.testing.server import HOST, free_port

if TYPE_CHECKING:
    from jetstream.kv import KeyValue
    from natsproto.testing.server import Server


async def _copied(ctx: Context, kv: KeyValue, keys: list[str], server: Server) -> None:
    """Wait until the bucket has these keys from another one."""

    async def look() -> bool:
        return await kv.keys() == keys

    await until(await ctx.connect(server), look)


@check()
async def check_kv_buckets(ctx: Context) -> None:
    """Buckets can be created, created again, looked up, updated, listed and deleted."""
    js = await open_js(ctx)
    bucket = name_of(ctx)
    with raises(BucketNotFound, within=SOON):
        await js.key_value(bucket)
    with raises(BucketNotFound):
        await js.update_key_value(bucket=bucket)
    await js.create_key_value(bucket=bucket, storage="memory", history=3)
    kv = await js.create_key_value(bucket=bucket, storage="memory", history=3)
    await kv.put("a", b"v")
    with raises(BucketExists) as caught:
        await js.create_key_value(bucket=bucket, storage="memory", history=4)
    assert caught.error.bucket == bucket
    await js.update_key_value(bucket=bucket, storage="memory", history=4, description="d")
    await js.create_or_update_key_value(bucket=bucket, storage="memory", history=5)
    kv = await js.key_value(bucket)
    assert (kv.bucket, (await kv.get("a")).value) == (bucket, b"v")
    assert bucket in await js.key_value_names()
    [status] = [each for each in await js.key_values() if each.bucket == bucket]
    assert (status.values, status.history, status.backing_store) == (1, 5, "JetStream")
    assert status.bytes == (await kv.status()).bytes > 0
    await js.delete_key_value(bucket)
    for call in (kv.status, kv.info, kv.watch, lambda: js.delete_key_value(bucket)):
        with raises(BucketNotFound):
            await call()
    assert bucket not in await js.key_value_names()


@check()
async def check_kv_configuration(ctx: Context) -> None:
    """The stream of a bucket is configured as ADR-8 specifies."""
    js, kv = await new_bucket(ctx, history=5, ttl=60.0, max_value_size=100, max_bytes=5000)
    config = (await js.stream("KV_" + kv.bucket)).cached_info.config
    assert config.subjects == [f"$KV.{kv.bucket}.>"]
    assert (config.max_msgs_per_subject, config.max_age, config.duplicate_window) == (5, 60, 60)
    assert (config.discard, config.storage, config.num_replicas) == ("new", "memory", 1)
    assert (config.max_msg_size, config.max_bytes) == (100, 5000)
    assert (config.max_msgs, config.retention, config.deny_purge) == (-1, "limits", False)
    assert config.allow_rollup_hdrs
    assert config.deny_delete
    assert config.allow_direct
    found = await kv.info()
    assert (found.bucket, found.history, found.ttl, found.max_bytes) == (kv.bucket, 5, 60.0, 5000)
    with raises(ApiError):
        await kv.put("a", b"v" * 101)


@check(since=(2, 11))
async def check_kv_configuration_given_back(ctx: Context) -> None:
    """The configuration of a bucket can be changed and passed to an update."""
    republish = {"src": f"$KV.{name_of(ctx)}.>", "dest": f"{ctx.subject}.>"}
    js, kv = await new_bucket(
        ctx,
        history=2,
        description="settings",
        compression=True,
        metadata={"owner": "me"},
        republish=republish,
        limit_marker_ttl=5.0,
        storage="file",
    )
    await js.update_key_value(await kv.info(), history=9)
    status = await kv.status()
    assert (status.history, status.is_compressed, status.limit_marker_ttl) == (9, True, 5.0)
    assert status.metadata["owner"] == "me"
    found = status.config
    assert found.republish is not None
    assert found.republish.dest == f"{ctx.subject}.>"
    await js.create_key_value(found)


@check()
async def check_kv_old_servers(ctx: Context) -> None:
    """Fields that the server is too old for are rejected by name."""
    js = await open_js(ctx)
    version = js_server(ctx).version
    newer: list[tuple[dict[str, Any], tuple[int, ...]]] = [
        ({"compression": True}, (2, 10)),
        ({"metadata": {"a": "b"}}, (2, 10)),
        ({"sources": [{"name": "other"}]}, (2, 10)),
        ({"limit_marker_ttl": 1.0}, (2, 11)),
    ]
    for field, since in newer:
        if version >= since:
            await js.create_or_update_key_value(bucket=f"{name_of(ctx)}-{next(iter(field))}")
            continue
        with raises(NotSupported) as caught:
            await js.create_key_value(bucket=name_of(ctx), storage="memory", **field)
        assert next(iter(field)) in str(caught.error)


@check()
async def check_kv_not_a_bucket(ctx: Context) -> None:
    """A stream that only has the name of a bucket is rejected."""
    js = await open_js(ctx)
    await js.create_stream(name="KV_" + name_of(ctx), subjects=[ctx.subject], storage="memory")
    with raises(NotABucket):
        await js.key_value(name_of(ctx))


@check()
async def check_kv_mirror(ctx: Context) -> None:
    """A mirror is read with the revisions of its origin, and writes go to the origin."""
    js, kv = await new_bucket(ctx)
    await kv.put("a", b"1")
    name = kv.bucket + "-mirror"
    mirror = await js.create_key_value(bucket=name, storage="memory", mirror={"name": kv.bucket})
    await _copied(ctx, mirror, ["a"], js_server(ctx))
    assert fields_of(await mirror.get("a")) == ("a", b"1", 1, "PUT")
    assert (await mirror.get("a", 1)).bucket == name
    async with await mirror.watch() as watcher:
        assert [entry.key async for entry in watcher.initial()] == ["a"]
        assert await mirror.put("b", b"2") == 2
        assert fields_of(await watcher.next(WAIT)) == ("b", b"2", 2, "PUT")
    assert sorted(await kv.keys()) == ["a", "b"]
    assert name in await js.key_value_names()
    found = await mirror.info()
    assert found.mirror is not None
    assert found.mirror.name == "KV_" + kv.bucket
    assert (await (await js.key_value(name)).get("a")).value == b"1"


@check(since=(2, 10))
async def check_kv_sources(ctx: Context) -> None:
    """A bucket gets the keys of others, and of streams, besides its own."""
    js, kv = await new_bucket(ctx)
    await kv.put("a", b"1")
    await js.create_stream(name=name_of(ctx), subjects=[ctx.subject + ".>"], storage="memory")
    await js.publish(ctx.subject + ".b", b"2")
    name = kv.bucket + "-sourced"
    moved = SubjectTransform(src=ctx.subject + ".>", dest=f"$KV.{name}.from.>")
    sourced = await js.create_key_value(
        bucket=name,
        storage="memory",
        sources=[
            {"name": kv.bucket},
            {"name": name_of(ctx), "subject_transforms": [moved]},
        ],
    )
    await sourced.put("own", b"3")
    await _copied(ctx, sourced, ["a", "from.b", "own"], js_server(ctx))
    assert (await sourced.get("a")).value == b"1"
    assert (await sourced.get("from.b")).value == b"2"
    await js.update_key_value(await sourced.info(), history=2)


@check()
async def check_kv_domain(ctx: Context) -> None:
    """A bucket in a domain works; the domain is part of the subject to publish to."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="hub")
    kv = await js.create_key_value(bucket=name_of(ctx), storage="memory")
    async with await kv.watch() as watcher:
        assert await kv.put("a", b"1") == 1
        assert (await watcher.next(WAIT)).revision == 1
        assert await kv.delete("a") == 2
        assert (await watcher.next(WAIT)).revision == 2
    assert await kv.create("a", b"2") == 3
    assert (await kv.get("a")).value == b"2"
    assert await kv.keys() == ["a"]


@check(slow=True)
async def check_kv_across_a_leaf_node(ctx: Context) -> None:
    """A bucket of the hub can be used from a leaf by its domain, and by a mirror on the leaf."""
    port = free_port()
    hub = ctx.own_server(jetstream={"domain": "hub"}, leafnodes={"listen": f"{HOST}:{port}"})
    remotes = [{"url": f"nats://{HOST}:{port}"}]
    leaf = ctx.own_server(jetstream={"domain": "leaf"}, leafnodes={"remotes": remotes})
    kv = await (await open_js(ctx, hub)).create_key_value(bucket=name_of(ctx), storage="memory")
    await kv.put("a", b"1")
    client = await ctx.connect(leaf)
    far = jetstream_of(client, domain="hub", timeout=0.5)

    async def reached() -> bool:
        try:
            await far.account_info()
        except (TimeoutExpired, JetStreamNotAvailable):
            return False
        return True

    await until(client, reached)
    distant = await far.key_value(kv.bucket)
    assert (await distant.get("a")).value == b"1"
    async with await distant.watch(updates_only=True) as watcher:
        assert await distant.put("b", b"2") == 2
        assert fields_of(await watcher.next(WAIT)) == ("b", b"2", 2, "PUT")
    mirror = await jetstream_of(client).create_key_value(
        bucket="copy",
        storage="memory",
        mirror={"name": kv.bucket, "external": {"api": "$JS.hub.API"}},
    )
    await _copied(ctx, mirror, ["a", "b"], leaf)
    assert await mirror.put("c", b"3") == 3
    assert await mirror.delete("a") == 4
    await _copied(ctx, mirror, ["b", "c"], leaf)
    assert await kv.keys() == ["b", "c"]


@check()
async def check_kv_of_another_account(ctx: Context) -> None:
    """A bucket of an account that exports its API and its keys under a prefix works (ADR-19)."""
    accounts = {
        "A": {
            "jetstream": "enabled",
            "users": [{"user": "a", "password": "a"}],
            "exports": [{"service": "$JS.API.>"}, {"service": "$KV.>"}, {"stream": "forI.>"}],
        },
        "I": {
            "users": [{"user": "i", "password": "i"}],
            "imports": [
                {"service": {"account": "A", "subject": "$JS.API.>"}, "to": "fromA.>"},
                {"service": {"account": "A", "subject": "$KV.>"}, "to": "fromA.$KV.>"},
                {"stream": {"account": "A", "subject": "forI.>"}},
            ],
        },
    }
    server = ctx.shared_server(jetstream="enabled", accounts=accounts)
    owner = jetstream_of(await ctx.connect(server, user="a", password="a"))
    client = await ctx.connect(server, user="i", password="i", inbox_prefix="forI")
    guest = jetstream_of(client, prefix="fromA")
    kv = await guest.create_key_value(bucket=name_of(ctx), storage="memory")
    await kv.put("a", b"1")
    own = await owner.key_value(kv.bucket)
    await own.update("a", b"2", 1)
    assert (await kv.get("a")).value == b"2"
    async with await kv.watch() as watcher:
        assert [entry.revision async for entry in watcher.initial()] == [2]
        await own.purge("a")
        assert fields_of(await watcher.next(WAIT)) == ("a", b"", 3, "PURGE")


@check(longest=LONGEST)
async def check_kv_in_a_cluster(ctx: Context) -> None:
    """With three replicas, conflicts with any error code and deleted keys are handled."""
    cluster = ctx.shared_cluster()
    await delete_at_end(ctx, cluster, "KV_" + name_of(ctx))
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    config: dict[str, Any] = {"bucket": name_of(ctx), "replicas": 3, "storage": "memory"}
    kv = await answered(client, lambda: js.create_key_value(**config))
    assert await kv.create("a", b"1") == 1
    with raises(KeyExists):
        await kv.create("a", b"2")
    with raises(WrongLastRevision):
        await kv.update("a", b"2", 5)
    assert await kv.delete("a", last=1) == 2

    async def recreate() -> bool:
        # Any replica may answer a read, and may lag behind for a moment.
        try:
            await kv.create("a", b"3")
        except KeyExists:
            return False
        return True

    await until(client, recreate)
    async with await kv.watch("a") as watcher:
        # The replica with the watcher's consumer may lag behind for a moment, too.
        seen = fields_of(await watcher.next(WAIT))
        while seen in (("a", b"1", 1, "PUT"), ("a", b"", 2, "DEL")):
            seen = fields_of(await watcher.next(WAIT))
        assert seen == ("a", b"3", 3, "PUT"), seen
