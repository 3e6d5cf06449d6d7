"""Calls of the API that move leaders and replicas of streams and consumers (ADR-1, ADR-62)."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from .client import ApiClient

_PREFERRED_LEVEL = 1
_MOVE_LEVEL = 5  # 2.15


async def step_down(api: ApiClient, path: str, preferred: str) -> None:
    """Have the leader of "STREAM.<name>" or "CONSUMER.<stream>.<name>" step down."""
    kind, _, name = path.partition(".")
    body: dict[str, Any] | None = None
    level = 0
    if preferred != "":  # CALL-19
        body = {"placement": {"preferred": _server("preferred", preferred)}}
        level = _PREFERRED_LEVEL
    await _succeed(api, "%s.LEADER.STEPDOWN.%s" % (kind, name), body, level)


async def remove_peer(api: ApiClient, stream: str, peer: str) -> None:
    """Remove the replica on a server, which may be down; another server gets a replica."""
    body = {"peer": _server("peer", peer)}
    await _succeed(api, "STREAM.PEER.REMOVE.%s" % stream, body)  # CALL-20


async def evacuate_peer(api: ApiClient, stream: str, peer: str) -> None:
    """Move the replica on a running server to another one."""
    body = {"peer": _server("peer", peer)}
    await _succeed(api, "STREAM.PEER.EVACUATE.%s" % stream, body, _MOVE_LEVEL)  # CALL-20


async def cancel_move(api: ApiClient, stream: str) -> dict[str, Any]:
    """Return the replicas to the servers that they were moved from."""
    return await api.call("STREAM.CANCEL_MOVE.%s" % stream, level=_MOVE_LEVEL)


async def _succeed(
    api: ApiClient, endpoint: str, body: dict[str, Any] | None, level: int = 0
) -> None:
    reply = await api.call(endpoint, body, level=level)
    if reply.get("success") is not True:
        raise InvalidResponse("response to %s has no success: %s" % (endpoint, shorten(reply)))


def _server(name: str, value: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue("%s %s is not the name of a server" % (name, shorten(value)))
    return value
