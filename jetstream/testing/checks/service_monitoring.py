"""Services: PING, INFO, STATS and the client that asks for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.errors import ServiceError
from jetstream.events import ResponseTruncated, StatsFailed
from jetstream.schema.timestamp import Timestamp
from jetstream.testing.service_schema import SCHEMAS, validate
from jetstream.testing.services import (
    Served,
    new_service,
    serve,
    service_of,
    services_of,
    settings,
)
from jetstream.testing.streams import pause, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidName, InvalidValue, NoResponders
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import ServiceRequest


def _nothing(request: ServiceRequest) -> bytes:
    return b""


async def _raw(served: Served, verb: str, *path: str) -> dict[str, Any]:
    """Return the response of an instance, validated by its schema."""
    reply = await served.asker.request(".".join(["$SRV", verb, *path]), timeout=WAIT)
    found: dict[str, Any] = json.loads(reply.data)
    validate(found, SCHEMAS[verb])
    return _without_stop(found)


def _without_stop(found: dict[str, Any]) -> dict[str, Any]:
    """Return the response without the endpoint `stop`, whose time may be added after its answer."""
    if "endpoints" in found:
        found["endpoints"] = [each for each in found["endpoints"] if each["name"] != "stop"]
    return found


async def _by_all_paths(ctx: Context, verb: str) -> tuple[Served, dict[str, Any]]:
    """Ask by name and id, by name, and all services; assert that the response is the same."""
    served = await serve(ctx, {"e": _nothing}, metadata={"a": "b"}, description="Does it.")
    name, id = served.service.name, served.service.id
    found = await _raw(served, verb, name, id)
    assert await _raw(served, verb, name) == found
    replies = await served.asker.request_many("$SRV." + verb, stall=0.15, timeout=WAIT)
    assert found in [_without_stop(json.loads(reply.data)) for reply in replies]
    assert (found["name"], found["id"], found["version"]) == (name, id, "1.2.3")
    assert found["metadata"] == {"a": "b"}
    return served, found


@check()
async def check_service_ping(ctx: Context) -> None:
    """PING is answered to all, by name and by id, with the JSON of ADR-32."""
    served, found = await _by_all_paths(ctx, "PING")
    assert list(found) == ["type", "name", "id", "version", "metadata"]
    await served.stop()


@check()
async def check_service_info(ctx: Context) -> None:
    """INFO is answered to all, by name and by id, with the JSON of ADR-32."""
    served, found = await _by_all_paths(ctx, "INFO")
    assert found["description"] == "Does it."
    assert found["endpoints"][0] == {
        "name": "e",
        "subject": served.subject("e"),
        "queue_group": "q",
        "metadata": {},
    }
    await served.stop()


@check()
async def check_service_stats(ctx: Context) -> None:
    """STATS is answered to all, by name and by id, with the JSON of ADR-32."""
    served, found = await _by_all_paths(ctx, "STATS")
    assert found["endpoints"][0] == {
        "name": "e",
        "subject": served.subject("e"),
        "queue_group": "q",
        "num_requests": 0,
        "num_errors": 0,
        "last_error": "",
        "processing_time": 0,
        "average_processing_time": 0,
    }
    await served.stop()


@check()
async def check_service_empty_metadata(ctx: Context) -> None:
    """Without metadata and description, responses contain an empty object and an empty text."""
    served = await serve(ctx, {"e": _nothing})
    name, id = served.service.name, served.service.id
    for verb in ("PING", "INFO", "STATS"):
        assert (await _raw(served, verb, name, id))["metadata"] == {}
    info = await _raw(served, "INFO", name, id)
    assert (info["description"], info["endpoints"][0]["metadata"]) == ("", {})
    await served.stop()


@check()
async def check_service_two_instances_respond(ctx: Context) -> None:
    """All instances of a name respond to PING, INFO and STATS: they are in no queue group."""
    first = await serve(ctx, {"e": _nothing})
    second = await serve(ctx, {"e": _nothing})
    name, ids = first.service.name, {first.service.id, second.service.id}
    services = first.services
    for found in (
        await services.ping(name),
        await services.info(name),
        await services.stats(name),
    ):
        assert {each.id for each in found} == ids
    assert ids <= {each.id for each in await services.ping()}
    [one] = await services.ping(name, second.service.id)
    assert one.id == second.service.id
    await first.stop()
    await second.stop()


@check()
async def check_service_other_monitoring_subjects(ctx: Context) -> None:
    """Another verb, name, id, or case of the subject has no responders."""
    served = await serve(ctx, {"e": _nothing})
    name, id = served.service.name, served.service.id
    for subject in (
        f"$SRV.PONG.{name}",
        f"$SRV.ping.{name}.{id}",
        f"$SRV.PING.{name}.other",
        f"$SRV.PING.{name}-other",
        f"$SRV.PING..{id}".replace("..", "."),
        f"$srv.PING.{name}",
    ):
        with raises(NoResponders):
            await served.asker.request(subject, timeout=WAIT)
    await served.stop()


@check()
async def check_service_prefix(ctx: Context) -> None:
    """The prefix of the monitoring subjects can be replaced."""
    served = await serve(ctx, {"e": _nothing}, prefix=f"{ctx.subject}.SRV")
    services = services_of(served.asker, prefix=f"{ctx.subject}.SRV")
    assert [each.id for each in await services.ping()] == [served.service.id]
    assert len(await served.services.ping(served.service.name)) == 0
    await served.stop()


@check()
async def check_service_counts(ctx: Context) -> None:
    """Requests and errors are counted, and times are whole nanoseconds with their average."""

    async def work(request: ServiceRequest) -> bytes:
        if request.data == b"bad":
            raise ServiceError(400, "bad input")
        return b""

    served = await serve(ctx, {"work": work, "idle": _nothing})
    for data in (b"", b"bad", b"", b""):
        await served.ask("work", data)

    async def timed() -> bool:  # a handler may return after its answer has arrived
        return bool((await served.stats_of("work")).processing_time > 0)

    await until(served.asker, timed)
    found = await _raw(served, "STATS", served.service.name, served.service.id)
    work_stats, idle = found["endpoints"][:2]
    assert (work_stats["num_requests"], work_stats["num_errors"]) == (4, 1)
    assert work_stats["last_error"] == "400: bad input"
    assert work_stats["average_processing_time"] == work_stats["processing_time"] // 4
    assert (idle["num_requests"], idle["processing_time"]) == (0, 0)
    await served.stop()


@check()
async def check_service_started(ctx: Context) -> None:
    """`started` is the time of the start in UTC."""
    served = await serve(ctx, {"e": _nothing})
    [found] = await served.services.stats(served.service.name)
    assert found.started is not None
    clock = Timestamp(0).datetime().now(Timestamp(0).datetime().tzinfo).timestamp()
    assert abs(clock - found.started.ns / 1e9) < 60
    await served.stop()


@check()
async def check_service_reset(ctx: Context) -> None:
    """`reset` sets the statistics to zero, even while requests are handled."""
    served = await new_service(ctx)
    service = served.service

    async def reset(request: ServiceRequest) -> bytes:
        service.reset()
        return b""

    async def fail(request: ServiceRequest) -> None:
        raise ValueError

    service.add_endpoint("reset", reset, subject=served.subject("reset"))
    service.add_endpoint("fail", fail, subject=served.subject("fail"))
    await served.run()
    [before] = await served.services.stats(service.name)
    await served.ask("fail")
    assert (await served.stats_of("fail")).num_errors == 1
    await served.ask("reset")
    [after] = await served.services.stats(service.name)
    assert before.started is not None
    assert after.started is not None
    assert after.started > before.started
    for each in after.endpoints:
        counts = (each.num_requests, each.num_errors, each.last_error, each.processing_time)
        assert counts == (0, 0, "", 0.0)
    await served.ask("fail")
    assert (await served.stats_of("fail")).num_requests == 1
    await served.stop()


@check()
async def check_service_stats_data(ctx: Context) -> None:
    """STATS has the data that the service's function returns for each endpoint."""

    async def data(endpoint: Any) -> Any:
        return {"name": endpoint.name, "requests": endpoint.stats.num_requests}

    served = await serve(ctx, {"a": _nothing, "b": _nothing}, stats_data=data)
    await served.ask("b")
    found = await _raw(served, "STATS", served.service.name, served.service.id)
    assert [each["data"] for each in found["endpoints"][:2]] == [
        {"name": "a", "requests": 0},
        {"name": "b", "requests": 1},
    ]
    await served.stop()
    stats = await served.service.stats()
    assert stats.endpoints[1].data == {"name": "b", "requests": 1}


@check()
async def check_service_stats_data_fails(ctx: Context) -> None:
    """If that function raises, or its data is not JSON, STATS has none, and events report why."""

    async def data(endpoint: Any) -> Any:
        if endpoint.name == "a":
            raise ValueError("no data")
        return {1, 2} if endpoint.name == "b" else None

    served = await serve(ctx, {"a": _nothing, "b": _nothing}, stats_data=data)
    found = await _raw(served, "STATS", served.service.name, served.service.id)
    assert not any("data" in each for each in found["endpoints"])
    await served.stop()
    events = [await served.service.events.next(WAIT) for _ in range(2)]
    assert [each.endpoint for each in events if isinstance(each, StatsFailed)] == ["a", "b"]


@check()
async def check_service_responses_above_max_payload(ctx: Context) -> None:
    """INFO and STATS above max_payload are truncated, still valid, and reported by events."""

    async def data(endpoint: Any) -> Any:
        return "x" * 1000

    server = ctx.own_server(max_payload=2048)
    served = await new_service(ctx, server=server, stats_data=data, metadata={"m": "x" * 1000})
    group = served.service.add_group(ctx.subject)
    for number in range(50):
        group.add_endpoint("e%d" % number, _nothing, metadata={"k": "x" * 100})
    await served.run()
    path = (served.service.name, served.service.id)
    info = await _raw(served, "INFO", *path)
    assert 0 < len(info["endpoints"]) < 50
    assert (info["endpoints"][0]["name"], info["metadata"]) == ("e0", {})
    stats = await _raw(served, "STATS", *path)
    assert 0 < len(stats["endpoints"]) < 50
    assert (await _raw(served, "PING", *path))["metadata"] == {"m": "x" * 1000}
    await served.stop()
    events = [await served.service.events.next(WAIT) for _ in range(2)]
    shown = [(each.verb, each.left_out) for each in events if isinstance(each, ResponseTruncated)]
    assert shown == [("INFO", "endpoints"), ("STATS", "endpoints")]


@check()
async def check_service_stats_data_without_run(ctx: Context) -> None:
    """If no call could run that function, STATS is answered at once, without data."""
    client = await ctx.client()
    calls: list[str] = []

    def record(endpoint: Any) -> None:
        calls.append(endpoint.name)

    options = settings(ctx, {"stats_data": record})
    service = service_of(client, **options)
    service.add_endpoint("e", subject=f"{ctx.subject}.e")
    await service.start()
    [found] = await services_of(client).stats(service.name)  # this client answers its request
    assert (found.endpoints[0].data, calls) == (None, [])
    await service.stop()


@check(shares=True)
async def check_service_responds_while_handlers_are_busy(ctx: Context) -> None:
    """PING, INFO and STATS are answered while every handler is busy."""
    served = await new_service(ctx)
    busy: list[bool] = [True]

    async def work(request: ServiceRequest) -> bytes:
        while busy[0]:
            await pause(served.client, 0.01)
        return b"done"

    served.service.add_endpoint("work", work, subject=served.subject("work"))
    await served.run()
    inbox = await served.asker.subscribe(served.subject("replies"))
    await served.asker.publish(served.subject("work"), reply=served.subject("replies"))
    name, id = served.service.name, served.service.id

    async def begun() -> bool:
        return bool((await served.stats_of("work")).num_requests == 1)

    await until(served.asker, begun)
    assert len(await served.services.ping(name, id, timeout=SOON)) == 1
    assert len(await served.services.info(name, id, timeout=SOON)) == 1
    busy[0] = False
    assert (await inbox.next(WAIT)).data == b"done"
    await served.stop()


@check()
async def check_service_discovery(ctx: Context) -> None:
    """Discovery finds no services if there are none, measures times, and checks its arguments."""
    served = await serve(ctx, {"e": _nothing})
    services, name = served.services, served.service.name
    nothing = await services.ping(name + "-other")
    assert (len(nothing), nothing.invalid, nothing.rtts) == (0, [], [])
    found = await services.ping(name)
    assert (len(found), found[0].id) == (1, served.service.id)
    assert 0.0 < found.rtts[0] < WAIT
    for call, kind in [
        (services.ping("", "id"), InvalidValue),
        (services.info("a.b"), InvalidName),
        (services.stats("a b"), InvalidName),
    ]:
        with raises(kind):
            await call
    await served.stop()


@check()
async def check_service_discovery_of_strange_responses(ctx: Context) -> None:
    """Responses that cannot be decoded are reported, and do not hide the others."""
    served = await serve(ctx, {"e": _nothing})
    name = served.service.name
    liar = await ctx.client()
    sub = await liar.subscribe(f"$SRV.PING.{name}")
    await liar.flush(WAIT)

    async def lie() -> None:
        msg = await sub.next(WAIT)
        await liar.publish(msg.reply, b"not JSON")
        await liar.publish(msg.reply, b'{"type":"io.nats.micro.v1.ping_response","name":7}')
        await liar.flush(WAIT)

    task = ctx.start(lie)
    found = await served.services.ping(name)
    await task.result()
    assert [each.id for each in found] == [served.service.id]
    assert len(found.invalid) == 2
    await served.stop()


@check()
async def check_service_requests_raise_service_errors(ctx: Context) -> None:
    """Services.request returns the answer, or raises the error that it is."""

    async def fail(request: ServiceRequest) -> None:
        raise ServiceError(404, "not found")

    served = await serve(ctx, {"fail": fail, "fine": lambda request: b"fine"})
    assert (await served.services.request(served.subject("fine"))).data == b"fine"
    with raises(ServiceError) as caught:
        await served.services.request(served.subject("fail"), b"x", headers={"A": "b"})
    assert (caught.error.code, caught.error.text) == (404, "not found")
    with raises(NoResponders):
        await served.services.request(served.subject("nothing"))
    await served.stop()
