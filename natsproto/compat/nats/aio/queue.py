"""PendingQueue: the messages of a subscription that wait for the program."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from natsproto.connection.receiver import Receiver

if TYPE_CHECKING:
    from natsproto.wire.frames import Msg


class PendingQueue(Receiver):
    """A queue with nats-py's limits: it counts payloads, and a limit of 0 or less means none.

    A message that does not fit is dropped, and reported as an event.
    """

    __slots__ = ("bytes", "dropped", "max_bytes", "max_msgs", "msgs")

    def __init__(self, max_msgs: int, max_bytes: int) -> None:
        super().__init__()
        self.max_msgs: int = max_msgs
        self.max_bytes: int = max_bytes
        self.bytes: int = 0
        self.dropped: int = 0
        self.msgs: deque[Msg] = deque()

    def receive(self, msg: Msg, now: float) -> bool:
        """Keep a message, if there is room."""
        count = len(self.msgs)
        size = self.bytes + len(msg.data)
        if 0 < self.max_msgs <= count or 0 < self.max_bytes <= size:
            self.dropped += 1
            self.drop()
            return False
        self.bytes = size
        self.msgs.append(msg)
        return not count

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        """Keep several messages."""
        count = len(self.msgs)
        size = self.bytes + sum([len(msg.data) for msg in msgs])
        if 0 < self.max_msgs < count + len(msgs) or 0 < self.max_bytes <= size:
            return super().receive_all(msgs, now)  # not all of them fit
        self.bytes = size
        self.msgs += msgs
        return not count

    def pop(self) -> Msg:
        """Remove and return the oldest message."""
        msg = self.msgs.popleft()
        self.bytes -= len(msg.data)
        return msg

    def clear(self) -> None:
        """Discard the messages that wait."""
        self.msgs.clear()
        self.bytes = 0

    def pending(self) -> int:
        """Return how many messages wait."""
        return len(self.msgs)

    def qsize(self) -> int:
        """Return how many messages wait, by the name that a queue of asyncio has for it."""
        return len(self.msgs)
