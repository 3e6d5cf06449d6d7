"""LivenessProbe: check that the consumer of a push subscription exists and delivers to it.

A server does not tell push subscribers that their consumer is gone: nothing comes any more, as if
there was nothing to come. So the consumer is looked up (probe.py) for a reason (JSSUB-16):

    an alarm       with heartbeats: the server was silent
    a reconnect    without them: nothing else would tell; an ephemeral consumer may be gone

    it is there, and delivers to us      nothing happens
    it is there, and delivers elsewhere  the subscription fails: ConsumerMoved
    it is gone                           the subscription fails: ConsumerDeleted
    no useful answer after five times    the user is notified: PushWarning
"""

from __future__ import annotations

from jetstream.errors import ConsumerDeleted, ConsumerMoved, JetStreamNotAvailable
from jetstream.events import PushWarning
from jetstream.machine.base import Machine
from jetstream.machine.probe import GONE, THERE, Probe
from natsproto.wire.text import shorten

from .machine import Push

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg


class LivenessProbe(Machine):
    """Subscribed to `inbox`, for as long as what it watches over."""

    __slots__ = ("_inbox", "_probe", "_target", "watched")

    def __init__(self, prefix: str, stream: str, name: str, target: str, inbox: str) -> None:
        super().__init__()
        self._probe = Probe(prefix, stream, name)
        self._target = target
        self._inbox = inbox.encode()
        self.watched: MonitoredPush  # set by itself

    def look(self, now: float) -> None:
        """There is a reason to."""
        if self._probe.start(now):
            self._ask()

    def disconnected(self, now: float) -> None:
        self._rest()

    def handle_timer(self, now: float) -> bool:
        probe = self._probe
        if probe.handle_timer(now):
            self._ask()
        else:
            text = "no server answers whether consumer %s of stream %s exists"
            self._tell(JetStreamNotAvailable(text % (shorten(probe.name), shorten(probe.stream))))
            self._rest()
        return False

    def receive(self, msg: Msg, now: float) -> bool:
        probe = self._probe
        found = probe.receive(msg)
        if found == GONE:
            assert probe.error is not None
            self._fail(ConsumerDeleted(probe.error.code, probe.error.description))
        elif found == THERE:
            assert probe.info is not None
            target = probe.info.config.deliver_subject
            self._rest()
            if target != self._target:
                self._fail(ConsumerMoved(probe.stream, probe.name, target))
        return False

    def pending(self) -> int:
        return 0

    def _ask(self) -> None:
        self.deadline = self._probe.due
        self.order(self._probe.subject, b"", self._inbox)

    def _rest(self) -> None:
        self._probe.stop()
        self.deadline = None

    def _fail(self, error: NatsError) -> None:
        self._rest()
        self.watched.lose(error)

    def _tell(self, error: NatsError) -> None:
        self.watched.tell(PushWarning(error))
        self.watched.ready.append(self.watched)


class MonitoredPush(Push):
    """A Push that has its consumer looked for when there is a reason to doubt that it is there."""

    __slots__ = ("_begun", "_watch")

    def __init__(self, watch: LivenessProbe, **options: Any) -> None:
        super().__init__(**options)
        self._watch = watch
        self._begun = False
        watch.watched = self

    def connected(self, now: float) -> None:
        super().connected(now)
        if self._begun and self._active and not self._heartbeat:
            self._watch.look(now)
        self._begun = True

    def end(self, error: NatsError | None = None) -> bool:
        self._watch.leave()
        return super().end(error)

    def lose(self, error: NatsError) -> None:
        """The consumer is gone, and all that came of it can still be taken."""
        if self._active:
            self._fail(error)
            self.ready.append(self)

    def _alarm(self, error: NatsError, now: float) -> None:
        super()._alarm(error, now)
        self._watch.look(now)
