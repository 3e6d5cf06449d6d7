"""LivenessProbe: check that the consumer of a push subscription exists and delivers to it.

A server does not notify push subscribers that their consumer is gone: messages just stop,
as if there were none to send. So the policy of the subscription (policy.py) has the consumer looked
up when there is a reason to (JSSUB-16):

    idle      look                               send CONSUMER.INFO -> asking
    asking    it exists, and delivers here       -> idle
              it exists, and delivers elsewhere  the subscription ends: ConsumerMoved -> idle
              it is gone                         the subscription ends: ConsumerDeleted -> idle
              no useful answer after five tries  the user is notified: PushWarning -> idle
              disconnected                       -> idle

The request and its repetition are those of machine/probe.py.
"""

from __future__ import annotations

from jetstream.errors import ConsumerDeleted, ConsumerMoved, JetStreamNotAvailable
from jetstream.events import PushWarning
from jetstream.machine.probe import GONE, THERE, Probe
from natsproto.connection.effects import Poke, Wake
from natsproto.connection.receiver import Receiver
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .machine import Push


class LivenessProbe(Receiver):
    """A receiver that is subscribed to `inbox` as long as the subscription that it checks.

    `target` is the subject of that subscription.
    """

    __slots__ = ("_inbox", "_probe", "_subscription", "_target")

    def __init__(self, prefix: str, stream: str, name: str, target: str, inbox: str) -> None:
        super().__init__()
        self._probe = Probe(prefix, stream, name)
        self._target = target
        self._inbox = inbox.encode()
        self._subscription: Push | None = None

    def watch(self, subscription: Push) -> None:
        """Report to this subscription."""
        self._subscription = subscription

    def look(self, now: float) -> None:
        """Look up the consumer, unless a lookup is in progress."""
        if self._probe.start(now):
            self._ask()

    def disconnected(self, now: float) -> None:
        self._rest()

    def handle_timer(self, now: float) -> bool:
        probe = self._probe
        if probe.handle_timer(now):
            self._ask()
        else:
            text = "could not determine whether consumer %s of stream %s exists"
            self._warn(JetStreamNotAvailable(text % (shorten(probe.name), shorten(probe.stream))))
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
        self.emit(self._probe.subject, b"", self._inbox)

    def _rest(self) -> None:
        self._probe.stop()
        self.deadline = None

    def _fail(self, error: NatsError) -> None:
        self._rest()
        assert self._subscription is not None
        self._subscription.lose(error)
        self.effects.append(Poke(self._subscription))

    def _warn(self, error: NatsError) -> None:
        subscription = self._subscription
        assert subscription is not None
        subscription.events.add(PushWarning(error))
        self.effects.append(Wake([subscription]))
