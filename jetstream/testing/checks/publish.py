"""Publishing with an ack."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream import Scheduled, republished, scheduled
from jetstream.errors import (
    ApiError,
    CounterRefused,
    InvalidResponse,
    MessageNotFound,
    MessageTooLarge,
    NoStreamResponse,
    PublishInDoubt,
    ScheduleRefused,
    StoreFailed,
    TtlDisabled,
    WrongLastMsgId,
    WrongLastSequence,
    WrongStream,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import js_server, name_of, new_stream, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import (
    InvalidHeader,
    InvalidSubject,
    InvalidValue,
    LocalError,
    NotSupported,
    PayloadTooLarge,
    RemoteError,
    TimeoutExpired,
)
from natsproto.testing.context import SOON, WAIT, Context, answer, raises

if TYPE_CHECKING:
    from jetstream import JetStream, Stream


async def _stream(ctx: Context, **config: Any) -> tuple[JetStream, Stream]:
    js = await open_js(ctx)
    return js, await new_stream(ctx, js, **config)


@check()
async def check_js_publish(ctx: Context) -> None:
    """Each publish is acknowledged with its sequence, and is stored by then."""
    js, stream = await _stream(ctx)
    for seq in (1, 2, 3):
        ack = await js.publish(ctx.subject + ".x", b"%d" % seq)
        assert (ack.stream, ack.seq, ack.duplicate) == (stream.name, seq, False)
        assert (await stream.get_msg(seq)).data == b"%d" % seq


@check()
async def check_js_publish_with_headers(ctx: Context) -> None:
    """Headers are stored, along with those of the options."""
    js, stream = await _stream(ctx)
    headers = [("Key", "one"), ("Key", "two")]
    await js.publish(ctx.subject + ".x", b"", headers=headers, msg_id="id-1")
    stored = (await stream.get_msg(1)).headers
    assert stored is not None
    assert stored.get_all("Key") == ["one", "two"]
    assert stored["Nats-Msg-Id"] == "id-1"


@check()
async def check_js_publish_empty_and_large(ctx: Context) -> None:
    """Payloads from empty to max_payload are stored."""
    js, stream = await _stream(ctx)
    for seq, size in enumerate((0, 1, 1024 * 1024), 1):
        await js.publish(ctx.subject + ".x", b"x" * size)
        assert len((await stream.get_msg(seq)).data) == size


@check()
async def check_js_publish_rejected_locally(ctx: Context) -> None:
    """Invalid messages and messages that are too large are not sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    subject = ctx.subject + ".x"
    wrong: list[tuple[type[LocalError], str, dict[str, Any]]] = [
        (InvalidSubject, ctx.subject + ".*", {}),
        (InvalidSubject, "a b", {}),
        (InvalidSubject, "", {}),
        (PayloadTooLarge, subject, {"data": b"x" * (1024 * 1024 + 1)}),
        (InvalidHeader, subject, {"msg_id": "a\r\nb"}),
        (InvalidValue, subject, {"msg_id": 5}),
        (InvalidValue, subject, {"ttl": 0.5}),
        (InvalidValue, subject, {"ttl": "soon"}),
        (InvalidValue, subject, {"expect_last_seq": -1}),
        (InvalidValue, subject, {"expect_last_subject": "s"}),
        (InvalidValue, subject, {"retries": -2}),
        (InvalidValue, subject, {"timeout": -1}),
        (InvalidValue, subject, {"expected_last_seq": 1}),
    ]
    sent = client.stats.out_msgs
    for kind, where, options in wrong:
        with raises(kind):
            await js.publish(where, **options)
    assert client.stats.out_msgs == sent


@check()
async def check_js_publish_duplicate(ctx: Context) -> None:
    """Within the window a message id is stored once; the second is acknowledged as a duplicate."""
    js, stream = await _stream(ctx)
    first = await js.publish(ctx.subject + ".x", b"1", msg_id="id-1")
    again = await js.publish(ctx.subject + ".x", b"1", msg_id="id-1")
    other = await js.publish(ctx.subject + ".x", b"2", msg_id="id-2")
    assert [first.duplicate, again.duplicate, other.duplicate] == [False, True, False]
    assert [first.seq, again.seq, other.seq] == [1, 1, 2]
    assert (await stream.info()).state.messages == 2


@check()
async def check_js_publish_expect_stream(ctx: Context) -> None:
    """expect_stream stores a message only if the subject belongs to that stream."""
    js, stream = await _stream(ctx)
    await js.publish(ctx.subject + ".x", expect_stream=stream.name)
    with raises(WrongStream) as caught:
        await js.publish(ctx.subject + ".x", expect_stream="other")
    assert caught.error.err_code == 10060
    assert (await stream.info()).state.messages == 1


@check()
async def check_js_publish_expect_last_seq(ctx: Context) -> None:
    """A wrong expected sequence fails, and the error has the actual one."""
    js, _ = await _stream(ctx)
    await js.publish(ctx.subject + ".x", expect_last_seq=0)
    await js.publish(ctx.subject + ".x", expect_last_seq=1)
    with raises(WrongLastSequence) as caught:
        await js.publish(ctx.subject + ".x", expect_last_seq=1)
    assert (caught.error.err_code, caught.error.last_seq) == (10071, 2)


@check(since=(2, 11))
async def check_js_publish_expect_last_subject_seq(ctx: Context) -> None:
    """A message is stored only if its subject, or another filter, is at that sequence."""
    js, _ = await _stream(ctx)
    await js.publish(ctx.subject + ".a", expect_last_subject_seq=0)
    await js.publish(ctx.subject + ".b", expect_last_subject_seq=0)
    await js.publish(ctx.subject + ".a", expect_last_subject_seq=1)
    with raises(WrongLastSequence) as caught:
        await js.publish(ctx.subject + ".a", expect_last_subject_seq=1)
    assert caught.error.last_seq == 3
    both = ctx.subject + ".*"
    await js.publish(ctx.subject + ".c", expect_last_subject_seq=3, expect_last_subject=both)
    with raises(WrongLastSequence):
        await js.publish(ctx.subject + ".c", expect_last_subject_seq=3, expect_last_subject=both)


@check()
async def check_js_publish_expectation_is_never_ignored(ctx: Context) -> None:
    """expect_last_subject is rejected if the server is too old for it."""
    js, stream = await _stream(ctx)
    await js.publish(ctx.subject + ".a")
    options: dict[str, Any] = {"expect_last_subject": ctx.subject + ".a"}
    with raises(RemoteError) as caught:
        await js.publish(ctx.subject + ".new", expect_last_subject_seq=0, **options)
    assert isinstance(caught.error, (WrongLastSequence, NotSupported))
    assert (await stream.info()).state.messages == 1


@check()
async def check_js_publish_expect_last_msg_id(ctx: Context) -> None:
    """expect_last_msg_id stores a message only if the last one has that id."""
    js, _ = await _stream(ctx)
    await js.publish(ctx.subject + ".x", msg_id="one")
    await js.publish(ctx.subject + ".x", msg_id="two", expect_last_msg_id="one")
    with raises(WrongLastMsgId) as caught:
        await js.publish(ctx.subject + ".x", expect_last_msg_id="one")
    assert caught.error.err_code == 10070


@check()
async def check_js_publish_to_a_full_stream(ctx: Context) -> None:
    """A stream that is full, or does not accept the message, raises an error."""
    js, _ = await _stream(ctx, max_msgs=1, discard="new", max_msg_size=10)
    with raises(MessageTooLarge):
        await js.publish(ctx.subject + ".x", b"x" * 11)
    await js.publish(ctx.subject + ".x")
    with raises(StoreFailed) as caught:
        await js.publish(ctx.subject + ".x")
    assert caught.error.full


@check(since=(2, 11))
async def check_js_publish_with_ttl(ctx: Context) -> None:
    """A message with a TTL is removed after that time; one with "never" stays."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, allow_msg_ttl=True)
    begin = time.monotonic()
    await js.publish(ctx.subject + ".x", b"short", ttl=1)
    await js.publish(ctx.subject + ".x", b"long", ttl="never")
    assert (await stream.get_msg(1)).data == b"short"

    async def gone() -> bool:
        try:
            await stream.get_msg(1)
        except MessageNotFound:
            return True
        return False

    await until(client, gone)
    assert time.monotonic() - begin > 0.9
    assert (await stream.get_msg(2)).data == b"long"


@check(since=(2, 11))
async def check_js_publish_ttl_rejected(ctx: Context) -> None:
    """A stream without allow_msg_ttl rejects a TTL."""
    js, stream = await _stream(ctx)
    with raises(TtlDisabled) as caught:
        await js.publish(ctx.subject + ".x", ttl=1)
    assert caught.error.err_code == 10166
    assert (await stream.info()).state.messages == 0


@check()
async def check_js_publish_without_a_stream(ctx: Context) -> None:
    """Without a stream a publish fails after two retries, 250 ms apart."""
    js = await open_js(ctx)
    begin = time.monotonic()
    with raises(NoStreamResponse) as caught:
        await js.publish(ctx.subject + ".x")
    took = time.monotonic() - begin
    assert 0.49 < took < SOON, took
    assert caught.error.subject == ctx.subject + ".x"
    with raises(NoStreamResponse, within=0.2):
        await js.publish(ctx.subject + ".x", retries=0)
    with raises(NoStreamResponse, within=1.0):
        await js.publish(ctx.subject + ".x", retries=-1, timeout=0.74)  # before the fourth try


@check()
async def check_js_publish_to_a_stream_created_meanwhile(ctx: Context) -> None:
    """A stream that is created between two attempts stores the message."""
    js, other = await open_js(ctx), await open_js(ctx)
    task = ctx.start(js.publish, ctx.subject + ".x", b"1")
    await new_stream(ctx, other)
    assert (await task.result()).seq == 1


@check()
async def check_js_publish_answered_by_another_client(ctx: Context) -> None:
    """An answer that is not an ack raises an error."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(answer, bob, sub, 3)
    js = jetstream_of(alice)
    for payload in (b"hello", b"{}", b"[]"):
        with raises(InvalidResponse):
            await js.publish(ctx.subject, payload)


@check()
async def check_js_publish_times_out(ctx: Context) -> None:
    """A publish that is not acknowledged is in doubt, and timed out."""
    alice, bob = await ctx.pair()
    await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    js = jetstream_of(alice, timeout=0.2)
    with raises(PublishInDoubt, within=0.5):
        await js.publish(ctx.subject)
    with raises(TimeoutExpired, within=0.4):
        await js.publish(ctx.subject, timeout=0.1)
    async with js.publisher() as window:
        publication = await window.publish(ctx.subject)
        with raises(TimeoutExpired, within=0.5) as caught:
            await publication.result()
    assert isinstance(caught.error, PublishInDoubt)


@check()
async def check_js_publish_without_jetstream(ctx: Context) -> None:
    """The error says if the server has no JetStream."""
    js = jetstream_of(await ctx.client())
    with raises(NoStreamResponse) as caught:
        await js.publish(ctx.subject, retries=0)
    assert "has JetStream disabled" in str(caught.error)


@check(since=(2, 12))
async def check_counters(ctx: Context) -> None:
    """Counters add up, with any number of digits, and list their sources."""
    js, stream = await _stream(ctx, allow_msg_counter=True, allow_direct=True)
    assert await js.add_to_counter(ctx.subject + ".a") == 1
    assert await js.add_to_counter(ctx.subject + ".a", -3) == -2
    assert await js.add_to_counter(ctx.subject + ".b", 10**30) == 10**30
    counter = await stream.get_counter(ctx.subject + ".a")
    assert (counter.value, counter.increment) == (-2, -3)
    values = [each.value for each in await stream.get_counters([ctx.subject + ".>"])]
    assert values == [-2, 10**30]
    for value in (5, 5):  # an increment is added once, however often it is sent
        assert await js.add_to_counter(ctx.subject + ".d", 5, msg_id="id") == value
    with raises(MessageNotFound):
        await stream.get_counter(ctx.subject + ".c")
    with raises(CounterRefused):
        await js.publish(ctx.subject + ".a", b"no increment")


@check(since=(2, 12))
async def check_counters_rejected(ctx: Context) -> None:
    """Only counter streams accept increments; values that are not numbers are not sent."""
    js, stream = await _stream(ctx)
    with raises(CounterRefused):
        await js.add_to_counter(ctx.subject + ".a")
    wrong: list[Any] = [1.5, True, "1"]
    for by in wrong:
        with raises(InvalidValue):
            await js.add_to_counter(ctx.subject + ".a", by)
    assert (await stream.info()).state.messages == 0


@check(since=(2, 12))
async def check_schedule(ctx: Context) -> None:
    """The stream publishes a scheduled message at its time, and not before."""
    js, stream = await _stream(ctx, allow_msg_schedules=True, allow_msg_ttl=True)
    client = await ctx.connect(js_server(ctx))
    at = time.time() + 1
    when = time.strftime("@at %Y-%m-%dT%H:%M:%SZ", time.gmtime(at + 1))
    await js.schedule(ctx.subject + ".plan", b"1", when=when, target=ctx.subject + ".due")

    async def due() -> bool:
        try:
            msg = await stream.get_msg(last_by_subject=ctx.subject + ".due")
        except MessageNotFound:
            return False
        assert msg.data == b"1"
        assert time.time() >= int(at + 1) - 0.05
        return True

    await until(client, due)


@check(since=(2, 15))
async def check_cancel_schedule(ctx: Context) -> None:
    """cancel_schedule publishes a message instead of the schedule, and removes the schedule."""
    js, stream = await _stream(ctx, allow_msg_schedules=True)
    plan, due = ctx.subject + ".plan", ctx.subject + ".due"
    await js.schedule(plan, b"later", when="@at 2099-01-01T00:00:00Z", target=due)
    await js.cancel_schedule(plan, b"now", target=due)
    msg = await stream.get_msg(last_by_subject=due)
    assert msg.data == b"now"
    assert scheduled(msg) == Scheduled(plan, None)
    with raises(MessageNotFound):
        await stream.get_msg(last_by_subject=plan)


@check(since=(2, 15))
async def check_republished(ctx: Context) -> None:
    """Subscribers of republished messages learn where they are stored."""
    js, stream = await _stream(ctx, republish={"src": ">", "dest": "copy.>"})
    client = await ctx.connect(js_server(ctx))
    sub = await client.subscribe("copy." + ctx.subject + ".>")
    await client.flush(WAIT)
    for n in (1, 2):
        await js.publish(ctx.subject + ".a", b"%d" % n, headers={"Nats-Stream": "forged"})
        place = republished(await sub.next(WAIT))
        assert place is not None
        assert (place.stream, place.subject) == (stream.name, ctx.subject + ".a")
        assert (place.seq, place.last_seq, place.size) == (n, n - 1, None)
        bare = await stream.get_msg(n, no_headers=True)
        assert (bare.data, bare.headers, bare.time) == (b"%d" % n, None, place.time)


@check(since=(2, 12))
async def check_schedule_rejected(ctx: Context) -> None:
    """Invalid schedules are rejected, and so are schedules on streams without them."""
    js, _ = await _stream(ctx)
    target = ctx.subject + ".due"
    with raises(ApiError) as caught:
        await js.schedule(ctx.subject + ".plan", when="@every 5m", target=target)
    assert isinstance(caught.error, ScheduleRefused)
    other = name_of(ctx) + "-2"
    two = ctx.subject.replace("check", "checks")
    await new_stream(ctx, js, name=other, subjects=[two + ".>"], allow_msg_schedules=True)
    with raises(ScheduleRefused):
        await js.schedule(two + ".plan", when="99 99 99 * * *", target=two + ".due")
    for when in ("", "every now and then", "0 0 * * *", "@every 5", "@at noon"):
        with raises(InvalidValue):
            await js.schedule(two + ".plan", when=when, target=two + ".due")
    with raises(InvalidSubject):
        await js.schedule(two + ".plan", when="@every 5m", target="a.*")
    with raises(InvalidValue):
        await js.schedule(two + ".plan", when="@every 5m", target=two + ".plan")
