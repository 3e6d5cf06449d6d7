"""Services: find the services of an account, ask for their statistics, and send them requests."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from jetstream.kv.generic import Generic
from natsproto.client import Client
from natsproto.durations import check_patience
from natsproto.errors import InvalidValue, NoResponders
from natsproto.wire.text import shorten

from .errors import service_error
from .names import PREFIX, check_prefix, monitor_subject
from .responses import (
    INFO,
    PING,
    STATS,
    ServiceInfo,
    ServicePing,
    ServiceStats,
    read_response,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    from natsproto.durations import Seconds
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import HeadersLike

    Item = TypeVar("Item", bound=ServicePing)
else:
    Item = None


class ServiceResponses(Generic[Item]):
    """The responses of services, as a sequence.

    `invalid` has the errors of responses that could not be decoded. `rtts` has the time in seconds
    after which each response arrived.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self.rtts: list[float] = []
        self.invalid: list[InvalidResponse] = []

    def add(self, item: Item, rtt: float) -> None:
        """Append a response."""
        self._items.append(item)
        self.rtts.append(rtt)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __repr__(self) -> str:
        return "<ServiceResponses of %d services, %d invalid>" % (len(self), len(self.invalid))


class Services:
    """The services of an account: `await Services(client).ping()`.

    A call asks all services, those with a given name, or one instance by name and id. Because the
    number of services is not known, it waits for `stall` seconds after each response, and for
    `timeout` seconds in total.
    """

    def __init__(self, client: Client, *, prefix: str = PREFIX, timeout: Seconds = 2.0) -> None:
        if not isinstance(client, Client):
            raise InvalidValue(
                "client is not one of an adapter with async calls: %s; for blocking clients use"
                " jetstream.blocking.Services" % shorten(client)
            )
        self._client = client
        self._prefix = check_prefix(prefix)
        self._timeout = check_patience("timeout", timeout)

    async def ping(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServicePing]:
        """Return the instances that respond; `rtts` of the result has their round-trip times."""
        return await self._ask(ServicePing, PING, (name, id), timeout, stall)

    async def info(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServiceInfo]:
        """Return the descriptions and endpoints of the instances that respond."""
        return await self._ask(ServiceInfo, INFO, (name, id), timeout, stall)

    async def stats(
        self, name: str = "", id: str = "", *, timeout: Seconds | None = None, stall: Seconds = 0.5
    ) -> ServiceResponses[ServiceStats]:
        """Return the statistics of the instances that respond."""
        return await self._ask(ServiceStats, STATS, (name, id), timeout, stall)

    async def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds | None = None,
        headers: HeadersLike | None = None,
    ) -> Msg:
        """Send a request to an endpoint and return the answer; raise it if it is a ServiceError."""
        wait = self._timeout if timeout is None else timeout
        msg = await self._client.request(subject, data, timeout=wait, headers=headers)
        error = service_error(msg)
        if error is not None:
            raise error
        return msg

    async def _ask(
        self,
        cls: type[Item],
        verb: str,
        path: tuple[str, str],
        timeout: Seconds | None,
        stall: Seconds,
    ) -> ServiceResponses[Item]:
        subject = monitor_subject(self._prefix, verb, *path)
        found: ServiceResponses[Item] = ServiceResponses()
        now = self._client.session.port.ticks
        sent = now()

        def note(msg: Msg) -> bool:
            try:
                found.add(read_response(cls, verb, msg.data), now() - sent)
            except InvalidResponse as error:
                found.invalid.append(error)
            return False

        try:
            await self._client.request_many(
                subject,
                timeout=self._timeout if timeout is None else timeout,
                stall=stall,
                max_msgs=1 if path[1] else 0,  # an id has only one instance
                sentinel=note,
            )
        except NoResponders:
            pass  # there are no services
        return found
