"""The protocols by which programs annotate services, groups and their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .service import EndpointConfig, Group, GroupConfig


class EndpointManager(Protocol):
    """An object to which endpoints can be added: a service or a group."""

    async def add_endpoint(self, config: EndpointConfig | None = None, **kwargs: Any) -> None:
        """Add an endpoint; the keywords are fields of EndpointConfig."""
        ...


class GroupManager(Protocol):
    """An object to which groups can be added: a service or a group."""

    def add_group(self, config: GroupConfig | None = None, **kwargs: Any) -> Group:
        """Return a new group; the keywords are fields of GroupConfig."""
        ...


class ServiceIdentity(Protocol):
    """The fields that identify an instance of a service."""

    id: str
    name: str
    version: str
    metadata: dict[str, str]
