"""MessageQueue and EventLog: messages and events that wait until the user takes them."""

from __future__ import annotations

from natsproto.connection.waitable import Reports

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.events import Event
    from natsproto.wire.frames import Msg

MAX_EVENTS = 256  # D-CONSUME-19
# False in builds for devices, where memory is worth more than time (embedded/strip.py).
HAS_MEMORY: bool = True


class MessageQueue:
    """Messages, oldest first.

    It has two lists instead of a deque, which needs a fixed length on MicroPython: messages are
    appended to `fresh`. When `batch` is empty, `pop` moves them there in reverse order, so that
    `batch.pop()` returns the oldest. All lists stay the same objects, so that a machine can refer
    to them directly.

    `ready` has older messages, which a machine has lent to the API. While there are any, only
    `lend` may be called before `put_back`.
    """

    __slots__ = ("batch", "fresh", "ready")

    def __init__(self) -> None:
        self.batch: list[Msg] = []
        self.fresh: list[Msg] = []
        self.ready: list[Msg] = []

    if HAS_MEMORY:

        def lend(self, most: int) -> list[Msg]:
            """Move up to `most` messages of `batch` to `ready`, and return them."""
            batch = self.batch
            rest = max(0, len(batch) - most)
            lent = batch[rest:]
            self.ready += lent
            batch[rest:] = []
            return lent

        def put_back(self) -> None:
            """Move the messages in `ready` back."""
            self.batch += self.ready
            self.ready.clear()

    def pop(self) -> Msg:
        """Remove and return the oldest message; there must be one."""
        batch = self.batch
        if not batch:
            batch += self.fresh
            batch.reverse()
            self.fresh.clear()
        return batch.pop()

    def peek(self, most: int) -> list[Msg]:
        """Return up to `most` messages of `batch`, oldest first, and keep them."""
        return self.batch[: -most - 1 : -1] if most > 0 else []

    def take(self, count: int) -> None:
        """Remove the oldest messages, which `peek` has returned."""
        self.batch[len(self.batch) - count :] = []

    def messages(self) -> list[Msg]:
        """Return all messages, oldest first, and keep them."""
        return self.batch[::-1] + self.fresh

    def clear(self) -> list[Msg]:
        """Remove and return all messages, oldest first."""
        rest = self.messages()
        self.batch.clear()
        self.fresh.clear()
        return rest


class EventLog:
    """Events for the user, oldest first; only the newest untaken ones are kept.

    `total` counts all events, so a machine can see whether an input has added one. `reports` has
    those that are not in the log yet.
    """

    __slots__ = ("items", "reports", "total")

    def __init__(self) -> None:
        self.items: list[Event] = []
        self.reports: Reports = Reports()
        self.total: int = 0

    def add(self, event: Event) -> None:
        """Append an event, and drop the oldest if there are too many (D-CONSUME-19)."""
        self.total += 1
        self.reports.add(event)
        self.items.append(event)
        if len(self.items) > MAX_EVENTS:
            self.items.pop(0)
