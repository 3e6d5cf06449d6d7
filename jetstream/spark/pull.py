"""Read a range by pulls, as fast as the server and the parser can.

The next pull is sent before the messages of the last one are processed, so that server and client
work at the same time. A pull is limited by bytes as well as by messages: memory use must not depend
on the size of messages.

The client's Puller runs the pulls. Consumer.fetch is not suitable: it sends a pull and awaits it in
one call, and creates an object for each message, which takes 3.2 us per message instead of 1.9.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jetstream.api.metadata import read_metadata
from jetstream.errors import MessagesMissed, PullRefused
from jetstream.pull.api import Puller
from jetstream.pull.ledger import PullTemplate
from jetstream.pull.options import NANO
from natsproto.errors import RemoteError
from natsproto.port import run_sync

from .arrow import Rows, pulled_rows
from .connect import client, denied_publishes
from .loss import PullWatch
from .pace import Pace
from .queries import INACTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jetstream.api.client import ApiClient
    from jetstream.blocking import Consumer
    from jetstream.pull.fetch import Fetcher
    from natsproto.blocking import Client
    from natsproto.wire.frames import Msg

    from .loss import LossWatch
    from .options import Settings
    from .queries import StreamQueries
    from .ranges import Range

# The maximum size of a pull, except for a single larger message.
BUDGET = 16 * 1024 * 1024
# For a whole pull of that size on a slow connection.
_PATIENCE = 60.0
# Between messages: a server that crashes during a pull reports nothing.
_SILENCE = 5.0
# After so many seconds without a pull, the server deletes the consumer of a range of one pull.
_BRIEF = 5.0


class Pulls:
    """Consecutive pulls of one consumer: `request` messages, then `take` them."""

    def __init__(self, client: Client, api: ApiClient, consumer: Consumer) -> None:
        self._port = client.port
        self._connection = client.inner.session.connection
        config = consumer.cached_info.config
        ack_none = config.ack_policy == "none"
        self._puller = Puller(api, consumer.stream, consumer.name, ack_none)
        # The limits of the consumer; 0: none.
        self._most = config.max_batch or 0
        self._longest = config.max_expires or 0.0
        self._size = min(BUDGET, config.max_bytes or BUDGET)
        self._fetcher: Fetcher | None = None

    def request(self, count: int, wait: float = 0.0, size: int = BUDGET) -> None:
        """Send a pull for up to `count` of the available messages, of up to `size` bytes.

        If there are none, wait up to `wait` seconds for the first.
        """
        # Not the fetcher's max_bytes, which would inspect each message: 0.7 us.
        limit = {"max_bytes": min(size, self._size)}
        self._send(min(count, self._most or count), wait, limit)

    def _send(self, count: int, wait: float, limit: dict[str, int]) -> None:
        wait = min(wait, self._longest or wait)
        fields: dict[str, Any] = {"no_wait": True, **limit}
        if wait:
            fields["expires"] = round(wait * NANO)
        # No heartbeats, because such a pull is answered at once. But silence is detected; a single
        # large message gets more time, because it is silent until its end.
        silence = (wait + (_SILENCE if limit else _PATIENCE)) / 2
        template = PullTemplate(self._puller.subject.encode(), fields, wait, silence)
        with self._port.lock:
            begin = self._puller.begin(template, count, 0, wait + _PATIENCE, eager=False)
            self._fetcher = run_sync(begin)
            self._port.flush_soon()

    @property
    def fetcher(self) -> Fetcher:
        """The machine of the last pull."""
        assert self._fetcher is not None
        return self._fetcher

    def take(self, large: bool = True) -> tuple[list[Msg], RemoteError | None]:
        """Return the messages of the last pull, and the error if it failed.

        If the next message alone is larger than the pull, return that, or nothing if not `large`.
        """
        messages, failure = self._take()
        if messages or not _is_too_large(failure):
            return messages, failure
        if not large:
            return [], None
        self._send(1, 0.0, {})
        return self._take()

    def _take(self) -> tuple[list[Msg], RemoteError | None]:
        fetcher = self.fetcher
        with self._port.lock:
            while not fetcher.done:
                run_sync(self._port.wait(fetcher))
                self._check_allowed()
            messages = fetcher.take()
            failure = self._puller.leave(fetcher)
        assert failure is None or isinstance(failure, RemoteError)
        return messages, failure

    def _check_allowed(self) -> None:
        """Raise if the pull is not permitted: the server reports that, but does not reply."""
        for error in denied_publishes(self._connection):
            if error.subject == self._puller.subject:
                raise error

    def close(self) -> None:
        """End the subscription of the pulls."""
        with self._port.lock:
            self._puller.close()


def _is_too_large(failure: RemoteError | None) -> bool:
    return isinstance(failure, PullRefused) and "size exceeds" in failure.description.lower()


def read_pull(
    queries: StreamQueries,
    part: Range,
    start: int,
    settings: Settings,
    bare: bool,
    watch: LossWatch,
) -> Iterator[Rows]:
    """Yield the rows from `start` to the end of the range or of the stream."""
    # A short read of a query leaves its consumer to the server: one call instead of two.
    whole = part.end - start <= settings.number("fetchSize")
    short = whole and not part.shared and not part.later
    consumer = queries.consumer(start, part.filters, bare, _BRIEF if short else INACTIVE)
    info = consumer.cached_info
    pull_watch = PullWatch(watch, part, start, info.num_pending)
    pull_watch.began(info.delivered.stream_seq + 1)
    if not info.num_pending:
        _delete(consumer, short)
        pull_watch.ended()
        return
    pulls = Pulls(client(settings), queries.api(), consumer)
    try:
        yield from _read(pulls, part, start, settings, bare, pull_watch)
    except RemoteError:
        pulls.close()
        raise  # the server deletes the consumer after a while
    except GeneratorExit:
        pulls.close()
        _delete(consumer, short)
        raise
    pulls.close()
    _delete(consumer, short)


def _delete(consumer: Consumer, short: bool) -> None:
    if not short:
        with contextlib.suppress(RemoteError):  # the server deletes it later
            consumer.delete()


def _read(
    pulls: Pulls, part: Range, start: int, settings: Settings, bare: bool, watch: PullWatch
) -> Iterator[Rows]:
    pace = Pace(part, start, settings.number("fetchSize"))
    delivered = 0
    pulls.request(pace.next(start))
    watch.requested()
    while True:
        messages, failure = pulls.take()
        more = False
        if messages:
            last = read_metadata(messages[-1].raw_reply)
            delivered += len(messages)
            if last.consumer_seq != delivered:
                text = "consumer of stream %s: delivery %d arrived as number %d"
                raise MessagesMissed(text % (part.stream, last.consumer_seq, delivered))
            watch.pulled(len(messages), last.stream_seq, delivered, last.pending)
            pace.got(len(messages), last.stream_seq + 1)
            more = failure is None and last.pending > 0 and last.stream_seq < part.end - 1
            if more:
                pulls.request(pace.next(last.stream_seq + 1))
                watch.requested()
            yield from _chunks(messages, part, settings, bare)
        if failure is not None:
            raise failure
        if not more:
            watch.ended()
            return


def _chunks(messages: list[Msg], part: Range, settings: Settings, bare: bool) -> Iterator[Rows]:
    size = settings.number("arrowBatchRows")
    for i in range(0, len(messages), size):
        chunk = messages[i : i + size]
        while chunk and read_metadata(chunk[-1].raw_reply).stream_seq >= part.end:
            chunk.pop()  # because of gaps, the pull went further
        if chunk:
            yield pulled_rows(part.stream, chunk, bare)
