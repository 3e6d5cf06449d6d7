"""Calls of the JetStream API: one JSON request, one JSON answer, one error type for each code."""

from __future__ import annotations

from natsproto.errors import NoResponders, NotSupported
from natsproto.subjects import check_publish

from .errors import InvalidResponse, JetStreamNotAvailable, api_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.session import Session

API_LEVEL = "Nats-Required-Api-Level"


class Api:
    """Where the API of one JetStream is (its prefix or domain), and how to call it."""

    __slots__ = ("prefix", "session", "timeout")

    def __init__(self, session: Session, domain: str, prefix: str, timeout: float) -> None:
        self.session = session
        self.prefix = "$JS.%s.API" % domain if domain else prefix
        check_publish(self.prefix, "API prefix")
        self.timeout = timeout

    async def call(
        self, endpoint: str, body: dict[str, Any] | None = None, *, level: int = 0
    ) -> dict[str, Any]:
        """The answer; ApiError if it is one. `level`: the API level that the call needs."""
        headers = None
        if level:
            self.require_level(level, endpoint)
            headers = {API_LEVEL: str(level)}
        session = self.session
        request = session.connection.start_request(
            "%s.%s" % (self.prefix, endpoint),
            b"" if body is None else encode_json(body),
            deadline=session.deadline(self.timeout),
            headers=headers,
            wildcards=True,  # a filter is part of the subject of CONSUMER.CREATE
        )
        try:
            reply = await session.settle(request)
        except NoResponders:
            raise JetStreamNotAvailable(
                "no JetStream answers to %s.%s: it is not enabled, has no leader now, or this"
                " account or domain has none" % (self.prefix, endpoint)
            ) from None
        assert reply is not None
        return read_reply(reply.data)

    async def pages(self, endpoint: str, key: str, body: dict[str, Any]) -> list[Any]:
        """All rows of a listing, page by page."""
        rows: list[Any] = []
        while True:
            reply = await self.call(endpoint, dict(body, offset=len(rows)))
            page: list[Any] = reply.get(key) or []
            rows += page
            if not page or len(rows) >= int(reply.get("total") or 0):
                return rows

    def require_level(self, level: int, what: str) -> None:
        """NotSupported if the server's API is too old, which it would not always tell itself."""
        info = self.session.connection.info
        if info is not None and info.api_lvl < level:
            raise NotSupported(
                "%s needs JetStream API level %d; server %s has %d"
                % (what, level, info.version, info.api_lvl)
            )


def encode_json(body: object) -> bytes:
    import json

    return json.dumps(body, separators=(",", ":")).encode()


def read_reply(data: bytes) -> dict[str, Any]:
    """The JSON object; ApiError if it tells an error, InvalidResponse if it is none."""
    import json

    try:
        reply: Any = json.loads(data.decode())
    except ValueError:
        raise InvalidResponse("answer is no JSON: %r" % data[:200]) from None
    if not isinstance(reply, dict):
        raise InvalidResponse("answer is no JSON object: %r" % data[:200])
    answer: dict[str, Any] = reply  # pyright: ignore[reportUnknownVariableType] - JSON keys are str
    error = answer.get("error")
    if error:
        raise api_error(error)
    return answer
