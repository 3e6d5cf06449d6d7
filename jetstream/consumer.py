"""Consumer: a handle to one consumer (ADR-37)."""

from __future__ import annotations

from .info import ConsumerInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .call import Api


class Consumer:
    """A consumer. Made by the calls of JetStream; `cached_info` is what the last one told."""

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo) -> None:
        self._api = api
        self.stream = stream
        self.name = name
        self.cached_info = info

    async def info(self) -> ConsumerInfo:
        """Configuration and state now; ConsumerNotFound if it is gone."""
        reply = await self._api.call("CONSUMER.INFO.%s.%s" % (self.stream, self.name))
        self.cached_info = ConsumerInfo.from_json(reply)
        return self.cached_info

    async def delete(self) -> None:
        """Delete it; ConsumerNotFound if it is gone."""
        await self._api.call("CONSUMER.DELETE.%s.%s" % (self.stream, self.name))

    def __repr__(self) -> str:
        return "<Consumer %s of %s>" % (self.name, self.stream)
