"""Services: names, versions, groups, queue groups, metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.testing.services import new_service, serve, service_of, settings
from jetstream.testing.suite import check
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue, LocalError, NoResponders
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import ServiceRequest
    from jetstream.testing.services import Served


def _name(request: ServiceRequest) -> bytes:
    return request.subject.encode()


async def _refused(ctx: Context, kind: type[LocalError], **options: Any) -> None:
    client = await ctx.client()
    sent = client.stats.out_msgs
    with raises(kind):
        service_of(client, **settings(ctx, options))
    assert client.stats.out_msgs == sent


@check()
async def check_service_names_refused(ctx: Context) -> None:
    """A service name that is empty or has a space, dot or wildcard is rejected."""
    for name in ("", "a b", "a.b", "a>", "*", "a\r\nb", "\u00fc"):
        await _refused(ctx, InvalidName, name=name)


@check()
async def check_service_versions_refused(ctx: Context) -> None:
    """A version that is not a semantic version is rejected."""
    for version in ("", "1", "1.0", "v1.0.0", "1.0.0-", "01.0.0", "1.0.0+a+b"):
        await _refused(ctx, InvalidValue, version=version)


@check()
async def check_service_settings_refused(ctx: Context) -> None:
    """Queue groups, metadata, descriptions and prefixes are checked before anything is sent."""
    await _refused(ctx, InvalidSubject, queue_group="a b")
    await _refused(ctx, InvalidValue, metadata={"a": 1})
    await _refused(ctx, InvalidValue, description=None)
    await _refused(ctx, InvalidValue, stats_data=b"")
    await _refused(ctx, InvalidSubject, prefix="$SRV.>")


@check()
async def check_service_endpoints_refused(ctx: Context) -> None:
    """Names, subjects, queue groups and metadata of endpoints are checked, and so are groups."""
    served = await new_service(ctx)
    service = served.service
    await service.start()
    wrong: list[tuple[type[LocalError], str, dict[str, Any]]] = [
        (InvalidName, "a b", {}),
        (InvalidName, "", {}),
        (InvalidName, "a.b", {}),
        (InvalidSubject, "a", {"subject": "a b"}),
        (InvalidSubject, "a", {"subject": "a.>.b"}),
        (InvalidSubject, "a", {"queue_group": "a b"}),
        (InvalidValue, "a", {"metadata": {"a": 1}}),
        (InvalidValue, "a", {"concurrency": 0}),
        (InvalidValue, "a", {"handler": b""}),
    ]
    for kind, name, options in wrong:
        with raises(kind):
            service.add_endpoint(name, **options)
    for group in ("a.>", ">", "a b", "a..b"):
        with raises(InvalidSubject):
            service.add_group(group)
    assert service.info().endpoints == []
    await service.stop()


@check()
async def check_service_groups(ctx: Context) -> None:
    """Groups prefix the subjects of their endpoints: none, empty, one, and nested ones."""
    served = await new_service(ctx)
    service = served.service
    service.add_endpoint("none", _name, subject=served.subject("none"))
    empty = service.add_group("")
    empty.add_endpoint("empty", _name, subject=served.subject("empty"))
    outer = empty.add_group(ctx.subject)
    outer.add_endpoint("outer", _name)
    inner = outer.add_group("g").add_group("h.i")
    inner.add_endpoint("inner", _name)
    inner.add_endpoint("named", _name, subject="other.*")
    await served.run()
    for name in ("none", "empty", "outer", "g.h.i.inner", "g.h.i.other.x"):
        assert (await served.ask(name)).data == served.subject(name).encode()
    [info] = await served.services.info(service.name, service.id)
    subjects = {each.name: each.subject for each in info.endpoints}
    assert subjects["inner"] == f"{ctx.subject}.g.h.i.inner"
    assert subjects["named"] == f"{ctx.subject}.g.h.i.other.*"
    await served.stop()


@check()
async def check_service_queue_groups(ctx: Context) -> None:
    """The queue group is that of the endpoint, the group, the service, or `q`."""
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
        ({}, {}, {}, "q"),
        ({"queue_group": "s"}, {}, {}, "s"),
        ({"queue_group": "s"}, {"queue_group": "g"}, {}, "g"),
        ({"queue_group": "s"}, {"queue_group": "g"}, {"queue_group": "e"}, "e"),
        ({"queue_group": "s"}, {"queue_group": ""}, {"queue_group": ""}, "s"),
        ({"queue_group": "s"}, {"queue_group": None}, {}, ""),
        ({"queue_group": None}, {}, {}, ""),
        ({}, {}, {"queue_group": None}, ""),
        ({"queue_group": None}, {}, {"queue_group": "e"}, "e"),
    ]
    for of_service, of_group, of_endpoint, expected in cases:
        served = await new_service(ctx, **of_service)
        group = served.service.add_group(ctx.subject, **of_group)
        group.add_endpoint("e", **of_endpoint)
        await served.service.start()
        [info] = await _info(served)
        assert info.endpoints[0].queue_group == expected
        await served.service.stop()


async def _info(served: Served) -> Any:
    """Return INFO of a service that no task runs; on a single thread, its client has to read."""
    asker = served.asker
    inbox = served.subject("info")
    sub = await asker.subscribe(inbox)
    name = served.service.name
    await asker.publish(f"$SRV.INFO.{name}.{served.service.id}", reply=inbox)
    await asker.flush(WAIT)
    await served.client.flush(WAIT)
    await sub.next(WAIT)
    await sub.unsubscribe()
    return [served.service.info()]


async def _two(ctx: Context, first: dict[str, Any], second: dict[str, Any]) -> list[Served]:
    """Return two instances with the endpoint `e`, which answers with the id of the instance."""
    both = [await new_service(ctx) for _ in range(2)]
    for served, options in zip(both, (first, second), strict=True):
        id = served.service.id.encode()
        answer = _answer(id)
        served.service.add_endpoint("e", answer, subject=served.subject("e"), **options)
        await served.run()
    return both


def _answer(data: bytes) -> Any:
    def answer(request: Any) -> bytes:
        return data

    return answer


async def _answers(served: Served) -> list[bytes]:
    subject = served.subject("e")
    replies = await served.asker.request_many(subject, stall=0.15, timeout=WAIT)
    return sorted(reply.data for reply in replies)


@check()
async def check_service_one_member_of_a_queue_group_answers(ctx: Context) -> None:
    """Instances share the requests: one of them answers each."""
    both = await _two(ctx, {}, {})
    for _ in range(5):
        assert len(await _answers(both[0])) == 1
    for served in both:
        await served.stop()


@check()
async def check_service_two_queue_groups_answer_both(ctx: Context) -> None:
    """Instances with different queue groups all answer."""
    both = await _two(ctx, {"queue_group": "a"}, {"queue_group": "b"})
    assert await _answers(both[0]) == sorted(each.service.id.encode() for each in both)
    for served in both:
        await served.stop()


@check()
async def check_service_without_queue_group_all_answer(ctx: Context) -> None:
    """Without a queue group, every instance answers."""
    both = await _two(ctx, {"queue_group": None}, {"queue_group": None})
    assert await _answers(both[0]) == sorted(each.service.id.encode() for each in both)
    for served in both:
        await served.stop()


@check()
async def check_service_endpoints_added_later(ctx: Context) -> None:
    """Endpoints that are added while the service runs answer, and appear in INFO and STATS."""
    served = await new_service(ctx)
    service = served.service

    def add(request: ServiceRequest) -> bytes:
        name = request.data.decode()
        service.add_endpoint(name, _name, subject=f"{ctx.subject}.{name}")
        return b"added"

    service.add_endpoint("add", add, subject=served.subject("add"))
    await served.run()
    with raises(NoResponders):
        await served.ask("one")
    for name in ("one", "two"):
        assert (await served.ask("add", name.encode())).data == b"added"
        await served.ask("add", b"more-" + name.encode())  # the preceding SUB is active by then
        assert (await served.ask(name)).data == served.subject(name).encode()
    [info] = await served.services.info(service.name, service.id)
    assert [each.name for each in info.endpoints] == [
        *("add", "stop", "one", "more-one", "two", "more-two"),
    ]
    assert (await served.stats_of("one")).num_requests == 1
    await served.stop()


@check()
async def check_service_endpoints_of_one_name(ctx: Context) -> None:
    """Several endpoints may have one name; they have statistics of their own."""
    served = await new_service(ctx)
    for number in (1, 2):
        served.service.add_endpoint("same", _name, subject=served.subject(f"same{number}"))
    await served.run()
    await served.ask("same1")
    [found] = await served.services.stats(served.service.name, served.service.id)
    counts = [each.num_requests for each in found.endpoints if each.name == "same"]
    assert counts == [1, 0]
    await served.stop()


@check()
async def check_service_metadata_is_immutable(ctx: Context) -> None:
    """Changing the dict later does not change the metadata."""
    given = {"a": "b"}
    of_endpoint = {"c": "d"}
    served = await new_service(ctx, metadata=given)
    subject = served.subject("e")
    endpoint = served.service.add_endpoint("e", _name, subject=subject, metadata=of_endpoint)
    given["x"] = of_endpoint["x"] = "y"
    endpoint.metadata["z"] = "z"
    served.service.info().metadata["z"] = "z"
    await served.run()
    [info] = await served.services.info(served.service.name, served.service.id)
    assert (info.metadata, info.endpoints[0].metadata) == ({"a": "b"}, {"c": "d"})
    await served.stop()


@check()
async def check_service_two_on_one_client(ctx: Context) -> None:
    """Two services on one client are independent: one stops, the other continues."""
    served = await serve(ctx, {"e": _name})
    first = service_of(served.asker, **settings(ctx, {"version": "0.0.1"}))
    second = service_of(served.asker, **settings(ctx, {"version": "0.0.2"}))
    await first.start()
    await second.start()
    await first.stop()
    assert await first.stopped(WAIT) is None
    found = await served.services.ping(second.name)
    assert sorted(each.version for each in found) == ["0.0.2", "1.2.3"]
    assert (await served.ask("e")).data == served.subject("e").encode()
    await second.stop()
    await served.stop()
