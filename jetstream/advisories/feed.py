"""Feed: one bounded queue of messages for several subscriptions.

A Source receives the messages of one subject and adds them to the feed, which callers wait for.
The feed ends with the first of its sources: if the server denies one subject, the others are not
what the caller requested (D-ADVIS-9).
"""

from __future__ import annotations

from jetstream.machine.queue import MessageQueue
from natsproto.connection.effects import Poke, Wake
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg


class Feed(Waitable):
    """The messages of several subjects, in the order of their arrival.

    `dropped` counts the messages beyond the limits. After the end no more are added; `error` is the
    reason if the end was not requested.
    """

    __slots__ = ("_bytes", "_limits", "_queue", "dropped", "ended", "error", "sources")

    def __init__(self, max_msgs: int, max_bytes: int) -> None:
        super().__init__()
        self._limits = (max_msgs, max_bytes)
        self._queue = MessageQueue()
        self._bytes = 0
        self.dropped: int = 0
        self.ended: bool = False
        self.error: NatsError | None = None
        self.sources: list[Source] = []

    def add(self, msg: Msg) -> bool:
        """Append a message; return False if there is no room for it (D-ADVIS-8)."""
        most, most_bytes = self._limits
        if self.pending() >= most or self._bytes + msg.size > most_bytes:
            self.dropped += 1
            return False
        self._bytes += msg.size
        self._queue.fresh.append(msg)
        return True

    def pending(self) -> int:
        """Return the number of messages that wait to be taken."""
        return len(self._queue.fresh) + len(self._queue.batch)

    def pop(self) -> Msg:
        """Remove and return the oldest message; there must be one."""
        msg = self._queue.pop()
        self._bytes -= msg.size
        return msg

    def end(self, error: NatsError | None) -> list[Source]:
        """Record that no more messages arrive; return the sources whose subscriptions must end."""
        if self.ended:
            return []
        self.ended = True
        self.error = error
        return [source for source in self.sources if not source.ended]

    def clear(self) -> None:
        """Discard all messages."""
        self._queue.clear()
        self._bytes = 0


class Source(Receiver):
    """The receiver of one subject of a feed."""

    __slots__ = ("_feed",)

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed
        feed.sources.append(self)

    def receive(self, msg: Msg, now: float) -> bool:
        if self._feed.add(msg):
            self.effects.append(Wake([self._feed]))
        else:
            self.drop()
        return False

    def pending(self) -> int:
        # A drain waits until all messages are taken.
        return self._feed.pending()

    def end(self, error: NatsError | None = None) -> bool:
        if not super().end(error):
            return False
        for source in self._feed.end(error):
            source.leave()
            self.effects.append(Poke(source))
        self.effects.append(Wake([self._feed]))
        return True
