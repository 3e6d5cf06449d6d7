"""Fetching, next and consuming: what the pull methods of Consumer do."""

from __future__ import annotations

from natsproto.session import check_flag

from .consume import Consume
from .consuming import Batch, Messages
from .fetch import Fetcher
from .messages import JsMsg
from .probe import Probe
from .pull_options import consume_limits, consume_template, fetch_limits, fetch_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.frames import Msg

    from .call import Api
    from .pull import PullTemplate
    from .pull_options import PriorityOptions


class Pulling:
    """The pulls of one consumer handle: its fetchers, one subscription each."""

    def __init__(
        self, api: Api, stream: str, name: str, ackless: bool, pinned: bool = False
    ) -> None:
        self._api = api
        self._stream = stream
        self._name = name
        #: Whether consume() may look the consumer up; not where CONSUMER.INFO may reach another
        #: JetStream than pulls do, such as through the import of one subject (CONSUME-25).
        self.looks_up = True
        self.subject = "%s.CONSUMER.MSG.NEXT.%s.%s" % (api.prefix, stream, name)
        self._ackless = ackless  # its messages need no acknowledgement
        self._pinned = pinned  # it pins clients, by its priority_policy
        self._idle: list[Fetcher] = []
        self._busy: list[Fetcher] = []  # somebody waits for them
        # Of the last pull: messages that were sent and did not come, and the status that ended it
        # if that status has no such count.
        self.lost = 0
        self.uncounted = 0

    async def fetch(
        self,
        max_messages: int | None,
        max_bytes: int | None,
        expires: float,
        heartbeat: float | None,
        no_wait: bool,
        priority: PriorityOptions,
    ) -> Batch:
        batch, size = fetch_limits(max_messages, max_bytes)
        template = fetch_template(self.subject, expires, heartbeat, no_wait, priority, self._pinned)
        # FETCH-12: without waiting, the server answers at once or not at all.
        patience = self._api.timeout if no_wait else expires
        return await self.pull(template, batch, size, patience)

    async def pull(self, template: PullTemplate, batch: int, size: int, patience: float) -> Batch:
        """One pull, to its end; `patience`: until the server should have ended it."""
        session = self._api.session
        connection = session.connection
        port = session.port
        fetcher = self._fetcher()
        self._busy.append(fetcher)
        fetcher.start(template, batch, size, patience, port.now(), connection.online)
        connection.perform(fetcher)
        try:
            while not fetcher.done:
                port.flush_soon()
                await port.wait(fetcher)
        finally:
            # FETCH-8: also when the caller is cancelled. What came is there for the next fetch.
            fetcher.give_up(port.now())
            connection.perform(fetcher)
            self._busy.remove(fetcher)
            self._idle.append(fetcher)
        self.lost = fetcher.lost
        self.uncounted = fetcher.uncounted
        messages = [JsMsg(msg, session, self._ackless) for msg in fetcher.take()]
        if fetcher.ended:
            connection.consumed(port.now())
            port.flush_soon()
        if fetcher.failure is not None and not messages:
            raise fetcher.failure
        return Batch(messages, fetcher.failure)

    def close(self) -> list[JsMsg]:
        """End all subscriptions: whoever waits gets ConnectionClosed. Returns what nobody took."""
        session = self._api.session
        rest: list[JsMsg] = []
        for fetcher in self._idle:
            rest += [JsMsg(msg, session, self._ackless) for msg in fetcher.messages]
            fetcher.messages = []
        for fetcher in self._busy + self._idle:
            fetcher.leave()
            session.connection.perform(fetcher)
        session.port.flush_soon()
        return rest

    def _fetcher(self) -> Fetcher:
        kept: list[Msg] = []
        pin = ""
        while self._idle:
            fetcher = self._idle.pop()
            if not fetcher.ended and not fetcher.draining:
                fetcher.messages = kept + fetcher.messages
                return fetcher
            # It was idle for long: what it kept is for the next one.
            kept = fetcher.messages + kept
            pin = fetcher.pin
        connection = self._api.session.connection
        inbox = connection.new_inbox()
        fetcher = Fetcher(inbox.encode())
        fetcher.messages = kept
        fetcher.pin = pin
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
        nak_on_exit: bool = False,
    ) -> Messages:
        check_flag("nak_on_exit", nak_on_exit)
        limits = consume_limits(
            max_messages, max_bytes, threshold_messages, threshold_bytes, stop_after
        )
        template = consume_template(self.subject, expires, heartbeat, priority, self._pinned)
        session = self._api.session
        connection = session.connection
        inbox = connection.new_inbox()
        probe = Probe(self._api.prefix, self._stream, self._name) if self.looks_up else None
        name = "consumer %r of stream %r" % (self._name, self._stream)
        machine = Consume(inbox.encode(), template, probe=probe, name=name, **limits)
        connection.subscribe(inbox + ".*", machine)
        session.begin(machine)
        messages = Messages(session, machine, self._ackless)
        messages.nak_on_exit = nak_on_exit
        return messages
