"""Wake a query that waits for messages: a long pull on each stream, which returns with the first.

An idle query has one pull a second for each stream, and a new message wakes it at once. The
consumers deliver no payloads, and only messages that pass the filters. Messages that the query has
read in the meantime are skipped by pulling them, or, if there are many, by a new consumer.

When the query is stopped, they are deleted (termination.py). If its process is killed, the server
deletes them after 30 s.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from jetstream.api.metadata import read_metadata
from jetstream.errors import JetStreamError
from natsproto.errors import NatsError, RemoteError
from natsproto.port import run_sync

from .connect import client, new_jetstream
from .pull import Pulls
from .queries import StreamQueries
from .termination import call_at_termination

if TYPE_CHECKING:
    from jetstream.blocking import JetStream
    from jetstream.pull.fetch import Fetcher

    from .options import Settings

logger: logging.Logger = logging.getLogger("jetstream.spark")
_SKIPPED = 500  # messages that are cheaper to pull than a new consumer
_INACTIVE = 30.0
_LAST = 2.0  # seconds for each response, when the query was stopped


class Wakeup:
    """The consumers of a query; after an error, the query has to look at its streams itself."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waits: dict[str, _Wait] = {}

    def wait(self, ends: dict[str, int], longest: float) -> bool:
        """Return True as soon as a stream may have a message at or after its end.

        ends     the sequences, by stream
        longest  the time after which to return False
        """
        port = client(self._settings).port
        deadline = port.now() + longest
        try:
            waits = [self._wait_of(name, end) for name, end in ends.items()]
            while True:
                rest = deadline - port.now()
                for wait in waits:
                    wait.request(max(rest, 0.001))
                with port.lock:
                    while not any(wait.done for wait in waits):
                        run_sync(port.wait(waits[0].waitable))
                taken = [wait.take() for wait in waits if wait.done]
                if any(taken):
                    return True
                if port.now() >= deadline:
                    return False
        except (RemoteError, JetStreamError) as error:
            logger.debug("looking at the streams, because waiting for a message failed: %s", error)
            self.close()
            return True

    def _wait_of(self, name: str, end: int) -> _Wait:
        wait = self._waits.get(name)
        if wait is None or end - wait.next > _SKIPPED:
            if wait is not None:
                wait.close()
            if not self._waits:
                call_at_termination(self._terminate)
            wait = self._waits[name] = _Wait(self._settings, name, end)
        wait.end = end
        return wait

    def delete(self, js: JetStream) -> None:
        """Delete the consumers, as far as that is possible: the query has ended."""
        for name, wait in list(self._waits.items()):
            with contextlib.suppress(NatsError):
                js.delete_consumer(name, wait.consumer)

    def _terminate(self) -> None:
        # On a connection of its own: the signal may have interrupted the other one.
        if self._waits:
            with contextlib.suppress(NatsError), new_jetstream(self._settings, _LAST) as js:
                self.delete(js)

    def close(self) -> None:
        """Leave the consumers to the server, which deletes them."""
        for wait in self._waits.values():
            wait.close()
        self._waits.clear()


class _Wait:
    """The consumer of one stream."""

    def __init__(self, settings: Settings, name: str, start: int) -> None:
        queries = StreamQueries(settings, name)
        consumer = queries.consumer(start, settings.filters, True, _INACTIVE)
        self._pulls = Pulls(client(settings), queries.api(), consumer)
        self.consumer: str = consumer.name
        self.next = start  # the first sequence that was not delivered
        self.end = start
        self._requested = False

    @property
    def waitable(self) -> Fetcher:
        return self._pulls.fetcher

    @property
    def done(self) -> bool:
        return self._pulls.fetcher.done

    def request(self, longest: float) -> None:
        """Send a pull, unless there is one."""
        if not self._requested:
            self._pulls.request(max(1, self.end - self.next), longest)
            self._requested = True

    def take(self) -> bool:
        """Return whether the pull has brought a message that is new to the query."""
        self._requested = False
        messages, failure = self._pulls.take()
        if failure is not None:
            raise failure
        if messages:
            self.next = read_metadata(messages[-1].raw_reply).stream_seq + 1
        return self.next > self.end

    def close(self) -> None:
        self._pulls.close()
