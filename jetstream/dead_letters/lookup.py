"""Lookup: a machine that gets a stored message, even while the stream has no leader.

    state      input                            next state, effect
    idle       start                            asking: STREAM.MSG.GET
    asking     the message                      found
               no such message, or stream       found, without a message: it is gone
               another response, or none        asking: STREAM.MSG.GET again, after a pause
               the same for the last time       failed: TimeoutExpired
               disconnected                     offline
    offline    connected                        asking: STREAM.MSG.GET
    found      finish                           idle
    failed     finish                           idle

The leader is asked, because a replica may not have the message yet. A new leader may take half a
minute to be elected; time without a connection does not count (D-DEAD-5).
"""

from __future__ import annotations

from jetstream.api.client import encode_json, read_reply
from jetstream.api.stored import read_stored
from jetstream.errors import JetStreamError
from jetstream.errors.api import MessageNotFound, StreamNotFound
from natsproto.connection.receiver import Receiver
from natsproto.errors import TimeoutExpired
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.api.stored import StoredMsg
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

PAUSE = 1.0  # between two requests
TRIES = 40  # longer than an election takes

IDLE = "idle"
ASKING = "asking"
OFFLINE = "offline"
FOUND = "found"
FAILED = "failed"


class Lookup(Receiver):
    """Subscribed to `<inbox>.*`. `message` is the result of the last lookup, None if it is gone."""

    __slots__ = (
        "_body",
        "_inbox",
        "_online",
        "_reply",
        "_seq",
        "_stream",
        "_subject",
        "_tries",
        "failure",
        "message",
        "state",
    )

    def __init__(self, prefix: str, stream: str, inbox: str) -> None:
        super().__init__()
        self._stream = stream
        self._subject = ("%s.STREAM.MSG.GET.%s" % (prefix, stream)).encode()
        self._inbox = inbox.encode()
        self._online = False
        self._seq = 0
        self._body = b""
        self._reply = b""
        self._tries = 0
        self.state: str = IDLE
        self.message: StoredMsg | None = None
        self.failure: NatsError | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.state in (FOUND, FAILED)

    def start(self, seq: int, now: float) -> None:
        """Get the message with this sequence; continue if the lookup is already in progress."""
        if self.state in (ASKING, OFFLINE) and seq == self._seq:
            return
        self._seq = seq
        self._body = encode_json({"seq": seq})
        self._reply = b"%s.%s" % (self._inbox, self.tokens.next())
        self._tries = 0
        self.message = None
        self.failure = None
        if self._online:
            self._ask(now)
        else:
            self.state = OFFLINE

    def finish(self) -> StoredMsg | None:
        """Return the message, None if it is gone, or raise the error; allow the next lookup."""
        self.state = IDLE
        if self.failure is not None:
            raise self.failure
        return self.message

    def connected(self, now: float) -> None:
        self._online = True
        if self.state == OFFLINE:
            self._ask(now)

    def disconnected(self, now: float) -> None:
        self._online = False
        if self.state == ASKING:
            self.state = OFFLINE
            self.deadline = None

    def receive(self, msg: Msg, now: float) -> bool:
        if self.state != ASKING or msg.raw_subject != self._reply:
            return False  # the answer to an earlier request
        try:
            self.message = read_stored(self._stream, read_reply(msg.data))
        except (MessageNotFound, StreamNotFound):
            self.message = None  # D-DEAD-4, DEAD-2
        except JetStreamError:
            return False  # the timer sends the request again
        self._end(FOUND)
        return True

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self._tries < TRIES:
            self._ask(now)
            return False
        text = "no answer to STREAM.MSG.GET of message %d of stream %s in %d s"
        self.failure = TimeoutExpired(text % (self._seq, shorten(self._stream), TRIES * PAUSE))
        self._end(FAILED)
        return True

    def end(self, error: NatsError | None = None) -> bool:
        self.deadline = None  # D-DEAD-5: nobody waits for the answer anymore
        return super().end(error)

    def pending(self) -> int:
        return 0

    def _ask(self, now: float) -> None:
        self.state = ASKING
        self._tries += 1
        self.deadline = now + PAUSE
        self.emit(self._subject, self._body, self._reply)

    def _end(self, state: str) -> None:
        self.state = state
        self.deadline: float | None = None
