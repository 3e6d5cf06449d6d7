"""SnapshotMachine: receive the chunks of a snapshot, with flow control.

The server sends chunks to a subject of ours, each with a reply subject for its acknowledgment, and
limits the number of unacknowledged chunks. A chunk is acknowledged when it is taken, so a slow
reader does not need a large buffer.

    state      input                                    next state, effect
    receiving  a chunk                                  receiving
               pop                                      receiving: acknowledge the chunk
               an empty message, or the status 204      complete
               another status                           failed: SnapshotFailed
               a chunk that does not follow the last    failed: SnapshotFailed
               nothing for SILENCE, and nothing to pop  failed: TimeoutExpired
               disconnected                             failed: SnapshotFailed
    complete, failed: the subscription ends
"""

from __future__ import annotations

from jetstream.errors import SnapshotFailed
from jetstream.machine.queue import MessageQueue
from natsproto.connection.receiver import Receiver
from natsproto.errors import TimeoutExpired

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

SILENCE = 30.0
_COMPLETE = 204
_ACKS = b"$JS.SNAPSHOT.ACK."  # the reply subjects of chunks; they end in size and number


class SnapshotMachine(Receiver):
    """Subscribed to the subject that the chunks are sent to."""

    __slots__ = ("_count", "_name", "_queue", "complete", "failure")

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._queue = MessageQueue()
        self._count = 0  # number of numbered chunks
        self.complete: bool = False
        self.failure: NatsError | None = None

    @property
    def over(self) -> bool:
        """Whether no more chunks will arrive."""
        return self.complete or self.failure is not None or self.ended

    def start(self, now: float) -> None:
        """Begin to wait for chunks, after the server has accepted the request."""
        if not self.over:
            self.deadline = now + SILENCE

    def receive(self, msg: Msg, now: float) -> bool:
        if self.over:
            return False
        if msg.status or not msg.data:
            return self._finish(msg)
        if not self._follows(msg):
            text = "chunk %d is missing" % (self._count + 1)
            return self._fail(SnapshotFailed(self._name, 0, text))  # SNAP-3
        self._queue.fresh.append(msg)
        self.deadline = now + SILENCE
        return True

    def _finish(self, msg: Msg) -> bool:
        if msg.status not in (0, _COMPLETE):  # SNAP-2
            return self._fail(SnapshotFailed(self._name, msg.status, msg.description))
        self.complete = True
        self._rest()
        return True

    def _follows(self, msg: Msg) -> bool:
        parts = msg.raw_reply.split(b".")
        if not msg.raw_reply.startswith(_ACKS) or not (parts[-1].isdigit() and parts[-2].isdigit()):
            return True  # the last chunk has no number
        self._count += 1
        return int(parts[-1]) == self._count and int(parts[-2]) == len(msg.data)

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self._queue.fresh or self._queue.batch:
            return False  # the server waits for us
        text = "no chunk of the snapshot of stream %s in %d s"
        return self._fail(TimeoutExpired(text % (self._name, SILENCE)))

    def disconnected(self, now: float) -> None:
        if not self.over:
            self._fail(SnapshotFailed(self._name, 0, "the connection was lost"))  # D-SNAP-5
            self.wake()

    def pop(self, now: float) -> bytes:
        """Remove and return the oldest chunk, and acknowledge it; there must be one."""
        msg = self._queue.pop()
        if not self.over:
            self.deadline = now + SILENCE
            if msg.raw_reply.startswith(_ACKS):
                self.emit(msg.raw_reply, b"", b"")  # SNAP-1
        return msg.data

    def pending(self) -> int:
        return len(self._queue.fresh) + len(self._queue.batch)

    def discard(self) -> None:
        """End without the rest of the chunks."""
        self._queue.clear()
        self._rest()

    def _fail(self, error: NatsError) -> bool:
        self.failure = error
        self._rest()
        return True

    def _rest(self) -> None:
        self.deadline: float | None = None
        self.leave()
