"""Probe: find out by CONSUMER.INFO whether a consumer still exists.

Servers do not always report that a consumer is gone. A pull from a consumer that does not exist
gets 503, and so does a pull from one whose leader is being elected; before 2.11 it gets nothing at
all. A deleted push consumer just stops delivering. So the machines look it up when they have a
reason to:

    idle      start                      send CONSUMER.INFO -> asking
    asking    the consumer               THERE -> idle
              not found                  sent once more after a pause, because a server that has
                                         just started may not know the consumer yet; then GONE
              anything else, or nothing  UNSURE: sent again after the pause; idle after five times

Only "not found" means that the consumer is gone. No leader, JetStream off, a timeout and missing
permissions prove nothing.
"""

from __future__ import annotations

from jetstream.api.client import read_reply
from jetstream.errors import JetStreamError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.errors.api import ApiError
    from jetstream.schema.consumer_info import ConsumerInfo
    from natsproto.wire.frames import Msg

PAUSE = 1.0  # between two requests, and how long to wait for the answer to the last
TRIES = 5
ABSENT = 2  # how many consecutive "not found" responses are conclusive

THERE = "there"
GONE = "gone"
UNSURE = "unsure"


class Probe:
    """The request and the state of one lookup. The machine that owns it sends and receives.

    `subject` is where to send the request; `due` is when to call `handle_timer`, None while idle.
    `info` and `error` are the last answer.
    """

    __slots__ = (
        "_absent",
        "_endpoint",
        "_tries",
        "due",
        "error",
        "info",
        "name",
        "stream",
        "subject",
    )

    def __init__(self, prefix: str, stream: str, name: str) -> None:
        self._endpoint = "CONSUMER.INFO.%s.%s" % (stream, name)
        self._tries = 0  # 0: idle
        self._absent = 0
        self.stream: str = stream
        self.name: str = name
        self.subject: bytes = ("%s.%s" % (prefix, self._endpoint)).encode()
        self.due: float | None = None
        self.info: ConsumerInfo | None = None
        self.error: ApiError | None = None

    @property
    def asking(self) -> bool:
        return self._tries > 0

    def start(self, now: float) -> bool:
        """Begin a lookup; return True if the request must be sent, False if one is in progress."""
        if self._tries:
            return False
        self._absent = 0
        self._send(now)
        return True

    def handle_timer(self, now: float) -> bool:
        """Return True if the request must be sent again, False if the lookup was inconclusive."""
        if self._tries == TRIES:  # D-CONSUME-24
            self.stop()
            return False
        self._send(now)
        return True

    def receive(self, msg: Msg) -> str:
        """Return the meaning of an answer: THERE, GONE or UNSURE."""
        if not self._tries:
            return UNSURE  # too late
        # Imported here: few consumers are ever looked up.
        from jetstream.errors.api import ConsumerNotFound, StreamNotFound
        from jetstream.schema.consumer_info import ConsumerInfo

        try:
            self.info = ConsumerInfo.from_json(read_reply(msg.data))
        except (ConsumerNotFound, StreamNotFound) as error:
            self._absent += 1
            if self._absent < ABSENT:
                return UNSURE
            error.asked = self._endpoint
            self.error = error
            self.stop()
            return GONE
        except JetStreamError:
            self._absent = 0
            return UNSURE
        self.stop()
        return THERE

    def stop(self) -> None:
        """Abandon the lookup, or end it."""
        self._tries = 0
        self.due = None

    def _send(self, now: float) -> None:
        self._tries += 1
        self.due = now + PAUSE
