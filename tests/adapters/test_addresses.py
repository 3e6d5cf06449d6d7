"""A name with several addresses."""

from __future__ import annotations

import importlib
import socket

import pytest

from natsproto.errors import ConnectFailed
from natsproto.testing import free_port
from tests.adapters.runtimes import Runtime


def name_for(monkeypatch, *ports: int) -> str:
    """Make Python's resolver return these ports for a name."""
    addresses = [
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))
        for port in ports
    ]
    real = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        known = host in ("many.example", b"many.example")
        return list(addresses) if known else real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return "nats://many.example:4222"


@pytest.fixture(params=[True, False], ids=["shuffled", "in order"])
def options(request) -> dict[str, bool]:
    return {"shuffle": request.param}


@pytest.mark.parametrize("adapter", ["blocking", "threads"])
def test_without_a_loop(adapter, server, monkeypatch, options):
    connect = importlib.import_module(f"natsproto.adapters.{adapter}").connect
    with connect(name_for(monkeypatch, free_port(), server.port, free_port()), **options) as client:
        client.flush()
    with pytest.raises(ConnectFailed):
        connect(name_for(monkeypatch, free_port(), free_port()), **options)


@pytest.mark.parametrize("name", ["asyncio", "trio"])
def test_on_a_loop(name, server, monkeypatch, options):
    runtime = Runtime(name)

    async def main():
        many = name_for(monkeypatch, free_port(), server.port, free_port())
        async with runtime.connect(many, **options) as client:
            await client.flush()
        with pytest.raises(ConnectFailed):
            async with runtime.connect(name_for(monkeypatch, free_port(), free_port()), **options):
                raise AssertionError("there is no server")

    runtime.run(main)


def test_an_address_of_a_family_that_the_system_lacks(server, monkeypatch):
    from natsproto.adapters.blocking import connect

    strange = (12345, socket.SOCK_STREAM, 0, "", ("127.0.0.1", server.port))
    good = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", server.port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [strange, good])
    with connect("nats://many.example", shuffle=False) as client:
        client.flush()
