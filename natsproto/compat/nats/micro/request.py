"""Request: a request to an endpoint of a service, and the errors to answer it with."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from natsproto.compat.nats.aio.msg import Msg as Msg

ERROR_HEADER = "Nats-Service-Error"
ERROR_CODE_HEADER = "Nats-Service-Error-Code"


class Request:
    """A request, which a handler answers with `respond` or `respond_error`."""

    def __init__(self, msg: Msg) -> None:
        self._msg = msg

    @property
    def subject(self) -> str:
        """The subject of the request."""
        return self._msg.subject

    @property
    def headers(self) -> dict[str, str] | None:
        """The headers of the request, or None."""
        return self._msg.headers

    @property
    def data(self) -> bytes:
        """The payload of the request."""
        return self._msg.data

    async def respond(self, data: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Answer the request."""
        if not self._msg.reply:
            raise ValueError("no reply subject set")
        await self._msg._client.publish(self._msg.reply, data, headers=headers)

    async def respond_error(
        self,
        code: str,
        description: str,
        data: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer the request with an error."""
        found = dict(headers or {})
        found.update({ERROR_HEADER: description, ERROR_CODE_HEADER: code})
        await self.respond(data, found)


Handler = Callable[[Request], Awaitable[None]]


@dataclass
class ServiceError(Exception):
    """An error that a handler raises to answer with its code and description."""

    code: str
    description: str

    def __repr__(self) -> str:
        return f"{self.code}:{self.description}"

    def to_dict(self) -> dict[str, Any]:
        """Return the error as a dict."""
        return {"code": self.code, "description": self.description}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ServiceError:
        """Return the error that is described by a dict."""
        return cls(code=data.get("code", ""), description=data.get("description", ""))
