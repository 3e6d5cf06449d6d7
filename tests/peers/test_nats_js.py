"""Services of nats.js and ours: each finds the other's, and sends requests to it.

nats.js comes from npm, and runs under Node.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jetstream import ServiceError, Services, add_service
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from tests import npm

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
SCRIPT = HERE / "services.mjs"
pytestmark = pytest.mark.rule("SERVICE-26")


@pytest.fixture(scope="module")
def packages() -> Path:
    """Return the locked version; from npm, which must not fail, if the cache does not have it."""
    if shutil.which("node") is None:
        pytest.skip("nats.js needs Node, and there is none")
    return npm.install(HERE).parent


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def command(packages: Path, server: Server, mode: str, name: str) -> list[str]:
    return ["node", str(SCRIPT), str(packages), server.url, mode, name]


def test_our_client_and_their_service(packages, server):
    with subprocess.Popen(
        command(packages, server, "serve", "theirs"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as node:
        assert node.stdout is not None
        assert node.stdin is not None
        id = json.loads(node.stdout.readline())["id"]
        asyncio.run(_ask(server, id))
        node.stdin.close()
        assert node.wait(20) == 0


async def _ask(server: Server, id: str) -> None:
    async with connect(server.url) as client:
        services = Services(client)
        [ping] = await services.ping("theirs")
        assert (ping.id, ping.version, ping.metadata) == (id, "1.2.3", {"runtime": "node"})
        [info] = await services.info("theirs", id)
        assert info.description == "A service of nats.js"
        assert [(each.name, each.subject, each.queue_group) for each in info.endpoints] == [
            ("echo", "js.echo", "q"),
            ("fail", "js.fail", "q"),
        ]
        assert info.endpoints[0].metadata == {"a": "b"}
        answer = await services.request("js.echo", b"hello", headers={"A": "b"})
        assert answer.headers is not None
        assert (answer.data, answer.headers["A"]) == (b"hello", "b")
        with pytest.raises(ServiceError) as caught:
            await services.request("js.fail")
        error = caught.value
        assert (error.code, error.text, error.data) == (404, "not found", b"details")
        found = await services.stats("theirs", id)
        [stats] = found
        assert found.invalid == []
        assert stats.started is not None
        echo, fail = stats.endpoints
        assert (echo.num_requests, echo.num_errors, echo.data) == (1, 0, {"extra": 1})
        assert fail.num_requests == 1


def test_their_client_and_our_service(packages, server):
    told: dict[str, Any] = asyncio.run(_serve(packages, server))
    id = told["ping"][0]["id"]
    assert told["ping"] == told["one"]
    assert told["ping"] == [
        {
            "type": "io.nats.micro.v1.ping_response",
            "name": "ours",
            "id": id,
            "version": "1.0.0",
            "metadata": {"a": "b"},
        }
    ]
    [info] = told["info"]
    assert info["endpoints"][0] == {
        "name": "echo",
        "subject": "ours.echo",
        "queue_group": "q",
        "metadata": {},
    }
    assert told["echo"] == "hello"
    assert told["isError"] is True
    assert told["error"]["code"] == 404
    [stats] = told["stats"]
    counts = [(each["num_requests"], each["num_errors"]) for each in stats["endpoints"]]
    assert counts == [(1, 0), (1, 1)]
    assert stats["endpoints"][1]["last_error"] == "404: not found"
    assert stats["endpoints"][0]["data"] == {"name": "echo"}


async def _serve(packages: Path, server: Server) -> dict[str, Any]:
    async with (
        connect(server.url) as client,
        add_service(
            client,
            name="ours",
            version="1.0.0",
            metadata={"a": "b"},
            stats_data=lambda endpoint: {"name": endpoint.name},
        ) as service,
    ):
        group = service.add_group("ours")
        group.add_endpoint("echo", lambda request: request.data)

        @group.endpoint()
        async def fail(request: Any) -> None:
            raise ServiceError(404, "not found")

        await client.flush()
        running = asyncio.create_task(service.run())
        node = await asyncio.create_subprocess_exec(
            *command(packages, server, "ask", "ours"), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await node.communicate()
        assert node.returncode == 0
        await service.stop()
        await running
    told: dict[str, Any] = {}
    for line in out.decode().splitlines():
        told.update(json.loads(line))
    return told
