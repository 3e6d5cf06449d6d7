"""Puller: the pulls of one consumer handle, for fetch, next and consume.

A fetcher is a subscription for one fetch at a time; fetches that run at once have one each. It is
busy while a fetch uses it, then idle. If the server may still have its pull, because the caller
left or nothing arrived in time, the fetcher is drained: after UNSUB the server drops the pull, and
after the PONG to a PING all messages that were on their way have arrived. The next fetch waits for
that, and begins with the messages that all idle fetchers have kept (D-FETCH-8).
"""

from __future__ import annotations

from jetstream.api.metadata import read_metadata
from jetstream.errors import NotJetStreamMessage, PullFailed
from jetstream.message import JsMsg, wrap_all
from natsproto.session import check_flag
from natsproto.wire.text import shorten

from .ledger import MARGIN
from .messages import Batch, Messages
from .options import (
    consume_limits,
    consume_template,
    fetch_limits,
    fetch_template,
    next_subject,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from jetstream.api.client import ApiClient
    from natsproto.connection import Connection
    from natsproto.durations import Seconds
    from natsproto.errors import NatsError
    from natsproto.session import Session
    from natsproto.wire.frames import Msg

    from .batch import Fetch
    from .fetch import Fetcher
    from .ledger import PullTemplate
    from .options import PriorityOptions

    Options: TypeAlias = tuple[Seconds | None, Seconds | None, bool]
    LastFetch: TypeAlias = tuple[Options, PullTemplate | None]


class Puller:
    """The pulls of one consumer handle: its fetchers, one subscription each.

    `ack_none`: messages need no acknowledgment. `pinned`: the consumer pins clients, by its
    priority_policy.
    """

    def __init__(
        self, api: ApiClient, stream: str, name: str, ack_none: bool, pinned: bool = False
    ) -> None:
        self.session: Session = api.session
        self._timeout = api.timeout
        self._place = api.prefix, stream, name
        #: Whether consume() may look the consumer up; not where CONSUMER.INFO may reach another
        #: JetStream than pulls do, such as through the import of one subject (CONSUME-25).
        self.looks_up = True
        self.subject: str = next_subject(api.prefix, stream, name)
        self.name: str = "consumer %s of stream %s" % (shorten(name), shorten(stream))
        self.ack_none = ack_none
        self.pinned = pinned
        self._idle: list[Fetcher] = []
        self._busy: list[Fetcher] = []  # callers wait for them
        self._abandoned: list[tuple[Fetcher, list[Msg]]] = []
        # Of the last fetch: expires, heartbeat and no_wait, and their template.
        self._last: LastFetch = (None, None, False), None
        # Of the last pull: messages that were sent and did not come, and the status that ended it
        # if that status has no such count.
        self.lost: int = 0
        self.uncounted: int = 0

    def fetch(
        self,
        max_messages: int | None,
        max_bytes: int | None,
        expires: Seconds,
        heartbeat: Seconds | None,
        no_wait: bool,
        priority: PriorityOptions,
    ) -> Fetch:
        # Imported here, as below: a program either fetches or consumes.
        from .batch import Fetch

        batch, size = fetch_limits(max_messages, max_bytes)
        # A loop passes the same objects each time: they are not checked and encoded again.
        options, template = self._last
        same = expires is options[0] and heartbeat is options[1] and no_wait is options[2]
        if template is None or not same or priority or template.pinned != self.pinned:
            template = fetch_template(
                self.subject, expires, heartbeat, no_wait, priority, self.pinned
            )
            self._last = (expires, heartbeat, no_wait), None if priority else template
        # FETCH-12: without waiting, the server answers at once or not at all.
        patience = self._timeout if no_wait else template.expires
        return Fetch(self, template, batch, size, patience, no_wait)

    async def pull(
        self,
        template: PullTemplate,
        batch: int,
        size: int,
        patience: float,
        eager: bool = False,
    ) -> Batch:
        """Run one pull to its end; `patience` is how long the server may take to end it."""
        session = self.session
        port = session.port
        fetcher = await self.begin(template, batch, size, patience, eager)
        try:
            while not fetcher.done:
                port.flush_soon()
                await port.wait(fetcher)
        except BaseException:
            self.leave(fetcher)  # FETCH-13
            raise
        messages = wrap_all(fetcher.take(), session, self.ack_none)
        failure = self.leave(fetcher)
        if failure is not None and not messages:  # FETCH-4
            raise failure
        return Batch(messages, failure)

    async def begin(
        self,
        template: PullTemplate,
        batch: int,
        size: int,
        patience: float,
        eager: bool,
        streaming: bool = False,
    ) -> Fetcher:
        """Order a pull, which the next flush sends; `leave` the fetcher in the end."""
        self.tidy()
        session = self.session
        port = session.port
        deadline = port.now() + patience + MARGIN
        for drained in list(self._idle):
            while drained.draining and not drained.ended:
                await session.wait(drained, deadline, "end of an earlier pull of " + self.name)
        fetcher = self._fetcher()
        self._busy.append(fetcher)
        now = port.now()
        online = session.connection.online
        patience = deadline - MARGIN - now
        fetcher.start(template, batch, size, patience, now, online, eager, streaming)
        session.connection.apply(fetcher)
        return fetcher

    def leave(self, fetcher: Fetcher, rest: list[Msg] | None = None) -> NatsError | None:
        """End the fetch, and return its error, if it failed.

        `rest` are messages that were taken from the fetcher but not returned to the caller. They,
        and those that were not taken, are for the next fetch (D-FETCH-8).
        """
        self._retire(fetcher, rest or [])
        if fetcher.open or fetcher.ended:
            self.session.port.flush_soon()
        failure = fetcher.failure
        if isinstance(failure, PullFailed):
            return type(failure)(failure.code, failure.description, self.name)  # D-FETCH-18
        return failure

    def _retire(self, fetcher: Fetcher, rest: list[Msg]) -> None:
        session = self.session
        connection = session.connection
        now = session.port.now()
        fetcher.give_up(now)
        fetcher.messages = rest + fetcher.messages
        connection.apply(fetcher)
        self._busy.remove(fetcher)
        self._idle.append(fetcher)
        self.lost = fetcher.lost
        self.uncounted = fetcher.uncounted
        if fetcher.open:
            connection.start_drain_of([fetcher], None)  # FETCH-13
        if fetcher.ended:
            connection.consumed(now)

    def abandon(self, fetcher: Fetcher, rest: list[Msg]) -> None:
        """Retire it soon. For finalizers, which run in any thread at any moment (D-FETCH-16)."""
        self._abandoned.append((fetcher, rest))
        self.session.port.run_soon(self.tidy)

    def tidy(self) -> None:
        """Retire the fetchers of abandoned iterations. The caller flushes."""
        while self._abandoned:
            self._retire(*self._abandoned.pop(0))

    def close(self) -> list[JsMsg]:
        """End all subscriptions, and return the messages that were not taken.

        Calls that wait raise ConnectionClosed.
        """
        self.tidy()
        session = self.session
        rest = [JsMsg(msg, session, self.ack_none) for msg in self._take_kept()]
        _end_all(session.connection, self._busy + self._idle)
        session.port.flush_soon()
        return rest

    def _fetcher(self) -> Fetcher:
        """Return a fetcher for the next fetch, with all messages that were kept (D-FETCH-8)."""
        kept = self._take_kept()
        pins = [fetcher.pin for fetcher in self._idle if fetcher.pin]
        self._idle = [
            each for each in self._idle if not (each.ended or each.draining or each.leaving)
        ]
        if self._idle:
            fetcher = self._idle.pop()
        else:
            from .fetch import Fetcher

            connection = self.session.connection
            inbox = connection.new_inbox()
            fetcher = Fetcher(inbox.encode(), self.name)
            connection.subscribe(inbox + ".*", fetcher)
        fetcher.messages = kept
        if pins:
            fetcher.pin = pins[-1]
        return fetcher

    def _take_kept(self) -> list[Msg]:
        """Remove and return the messages that idle fetchers have kept, in order of delivery."""
        kept: list[Msg] = []
        several = False
        for fetcher in self._idle:
            if fetcher.messages:
                several = bool(kept)
                kept += fetcher.messages
                fetcher.messages = []
        if several:
            try:
                kept.sort(key=_delivery)
            except NotJetStreamMessage:
                pass  # the order of such messages is unknown
        return kept

    def __del__(self) -> None:
        # D-FETCH-16: the handle is gone. The subscriptions would stay for half a minute.
        fetchers = [fetcher for fetcher in self._idle if not fetcher.ended]
        if fetchers:
            connection = self.session.connection
            self.session.port.run_soon(lambda: _end_all(connection, fetchers))

    def consume(
        self,
        max_messages: int | None,
        max_bytes: int | None,
        expires: Seconds,
        heartbeat: Seconds | None,
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
        template = consume_template(self.subject, expires, heartbeat, priority, self.pinned)
        session = self.session
        connection = session.connection
        inbox = connection.new_inbox()
        from jetstream.machine.probe import Probe

        from .consume import Consume

        probe = Probe(*self._place) if self.looks_up else None
        machine = Consume(inbox.encode(), template, probe=probe, name=self.name, **limits)
        session.attach(machine, inbox + ".*")
        messages = Messages(session, machine, self.ack_none)
        messages.nak_on_exit = nak_on_exit
        return messages


def _end_all(connection: Connection, fetchers: list[Fetcher]) -> None:
    for fetcher in fetchers:
        fetcher.leave()
        connection.apply(fetcher)


def _delivery(msg: Msg) -> int:
    return read_metadata(msg.raw_reply).consumer_seq
