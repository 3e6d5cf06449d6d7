"""The names of nats-py's `nats.micro`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .request import Handler as Handler
from .request import Request as Request
from .service import Service, ServiceConfig

if TYPE_CHECKING:
    from natsproto.compat.nats.aio.client import Client

__all__ = ["add_service"]


async def add_service(nc: Client, config: ServiceConfig | None = None, **kwargs: Any) -> Service:
    """Start a service; the keywords are fields of ServiceConfig."""
    config = replace(config, **kwargs) if config else ServiceConfig(**kwargs)
    service = Service(nc, config)
    await service.start()
    return service
