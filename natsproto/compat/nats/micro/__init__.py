"""The names of nats-py's `nats.micro`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from natsproto.compat.nats.aio.client import Client as Client

from .request import Handler as Handler
from .request import Request as Request
from .service import Service, ServiceConfig

__all__ = ["add_service"]


async def add_service(nc: Client, config: ServiceConfig | None = None, **kwargs: Any) -> Service:
    """Start a service; the keywords are fields of ServiceConfig."""
    config = replace(config, **kwargs) if config else ServiceConfig(**kwargs)
    service = Service(nc, config)
    await service.start()
    return service
