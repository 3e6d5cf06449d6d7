"""Services: requests, answers, errors, loops and limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import ServiceError
from jetstream.events import RequestFailed
from jetstream.services.errors import service_error
from jetstream.testing.services import new_service, serve
from jetstream.testing.streams import pause, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue, PayloadTooLarge
from natsproto.events import SlowConsumer
from natsproto.testing.context import WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import ServiceRequest


async def _echo(request: ServiceRequest) -> None:
    await request.respond(request.data, headers=request.headers)


@check()
async def check_service_answers(ctx: Context) -> None:
    """A handler answers a request with bytes."""
    served = await serve(ctx, {"echo": _echo})
    assert (await served.ask("echo", b"hello")).data == b"hello"
    assert (await served.ask("echo", b"")).data == b""
    await served.stop()


@check()
async def check_service_answers_with_headers(ctx: Context) -> None:
    """A handler reads the headers of a request, and answers with headers."""
    served = await serve(ctx, {"echo": _echo})
    reply = await served.ask("echo", b"x", headers={"A": ["b", "c"]})
    assert reply.headers is not None
    assert (reply.data, reply.headers.get_all("A")) == (b"x", ["b", "c"])
    await served.stop()


@check()
async def check_service_answers_json(ctx: Context) -> None:
    """JSON is decoded and encoded; a value that cannot be encoded is a 500."""

    async def add(request: ServiceRequest) -> None:
        await request.respond_json({"sum": sum(request.json())})

    async def strange(request: ServiceRequest) -> None:
        await request.respond_json({1, 2})

    served = await serve(ctx, {"add": add, "strange": strange})
    assert (await served.ask("add", b"[1, 2, 3]")).data == b'{"sum":6}'
    error = await served.error_of("strange")
    assert (error.code, error.text.partition(":")[0]) == (500, "TypeError")
    error = await served.error_of("add", b"not JSON")
    assert error.code == 500
    await served.stop()


@check()
async def check_service_handlers_return_answers(ctx: Context) -> None:
    """The result of a handler is the answer: bytes unchanged, other values as JSON."""
    served = await serve(
        ctx,
        {
            "bytes": lambda request: request.data + b"!",
            "json": lambda request: {"size": len(request.data)},
            "text": lambda request: "text",
        },
    )
    assert (await served.ask("bytes", b"x")).data == b"x!"
    assert (await served.ask("json", b"xyz")).data == b'{"size":3}'
    assert (await served.ask("text")).data == b'"text"'
    await served.stop()


@check()
async def check_service_async_handlers_return_answers(ctx: Context) -> None:
    """The result of a coroutine is the answer, too; None means no answer."""

    async def answer(request: ServiceRequest) -> bytes:
        return request.data + b"!"

    async def explicit(request: ServiceRequest) -> None:
        await request.respond(b"explicit")

    served = await serve(ctx, {"answer": answer, "explicit": explicit})
    assert (await served.ask("answer", b"x")).data == b"x!"
    assert (await served.ask("explicit")).data == b"explicit"
    await served.stop()


@check()
async def check_service_several_answers(ctx: Context) -> None:
    """A handler may answer several times."""

    async def count(request: ServiceRequest) -> None:
        for number in range(3):
            await request.respond(b"%d" % number)

    served = await serve(ctx, {"count": count})
    replies = await served.asker.request_many(served.subject("count"), max_msgs=3, timeout=WAIT)
    assert [reply.data for reply in replies] == [b"0", b"1", b"2"]
    await served.stop()


@check()
async def check_service_without_reply_subject(ctx: Context) -> None:
    """A message without a reply subject is handled; answers to it are not sent."""
    seen: list[bytes] = []

    async def note(request: ServiceRequest) -> bytes:
        seen.append(request.data)
        await request.respond(b"nobody")
        return b"nobody"

    served = await serve(ctx, {"note": note})
    await served.asker.publish(served.subject("note"), b"1")
    await served.ask("note", b"2")
    assert seen == [b"1", b"2"]
    stats = await served.stats_of("note")
    assert (stats.num_requests, stats.num_errors) == (2, 0)
    await served.stop()


@check()
async def check_service_answer_too_large(ctx: Context) -> None:
    """An answer above the server's max_payload is a 500."""
    served = await serve(ctx, {"large": lambda request: b"x" * 1_100_000})
    error = await served.error_of("large")
    assert (error.code, error.text.partition(":")[0]) == (500, PayloadTooLarge.__name__)
    await served.stop()


@check()
async def check_service_errors(ctx: Context) -> None:
    """respond_error sends code, text, payload and headers, and counts the error."""

    async def fail(request: ServiceRequest) -> None:
        await request.respond_error(404, "not found", b"details", headers={"A": "b"})

    served = await serve(ctx, {"fail": fail})
    reply = await served.ask("fail")
    error = service_error(reply)
    assert error is not None
    assert (error.code, error.text, error.data) == (404, "not found", b"details")
    assert reply.headers is not None
    assert reply.headers.items() == [
        ("A", "b"),
        ("Nats-Service-Error", "not found"),
        ("Nats-Service-Error-Code", "404"),
    ]
    stats = await served.stats_of("fail")
    assert (stats.num_requests, stats.num_errors, stats.last_error) == (1, 1, "404: not found")
    await served.stop()


@check()
async def check_service_errors_need_code_and_text(ctx: Context) -> None:
    """An error without a code or a text is refused; the request is answered with a 500."""
    refused: list[str] = []

    async def fail(request: ServiceRequest) -> None:
        arguments: Any = request.json()
        try:
            await request.respond_error(*arguments)
        except InvalidValue as error:
            refused.append(error.rule)
            raise

    served = await serve(ctx, {"fail": fail})
    for arguments in (b'["", "text"]', b"[400, null]", b'[400, ""]', b'[null, "text"]'):
        assert (await served.error_of("fail", arguments)).code == 500
    assert refused == ["SERVICE-21", "SERVICE-20", "SERVICE-20", "SERVICE-21"]
    await served.stop()


@check()
async def check_service_handler_raises_service_error(ctx: Context) -> None:
    """A ServiceError of a handler is the answer."""

    async def fail(request: ServiceRequest) -> None:
        raise ServiceError(429, "slow down", b"x", {"Retry-After": "1"})

    served = await serve(ctx, {"fail": fail})
    with raises(ServiceError) as caught:
        await served.services.request(served.subject("fail"))
    error = caught.error
    assert (error.code, error.text, error.data) == (429, "slow down", b"x")
    assert dict(error.headers.items())["Retry-After"] == "1"  # type: ignore[union-attr]
    await served.stop()


@check()
async def check_service_handler_raises(ctx: Context) -> None:
    """Any other exception is a 500, counted, kept as last_error, and reported by an event."""

    async def fail(request: ServiceRequest) -> None:
        raise KeyError("two\nlines")

    served = await serve(ctx, {"fail": fail, "echo": _echo})
    error = await served.error_of("fail")
    assert (error.code, error.text) == (500, "KeyError: 'two\\nlines'")
    assert (await served.ask("echo", b"fine")).data == b"fine"
    stats = await served.stats_of("fail")
    assert (stats.num_errors, stats.last_error) == (1, "KeyError: 'two\\nlines'")
    await served.stop()
    event = await served.service.events.next(WAIT)
    assert isinstance(event, RequestFailed)
    assert (event.endpoint, type(event.error)) == ("fail", KeyError)


@check()
async def check_service_handler_raises_after_the_answer(ctx: Context) -> None:
    """A handler that raises after its answer is counted, and sends no second answer."""

    async def fail(request: ServiceRequest) -> None:
        await request.respond(b"fine")
        raise ValueError("late")

    served = await serve(ctx, {"fail": fail, "echo": _echo})
    subject = served.subject("fail")
    replies = await served.asker.request_many(subject, stall=0.1, timeout=WAIT)
    assert [reply.data for reply in replies] == [b"fine"]
    assert (await served.stats_of("fail")).last_error == "ValueError: late"
    await served.stop()


@check(shares=True)
async def check_service_concurrency(ctx: Context) -> None:
    """An endpoint handles as many requests at once as its concurrency, and no more."""
    at_once = most = 0
    served = await new_service(ctx)

    async def meet(request: ServiceRequest) -> bytes:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        deadline = time.monotonic() + WAIT
        while most < 4 and time.monotonic() < deadline:
            await pause(served.client, 0.01)
        await pause(served.client, 0.01)
        at_once -= 1
        return request.data

    served.service.add_endpoint("meet", meet, subject=served.subject("meet"), concurrency=4)
    await served.run()
    inbox = await served.asker.subscribe(served.subject("replies"))
    for number in range(12):
        data = b"%d" % number
        await served.asker.publish(served.subject("meet"), data, reply=served.subject("replies"))
    replies = [int((await inbox.next(WAIT)).data) for _ in range(12)]
    assert sorted(replies) == list(range(12))
    assert (most, at_once) == (4, 0)
    await served.stop()


@check()
async def check_service_one_request_at_a_time(ctx: Context) -> None:
    """By default an endpoint handles one request after the other, in their order."""
    at_once = most = 0

    async def note(request: ServiceRequest) -> bytes:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        at_once -= 1
        return request.data

    served = await serve(ctx, {"note": note})
    inbox = await served.asker.subscribe(served.subject("replies"))
    for number in range(50):
        data = b"%d" % number
        await served.asker.publish(served.subject("note"), data, reply=served.subject("replies"))
    assert [int((await inbox.next(WAIT)).data) for _ in range(50)] == list(range(50))
    assert most == 1
    await served.stop()


@check()
async def check_service_loop(ctx: Context) -> None:
    """Without a handler, a loop gets the requests; it ends when the service stops."""
    served = await new_service(ctx)
    endpoint = served.service.add_endpoint("loop", subject=served.subject("loop"))
    await served.service.start()
    seen: list[bytes] = []

    async def loop() -> None:
        async for request in endpoint:
            seen.append(request.data)
            await request.respond(request.data + b"!")
            if len(seen) == 3:
                await served.service.stop()

    task = ctx.start(loop)
    for data in (b"1", b"2", b"3"):
        assert (await served.ask("loop", data)).data == data + b"!"
    await task.result()
    assert seen == [b"1", b"2", b"3"]
    assert await served.service.stopped(WAIT) is None
    assert endpoint.stats.num_requests == 3


@check()
async def check_service_next_request(ctx: Context) -> None:
    """Requests can be taken one by one; errors of a loop are those of respond_error."""
    served = await new_service(ctx)
    endpoint = served.service.add_endpoint("next", subject=served.subject("next"))
    await served.service.start()
    inbox = await served.asker.subscribe(served.subject("replies"))
    await served.asker.publish(served.subject("next"), b"1", reply=served.subject("replies"))
    request = await endpoint.next(WAIT)
    assert (request.data, endpoint.in_progress) == (b"1", 1)
    await request.respond_error(400, "bad")
    assert endpoint.in_progress == 0
    reply = await inbox.next(WAIT)
    assert service_error(reply) is not None
    assert endpoint.stats.num_errors == 1
    await served.service.stop()


@check()
async def check_service_decorator(ctx: Context) -> None:
    """The decorator names an endpoint after its function, and returns the function."""
    served = await new_service(ctx)
    group = served.service.add_group(ctx.subject)

    @group.endpoint()
    def double(request: ServiceRequest) -> bytes:
        return request.data * 2

    @group.endpoint("other", subject="third", metadata={"a": "b"})
    def named(request: ServiceRequest) -> bytes:
        return b"third"

    assert (double.__name__, named.__name__) == ("double", "named")
    await served.run()
    assert (await served.ask("double", b"ab")).data == b"abab"
    assert (await served.ask("third")).data == b"third"
    await served.stop()


@check()
async def check_service_pending_limits(ctx: Context) -> None:
    """Requests above the limits of an endpoint get a 503 at once, and a SlowConsumer event."""
    served = await new_service(ctx)
    subject = served.subject("full")
    endpoint = served.service.add_endpoint("full", subject=subject, max_msgs=2)
    await served.service.start()
    inbox = await served.asker.subscribe(served.subject("replies"))
    for number in range(5):
        await served.asker.publish(subject, b"%d" % number, reply=served.subject("replies"))
    await served.asker.flush(WAIT)

    async def arrived() -> bool:
        await served.client.flush(WAIT)
        return endpoint.pending + endpoint.dropped == 5

    await until(served.client, arrived)
    for _ in range(3):
        error = service_error(await inbox.next(WAIT))
        assert error is not None
        assert error.code == 503
    assert (endpoint.pending, endpoint.dropped) == (2, 3)
    event = await next_event(served.client, SlowConsumer)
    assert (event.subject, event.sid > 0) == (subject, True)
    for _ in range(2):
        await (await endpoint.next(WAIT)).respond(b"late")
        assert (await inbox.next(WAIT)).data == b"late"
    assert (endpoint.stats.num_requests, endpoint.stats.num_errors) == (5, 3)
    await served.service.stop()
