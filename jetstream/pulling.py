"""Fetching, next and consuming: what the pull methods of Consumer do."""

from __future__ import annotations

from natsproto.errors import InvalidValue

from .consume import MANY, Consume
from .consuming import Batch, Messages
from .fetch import Fetcher
from .messages import JsMsg
from .pull_options import (
    DEFAULT_MESSAGES,
    check_count,
    consume_template,
    fetch_template,
    threshold,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .call import Api
    from .pull_options import PriorityOptions


class Pulling:
    """The pulls of one consumer handle: its idle fetchers, one subscription each."""

    def __init__(self, api: Api, stream: str, name: str, ackless: bool) -> None:
        self._api = api
        self._subject = "%s.CONSUMER.MSG.NEXT.%s.%s" % (api.prefix, stream, name)
        self._ackless = ackless
        self._idle: list[Fetcher] = []

    async def fetch(
        self,
        max_messages: int | None,
        max_bytes: int | None,
        expires: float,
        heartbeat: float | None,
        no_wait: bool,
        priority: PriorityOptions,
    ) -> Batch:
        if (max_messages is None) == (max_bytes is None):
            raise InvalidValue("fetch takes either max_messages or max_bytes", "FETCH-2")
        batch = MANY if max_messages is None else check_count("max_messages", max_messages)
        size = 0 if max_bytes is None else check_count("max_bytes", max_bytes)
        template = fetch_template(self._subject, expires, heartbeat, no_wait, priority)
        patience = self._api.timeout if no_wait else expires
        session = self._api.session
        fetcher = self._fetcher()
        fetcher.start(template, batch, size, patience, session.port.now())
        session.connection.perform(fetcher)
        session.port.flush_soon()
        try:
            while not fetcher.done:
                await session.port.wait(fetcher)
        finally:
            # FETCH-8: also when the caller is cancelled. What came is there for the next fetch.
            fetcher.give_up()
            self._idle.append(fetcher)
        messages = [JsMsg(msg, session, self._ackless) for msg in fetcher.take(batch)]
        if fetcher.failure is not None and not messages:
            raise fetcher.failure
        return Batch(messages, fetcher.failure)

    def _fetcher(self) -> Fetcher:
        while self._idle:
            fetcher = self._idle.pop()
            if not fetcher.ended:
                return fetcher
        connection = self._api.session.connection
        inbox = connection.new_inbox()
        fetcher = Fetcher(inbox.encode())
        connection.subscribe(inbox + ".*", fetcher)
        return fetcher

    def consume(
        self,
        max_messages: int | None,
        max_bytes: int | None,
        expires: float,
        heartbeat: float | None,
        threshold_messages: int | None,
        threshold_bytes: int | None,
        stop_after: int | None,
        priority: PriorityOptions,
    ) -> Messages:
        if max_messages is not None and max_bytes is not None:
            raise InvalidValue("consume takes either max_messages or max_bytes", "CONSUME-2")
        template = consume_template(self._subject, expires, heartbeat, priority)
        session = self._api.session
        inbox = session.connection.new_inbox()
        if max_bytes is not None:
            limit = check_count("max_bytes", max_bytes)
            refill_at = threshold("threshold_bytes", threshold_bytes, limit)
        else:
            limit = check_count("max_messages", max_messages or DEFAULT_MESSAGES)
            refill_at = threshold("threshold_messages", threshold_messages, limit)
        machine = Consume(
            inbox.encode(),
            template,
            max_messages=0 if max_bytes is not None else limit,
            max_bytes=limit if max_bytes is not None else 0,
            threshold=refill_at,
            stop_after=0 if stop_after is None else check_count("stop_after", stop_after),
        )
        session.connection.subscribe(inbox + ".*", machine)
        if session.connection.online:
            machine.connected(session.port.now())
            session.connection.perform(machine)
        session.port.flush_soon()
        return Messages(session, machine, self._ackless)
