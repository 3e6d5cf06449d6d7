"""The two clients on which differential tests run."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

MODULES = ("errors", "aio.client", "js.api", "js.errors", "js.kv", "micro", "micro.service")


@pytest.fixture(params=["nats", "natsproto.compat.nats"])
def nats(request: pytest.FixtureRequest) -> Any:
    """Return nats-py, or the layer, with all modules that the programs use."""
    package = pytest.importorskip(request.param)
    for name in MODULES:
        importlib.import_module(f"{request.param}.{name}")
    return package
