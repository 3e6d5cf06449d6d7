"""InOrder: the policy that keeps messages in order across successive consumers (ADR-17).

It is the whole logic of ordered consumers, for pull and push alike. Cursor (cursor.py) knows the
position in the stream and the current consumer; Recreator (recreate.py) creates the next one, by
its table. In the meantime, nothing is pulled and no heartbeat is expected. Messages in the queue
stay there, because they are in order; messages that the lost consumer still sends are STALE.

The consumer is lost because of

    a gap                   a message whose number is not the next, or a heartbeat with a higher one
    silence                 for two heartbeats (pull) or three (push)
    409 Consumer Deleted    it was deleted, or its stream
    409 Server Shutdown     it lives in the memory of that server
    503                     it is gone: deleted, inactive for long, or its server was restarted
    disconnected            messages in flight are lost

    but not because of a change of leader, which does not affect its memory, or another end of a
    pull

Each time the user is notified (ConsumerReset), and also if the stream is no longer the same
(StreamRecreated). The machine ends only for the reasons that end a plain one, because of an error
that creating another consumer would get again, or after `max_attempts` consecutive attempts.
"""

from __future__ import annotations

from jetstream.errors import ConsumerDeleted, MessagesMissed
from jetstream.events import ConsumerReset
from jetstream.machine.policy import FULL, KEEP, SKIP, Policy
from jetstream.machine.status import ABSENT, RETRY
from natsproto.errors import ConnectionLost
from natsproto.wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.status import Status
    from natsproto.connection.effects import MachineEffect
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .cursor import Cursor
    from .recreate import Recreator

_RESPONSES = (b"c", b"s", b"x")  # to CONSUMER.CREATE, STREAM.INFO and CONSUMER.DELETE


class InOrder(Policy):
    """Admits the next message of the current consumer, and has a lost consumer replaced.

    `failure` is the reason why the last attempt to create a consumer failed.
    """

    __slots__ = ("_judge", "cursor", "failure", "recreator")

    recreates = True

    def __init__(self, recreator: Recreator) -> None:
        super().__init__()
        self.recreator: Recreator = recreator
        self.cursor: Cursor = recreator.cursor
        self._judge = self.cursor.admit
        self.failure: NatsError | None = None

    @property
    def ready(self) -> bool:
        return self.cursor.ready

    @property
    def consumer(self) -> str:
        return self.recreator.state

    @property
    def begun(self) -> bool:
        """Whether there has been any consumer."""
        return self.cursor.info is not None

    @property
    def due(self) -> float | None:
        return self.recreator.due

    @property
    def error(self) -> NatsError | None:
        return self.recreator.error  # ORDERED-16

    # Messages

    def admit(self, msg: Msg, room: bool) -> str:
        if not room:
            return FULL  # D-CONSUME-27: before it counts as delivered, so that it shows as a gap
        verdict = self._judge(msg.raw_reply)
        if verdict is KEEP or verdict is SKIP:
            self.recreator.failures = 0  # like `proved`, but inlined
        return verdict

    def admit_all(self, msgs: list[Msg]) -> bool:
        if not self.cursor.admit_all([msg.raw_reply for msg in msgs]):
            return False
        self.recreator.failures = 0
        return True

    def gap(self, msg: Msg) -> NatsError:
        text = "not the next message after %d of consumer %s: %s"
        cursor = self.cursor
        known = (cursor.consumer_seq, shorten(cursor.name), cut_middle(repr(msg.raw_reply)))
        return MessagesMissed(text % known)

    def heartbeat(self, last: int | None) -> NatsError | None:
        self.recreator.proved()
        if last is None or not self.is_gap(last):
            return None
        text = "consumer %s is at %d, but %d arrived last"
        known = (shorten(self.cursor.name), last, self.cursor.consumer_seq)
        return MessagesMissed(text % known)

    def is_gap(self, last: int) -> bool:
        """Return whether a heartbeat with this sequence shows that messages are missing."""
        # ORDERED-13: it was delivered, but lost between two servers.
        return last > self.cursor.consumer_seq

    def rewind(self, messages: list[Msg]) -> None:
        # D-ORDERED-19: the next use of this cursor starts with them.
        for msg in messages:
            if self.cursor.rewind(msg.raw_reply):
                return

    # The consumer

    def proved(self) -> None:
        self.recreator.proved()

    def loses(self, status: Status) -> bool:  # ORDPUSH-5
        shutdown = status.meaning == RETRY and "shutdown" in status.description.lower()
        return shutdown or status.meaning == ABSENT or isinstance(status.error, ConsumerDeleted)

    def lost(self, error: NatsError, now: float) -> bool:
        self.events.add(ConsumerReset(error))  # ORDERED-14
        self.recreator.reset(error, now)
        return True

    def owns(self, token: bytes) -> bool:
        return token[:1] in _RESPONSES

    def receive(self, msg: Msg, now: float) -> None:
        self._report(self.recreator.receive(msg, now))

    def connected(self, now: float) -> None:
        self.recreator.connected(now)

    def disconnected(self, active: bool) -> bool:
        reported = active and self.cursor.ready
        if reported:
            self.events.add(ConsumerReset(ConnectionLost("the connection was lost")))
        self.recreator.disconnected()
        return reported

    def handle_timer(self, now: float) -> None:
        self._report(self.recreator.handle_timer(now))

    def close(self) -> None:
        self.recreator.close()  # ORDPUSH-10

    def _report(self, failure: NatsError | None) -> None:
        for event in self.recreator.take_events():
            self.events.add(event)
        if failure is not None:
            self.failure = failure
            self.events.add(ConsumerReset(failure))

    # Effects

    def pull_subject(self, subject: bytes) -> bytes:
        return subject + self.cursor.name.encode()

    def take_effects(self) -> list[MachineEffect]:
        return self.recreator.take_effects()
