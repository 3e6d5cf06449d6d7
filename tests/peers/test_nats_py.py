"""Services of nats-py and ours: each finds the other's, and sends requests to it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from jetstream import ServiceError, Services, add_service
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

nats: Any = pytest.importorskip("nats")
micro: Any = pytest.importorskip("nats.micro")
pytestmark = [
    pytest.mark.rule("SERVICE-26"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from nats-py, which calls utcnow
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def test_our_client_and_their_service(server):
    asyncio.run(_ask(server))


async def _ask(server: Server) -> None:
    nc = await nats.connect(server.url)
    service = await micro.add_service(nc, name="theirs", version="1.2.3")

    async def echo(request: Any) -> None:
        await request.respond(request.data)

    async def fail(request: Any) -> None:
        await request.respond_error("404", "not found", data=b"details")

    await service.add_endpoint(name="echo", subject="py.echo", handler=echo)
    await service.add_endpoint(name="fail", subject="py.fail", handler=fail)
    async with connect(server.url) as client:
        services = Services(client)
        [ping] = await services.ping("theirs")
        assert (ping.id, ping.version, ping.metadata) == (service.id, "1.2.3", {})
        [info] = await services.info("theirs", service.id)
        assert (info.description, info.metadata) == ("", {})  # nats-py sends null for both
        assert [(each.name, each.subject) for each in info.endpoints] == [
            ("echo", "py.echo"),
            ("fail", "py.fail"),
        ]
        assert (await services.request("py.echo", b"hello")).data == b"hello"
        with pytest.raises(ServiceError) as caught:
            await services.request("py.fail")
        error = caught.value
        assert (error.code, error.text, error.data) == (404, "not found", b"details")
        found = await services.stats("theirs", service.id)
        [stats] = found
        assert found.invalid == []
        assert [each.num_requests for each in stats.endpoints] == [1, 1]
        assert stats.endpoints[0].data is None
        assert stats.started is not None
    await service.stop()
    await nc.close()


def test_their_client_and_our_service(server):
    asyncio.run(_serve(server))


async def _serve(server: Server) -> None:
    async with (
        connect(server.url) as client,
        add_service(
            client, name="ours", version="1.0.0", stats_data=lambda endpoint: endpoint.name
        ) as service,
    ):
        group = service.add_group("ours")
        group.add_endpoint("echo", lambda request: request.data, metadata={"a": "b"})
        group.add_endpoint("fail", lambda request: 1 // 0)
        await client.flush()
        running = asyncio.create_task(service.run())
        nc = await nats.connect(server.url)
        assert (await nc.request("ours.echo", b"hello")).data == b"hello"
        failed = await nc.request("ours.fail", b"")
        assert failed.headers["Nats-Service-Error-Code"] == "500"
        assert failed.headers["Nats-Service-Error"].startswith("ZeroDivisionError")
        ping = micro.service.ServicePing.from_dict(await _json(nc, "PING"))
        assert (ping.id, ping.metadata) == (service.id, {})
        info = micro.service.ServiceInfo.from_dict(await _json(nc, "INFO"))
        assert [each.subject for each in info.endpoints] == ["ours.echo", "ours.fail"]
        stats = await _json(nc, "STATS")
        assert [each["num_errors"] for each in stats["endpoints"]] == [0, 1]
        # nats-py reads microseconds at most, and a data field that ADR-32 makes optional.
        stats["started"] = stats["started"][:23] + "Z"
        read = micro.service.ServiceStats.from_dict(stats)
        assert [each.num_requests for each in read.endpoints] == [1, 1]
        await nc.close()
        await service.stop()
        await running


async def _json(nc: Any, verb: str) -> Any:
    return json.loads((await nc.request(f"$SRV.{verb}.ours", b"")).data)
