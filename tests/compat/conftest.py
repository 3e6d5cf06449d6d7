"""The two clients on which differential tests run, and a server."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = ("errors", "aio.client", "js.api", "js.errors", "js.kv", "micro", "micro.service")


@pytest.fixture(params=["nats", "natsproto.compat.nats"])
def nats(request: pytest.FixtureRequest) -> Any:
    """Return nats-py, or the layer, with all modules that the programs use."""
    package = pytest.importorskip(request.param)
    for name in MODULES:
        importlib.import_module(f"{request.param}.{name}")
    return package


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server with JetStream, which the tests of a module share."""
    with Server(jetstream=True) as server:
        yield server
