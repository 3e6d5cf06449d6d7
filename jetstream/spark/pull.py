"""Reading a range by pulls: as fast as the server and the parser can.

The next pull is sent before the messages of the last one are looked at, so that server and client
are at work at the same time. Two pulls of a consumer are served one after the other.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jetstream.errors import MessagesMissed
from jetstream.fetch import Fetcher
from jetstream.metadata import read_metadata
from jetstream.pull_options import fetch_template
from natsproto.errors import RemoteError
from natsproto.port import run_sync

from .arrow import Rows, pulled_rows
from .connect import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jetstream.blocking import Consumer
    from natsproto.blocking import Client
    from natsproto.frames import Msg

    from .lookup import Lookup
    from .options import Settings
    from .ranges import Range

# What one pull asks for at most: memory must not depend on the size of messages.
BUDGET = 16 * 1024 * 1024
# For a whole pull of that size, on a slow line.
_PATIENCE = 60.0


class Pulls:
    """Pulls of one consumer, one ahead of what is taken."""

    def __init__(self, client: Client, prefix: str, consumer: Consumer) -> None:
        self._port = client.port
        self._session = client.inner.session
        subject = "%s.CONSUMER.MSG.NEXT.%s.%s" % (prefix, consumer.stream, consumer.name)
        self._template = fetch_template(subject, 1.0, None, True, {}, False)
        self._open: list[Fetcher] = []
        self._idle: list[Fetcher] = []

    def ask(self, count: int) -> None:
        """Send a pull for so many messages, of those that are there now."""
        connection = self._session.connection
        with self._port.lock:
            while self._idle and (self._idle[0].ended or self._idle[0].leaving):
                self._idle.pop(0)  # it was idle for long
            if self._idle:
                fetcher = self._idle.pop(0)
            else:
                inbox = connection.new_inbox()
                fetcher = Fetcher(inbox.encode())
                connection.subscribe(inbox + ".*", fetcher)
            self._open.append(fetcher)
            now = self._port.now()
            fetcher.start(self._template, count, 0, _PATIENCE, now, connection.online)
            connection.perform(fetcher)
            self._port.flush_soon()

    def take(self) -> tuple[list[Msg], RemoteError | None]:
        """The messages of the oldest pull, and why it ended early if something failed."""
        fetcher = self._open.pop(0)
        with self._port.lock:
            while not fetcher.done:
                run_sync(self._port.wait(fetcher))
        self._idle.append(fetcher)
        failure = fetcher.failure
        assert failure is None or isinstance(failure, RemoteError)
        return fetcher.take(), failure

    def close(self) -> None:
        with self._port.lock:
            for fetcher in self._open + self._idle:
                fetcher.leave()
                self._session.connection.perform(fetcher)
            self._port.flush_soon()


def read_pull(
    lookup: Lookup, part: Range, start: int, settings: Settings, bare: bool
) -> Iterator[Rows]:
    """Rows from `start` to the end of the range, or until there are no more now."""
    consumer = lookup.consumer(start, part.filters, bare)
    if not consumer.cached_info.num_pending:
        with contextlib.suppress(RemoteError):
            consumer.delete()
        return
    pulls = Pulls(client(settings), lookup.api().prefix, consumer)
    try:
        yield from _read(pulls, part, start, settings, bare)
    except RemoteError:
        pulls.close()
        raise  # whatever it was, the consumer goes by itself
    except GeneratorExit:
        _clean_up(pulls, consumer)
        raise
    _clean_up(pulls, consumer)


def _clean_up(pulls: Pulls, consumer: Consumer) -> None:
    pulls.close()
    with contextlib.suppress(RemoteError):  # it goes by itself, only later
        consumer.delete()


def _read(pulls: Pulls, part: Range, start: int, settings: Settings, bare: bool) -> Iterator[Rows]:
    most = settings.number("fetchSize")
    average = part.average
    delivered = 0
    pulls.ask(_size(most, average, part.end - start))
    while True:
        messages, failure = pulls.take()
        more = False
        if messages:
            last = read_metadata(messages[-1].raw_reply)
            delivered += len(messages)
            if last.consumer_seq != delivered:
                text = "consumer of stream %s: delivery %d came as number %d"
                raise MessagesMissed(text % (part.stream, last.consumer_seq, delivered))
            average = max(1, sum([len(msg.data) for msg in messages]) // len(messages))
            more = failure is None and last.pending > 0 and last.stream_seq < part.end - 1
            if more:
                pulls.ask(_size(most, average, part.end - 1 - last.stream_seq))
            yield from _chunks(messages, part, settings, bare)
        if failure is not None:
            raise failure
        if not more:
            return


def _size(most: int, average: int, left: int) -> int:
    return max(1, min(most, BUDGET // average, left))


def _chunks(messages: list[Msg], part: Range, settings: Settings, bare: bool) -> Iterator[Rows]:
    size = settings.number("arrowBatchRows")
    for i in range(0, len(messages), size):
        chunk = messages[i : i + size]
        while chunk and read_metadata(chunk[-1].raw_reply).stream_seq >= part.end:
            chunk.pop()  # gaps have made it read further
        if chunk:
            yield pulled_rows(part.stream, chunk, bare)
