"""Watch: whether the consumer of a push subscription is still there, and still delivers to it.

A server does not tell push subscribers that their consumer is gone: nothing comes any more, as if
there was nothing to come. So the consumer is looked for when there is a reason (JSSUB-16):

    an alarm       with heartbeats: the server was silent
    a reconnect    without them: nothing else would tell; an ephemeral consumer may be gone

    idle           look                      CONSUMER.INFO -> asking
    asking         there, delivers to us     -> idle
                   there, delivers elsewhere the subscription fails: ConsumerMoved
                   not there                 asked once more, after a while, as a server that has
                                             just started may not know yet; then ConsumerDeleted
                   no answer, or no use      asked again after a while; after five tries the user
                                             is told -> idle
"""

from __future__ import annotations

from .api_errors import ConsumerNotFound, StreamNotFound
from .call import read_reply
from .errors import ConsumerDeleted, ConsumerMoved, JetStreamError, JetStreamNotAvailable
from .info import ConsumerInfo
from .machine import Machine
from .push import Push, PushWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.errors import NatsError
    from natsproto.frames import Msg

_PAUSE = 1.0  # between two looks
_TRIES = 5
_ABSENT = 2  # times not found: it is gone


class Watch(Machine):
    """Subscribed to `inbox`, for as long as what it watches over."""

    __slots__ = (
        "_absent",
        "_inbox",
        "_name",
        "_stream",
        "_subject",
        "_target",
        "_tries",
        "watched",
    )

    def __init__(self, prefix: str, stream: str, name: str, target: str, inbox: str) -> None:
        super().__init__()
        self._subject = ("%s.CONSUMER.INFO.%s.%s" % (prefix, stream, name)).encode()
        self._stream = stream
        self._name = name
        self._target = target
        self._inbox = inbox.encode()
        self._tries = 0  # since there is a reason; 0: idle
        self._absent = 0
        self.watched: WatchedPush  # set by itself

    def look(self, now: float) -> None:
        """There is a reason to."""
        if not self._tries:
            self._absent = 0
            self._ask(now)

    def disconnected(self, now: float) -> None:
        self._rest()

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self._tries == _TRIES:
            text = "nobody tells whether consumer %r of stream %r is there"
            self._tell(JetStreamNotAvailable(text % (self._name, self._stream)))
            self._rest()
        else:
            self._ask(now)
        return False

    def receive(self, msg: Msg, now: float) -> bool:
        if not self._tries:
            return False  # too late
        try:
            info = ConsumerInfo.from_json(read_reply(msg.data))
        except (ConsumerNotFound, StreamNotFound) as error:
            self._absent += 1
            if self._absent == _ABSENT:
                self._fail(ConsumerDeleted(error.code, error.description))
        except JetStreamError:
            pass  # the timer asks again
        else:
            target = info.config.deliver_subject
            self._rest()
            if target != self._target:
                self._fail(ConsumerMoved(self._stream, self._name, target))
        return False

    def pending(self) -> int:
        return 0

    def _ask(self, now: float) -> None:
        self._tries += 1
        self.deadline = now + _PAUSE
        self.order(self._subject, b"", self._inbox)

    def _rest(self) -> None:
        self._tries = 0
        self.deadline = None

    def _fail(self, error: NatsError) -> None:
        self._rest()
        self.watched.lose(error)

    def _tell(self, error: NatsError) -> None:
        self.watched.tell(PushWarning(error))
        self.watched.ready.append(self.watched)


class WatchedPush(Push):
    """A Push that has its consumer looked for when there is a reason to doubt that it is there."""

    __slots__ = ("_begun", "_watch")

    def __init__(self, watch: Watch, **options: Any) -> None:
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
