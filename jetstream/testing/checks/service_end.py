"""Services: stop, drain, denied subscriptions, reconnects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.events import ServiceStopped
from jetstream.services.errors import service_error
from jetstream.testing.services import Served, new_service, serve, service_of, settings
from jetstream.testing.streams import pause, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, NoResponders, PermissionDenied
from natsproto.events import Connected
from natsproto.testing.context import WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import ServiceRequest
    from natsproto.subscription import Subscription

_LIMITS: dict[str, Any] = {
    "authorization": {
        "users": [
            {"user": "all", "password": "p"},
            {
                "user": "some",
                "password": "p",
                "permissions": {
                    "publish": ">",
                    "subscribe": {"allow": ["$SRV.>", "check.>", "_INBOX.>"], "deny": ["*.*.no"]},
                },
            },
            {
                "user": "none",
                "password": "p",
                "permissions": {"publish": ">", "subscribe": {"deny": ["$SRV.INFO"]}},
            },
        ]
    }
}


async def _send(served: Served, name: str, count: int) -> Subscription:
    """Send requests without waiting for the answers, which the subscription receives."""
    inbox = served.subject("replies")
    replies = await served.asker.subscribe(inbox)
    for number in range(count):
        await served.asker.publish(served.subject(name), b"%d" % number, reply=inbox)
    await served.asker.flush(WAIT)
    return replies


@check()
async def check_service_stop_answers_everything(ctx: Context) -> None:
    """Requests that were sent before the service stops are all answered."""
    served = await serve(ctx, {"echo": lambda request: request.data})
    replies = await _send(served, "echo", 200)
    await served.stop()
    found = [int((await replies.next(WAIT)).data) for _ in range(200)]
    assert found == list(range(200))
    with raises(NoResponders):
        await served.ask("echo")
    assert served.service.state == "STOPPED"


@check(shares=True)
async def check_service_stop_waits_for_handlers(ctx: Context) -> None:
    """`stop` returns before slow handlers do; `run` and `stopped` wait for them."""
    served = await new_service(ctx)
    hold = [True]

    async def slow(request: ServiceRequest) -> bytes:
        while hold[0]:
            await pause(served.client, 0.01)
        return request.data

    subject = served.subject("slow")
    endpoint = served.service.add_endpoint("slow", slow, subject=subject, concurrency=2)
    await served.run()
    replies = await _send(served, "slow", 5)

    async def begun() -> bool:
        return endpoint.in_progress == 2 and endpoint.pending == 3

    await until(served.asker, begun)
    await served.service.stop()
    assert (served.service.state, endpoint.in_progress) == ("STOPPING", 2)
    hold[0] = False
    await served.ended()
    assert await served.service.stopped(WAIT) is None
    assert sorted([(await replies.next(WAIT)).data for _ in range(5)]) == [
        b"%d" % number for number in range(5)
    ]


@check()
async def check_service_stop_twice(ctx: Context) -> None:
    """Stopping twice is allowed, and so is leaving the block of a stopped service."""
    client = await ctx.client()
    async with service_of(client, **settings(ctx, {})) as service:
        await service.stop()
        await service.stop()
        assert await service.stopped(WAIT) is None
    assert service.state == "STOPPED"
    with raises(InvalidState):
        service.add_endpoint("e")
    with raises(InvalidState):
        await service.start()


@check()
async def check_service_stop_with_an_error(ctx: Context) -> None:
    """The error of `stop` is what `run` raises, `stopped` returns and the last event has."""
    served = await new_service(ctx)
    service = served.service
    reason = PermissionDenied("enough")

    async def end(request: ServiceRequest) -> bytes:
        await service.stop(reason)
        return b"ended"

    service.add_endpoint("end", end, subject=served.subject("end"))
    await served.run()
    assert (await served.ask("end")).data == b"ended"
    with raises(PermissionDenied):
        await served.ended()
    assert await service.stopped(WAIT) is reason
    event = await service.events.next(WAIT)
    assert event == ServiceStopped(service.name, service.id, reason)


@check()
async def check_service_ends_with_its_client(ctx: Context) -> None:
    """A client that is closed ends its services."""
    client = await ctx.client()
    service = service_of(client, **settings(ctx, {}))
    service.add_endpoint("e", subject=f"{ctx.subject}.e")
    await service.start()
    await client.close()
    assert await service.stopped(WAIT) is None
    assert service.state == "STOPPED"


@check()
async def check_service_client_drain_answers_everything(ctx: Context) -> None:
    """A client that drains waits until the requests that have arrived are answered."""
    served = await new_service(ctx)
    client = served.client

    async def work(request: ServiceRequest) -> bytes:
        return request.data

    served.service.add_endpoint("work", work, subject=served.subject("work"))
    await served.service.start()
    replies = await _send(served, "work", 50)
    await client.flush(WAIT)

    async def drain() -> None:
        await served.service.stop()
        await served.service.run()
        await client.drain(WAIT)

    await ctx.start(drain).result()
    found = [int((await replies.next(WAIT)).data) for _ in range(50)]
    assert (found, client.state) == (list(range(50)), "CLOSED")


@check(shares=True)
async def check_service_client_drain_waits_for_handlers(ctx: Context) -> None:
    """A client that drains waits for handlers that are at work, and sends their answers."""
    served = await new_service(ctx)
    hold = [True]

    async def slow(request: ServiceRequest) -> bytes:
        while hold[0]:
            await pause(served.asker, 0.01)
        return request.data

    endpoint = served.service.add_endpoint("slow", slow, subject=served.subject("slow"))
    await served.run()
    replies = await _send(served, "slow", 3)

    async def begun() -> bool:
        return endpoint.in_progress == 1 and endpoint.pending == 2

    await until(served.asker, begun)
    task = ctx.start(served.client.drain, WAIT)

    async def draining() -> bool:
        return endpoint.ended

    await until(served.asker, draining)
    hold[0] = False
    await task.result()
    assert [(await replies.next(WAIT)).data for _ in range(3)] == [b"0", b"1", b"2"]
    await served.ended()


@check()
async def check_service_end_of_block_handles_the_rest(ctx: Context) -> None:
    """The end of the block answers requests that `run` has not handled."""
    served = await new_service(ctx)
    service = served.service
    async with service:
        service.add_endpoint("e", lambda request: request.data, subject=served.subject("e"))
        await served.client.flush(WAIT)
        replies = await _send(served, "e", 20)
    assert service.state == "STOPPED"
    assert [int((await replies.next(WAIT)).data) for _ in range(20)] == list(range(20))


@check()
async def check_service_block_that_fails(ctx: Context) -> None:
    """If the block raises, requests that were not handled are answered with 503."""
    served = await new_service(ctx)
    service = served.service
    replies: Any = None
    try:
        async with service:
            service.add_endpoint("e", lambda request: b"", subject=served.subject("e"))
            await served.client.flush(WAIT)
            replies = await _send(served, "e", 3)
            await served.client.flush(WAIT)
            raise RuntimeError("of the block")
    except RuntimeError:
        pass
    await served.client.flush(WAIT)
    assert await service.stopped(WAIT) is None
    for _ in range(3):
        error = service_error(await replies.next(WAIT))
        assert error is not None
        assert error.code == 503


@check()
async def check_service_loop_that_is_left(ctx: Context) -> None:
    """Requests that a loop has left are answered with 503 at the end of the block."""
    served = await new_service(ctx)
    service = served.service
    async with service:
        endpoint = service.add_endpoint("loop", subject=served.subject("loop"))
        await served.client.flush(WAIT)
        replies = await _send(served, "loop", 3)
        async for request in endpoint:
            await request.respond(b"first")
            break
        await endpoint.next(WAIT)  # and no answer
    assert (await replies.next(WAIT)).data == b"first"
    for _ in range(2):
        error = service_error(await replies.next(WAIT))
        assert error is not None
        assert error.code == 503
    assert service.state == "STOPPED"


@check()
async def check_service_denied_endpoint(ctx: Context) -> None:
    """If the server denies the subject of an endpoint, the service ends, and `run` raises."""
    server = ctx.shared_server(**_LIMITS)
    client = await ctx.connect(server, user="some", password="p")
    service = service_of(client, **settings(ctx, {}))
    service.add_endpoint("fine", lambda request: b"", subject=f"{ctx.subject}.fine")
    await service.start()
    service.add_endpoint("denied", lambda request: b"", subject=f"{ctx.subject}.no")
    task = ctx.start(service.run)
    with raises(PermissionDenied):
        await task.result()
    assert isinstance(await service.stopped(WAIT), PermissionDenied)
    event = await service.events.next(WAIT)
    assert isinstance(event, ServiceStopped)
    assert isinstance(event.error, PermissionDenied)
    other = await ctx.connect(server, user="all", password="p")
    with raises(NoResponders):
        await other.request(f"{ctx.subject}.fine", timeout=WAIT)
    with raises(NoResponders):
        await other.request(f"$SRV.PING.{service.name}", timeout=WAIT)


@check()
async def check_service_denied_monitoring(ctx: Context) -> None:
    """If the server denies a monitoring subject, the service does not start."""
    server = ctx.shared_server(**_LIMITS)
    client = await ctx.connect(server, user="none", password="p")
    service = service_of(client, **settings(ctx, {}))
    service.add_endpoint("e", lambda request: b"", subject=f"{ctx.subject}.e")
    with raises(PermissionDenied):
        await service.start()
    assert isinstance(await service.stopped(WAIT), PermissionDenied)
    other = await ctx.connect(server, user="all", password="p")
    with raises(NoResponders):
        await other.request(f"{ctx.subject}.e", timeout=WAIT)


@check()
async def check_service_after_a_reconnect(ctx: Context) -> None:
    """After the server was restarted, the service answers requests, PING and STATS again."""
    server = ctx.own_server()
    served = await new_service(ctx, server=server)
    served.service.add_endpoint("e", lambda request: b"fine", subject=served.subject("e"))
    await served.run()
    assert (await served.ask("e")).data == b"fine"
    server.kill()
    server.restart()
    while not (await next_event(served.asker, Connected)).again:
        pass

    async def back() -> bool:
        return len(await served.services.ping(served.service.name, stall=0.05)) == 1

    await until(served.asker, back)
    assert (await served.ask("e")).data == b"fine"
    assert (await served.stats_of("e")).num_requests == 2
    await served.stop()


@check()
async def check_service_answers_after_a_reconnect(ctx: Context) -> None:
    """An answer that is given without a connection reaches its sender after the reconnect."""
    served = await new_service(ctx)
    endpoint = served.service.add_endpoint("e", subject=served.subject("e"))
    await served.service.start()
    replies = await _send(served, "e", 1)
    request = await endpoint.next(WAIT)
    await served.client.force_reconnect()
    await request.respond(b"late")
    await served.client.flush(WAIT)
    assert (await replies.next(WAIT)).data == b"late"
    await served.service.stop()
