"""Cleanup: a machine that deletes a consumer that the server may have created.

A call that is canceled or times out must not wait any longer for the response to its
CONSUMER.CREATE. The consumer that it may have created is looked up afterwards. A CONSUMER.DELETE
alone would not be enough, because the server may process it before the creation.

    asking       CONSUMER.INFO was sent
                 found, ours          CONSUMER.DELETE  -> deleting
                 found, not ours      -> over
                 anything else        again after a pause: it may still be created
    deleting     any response         -> over

A push consumer is ours if it delivers to the subject that the call chose for it (D-JSSUB-12). A
pull consumer is ours by its name (D-ORDERED-29, D-JSSUB-17), unless it is in use: another handle
may have the same `name_prefix`.
"""

from __future__ import annotations

from jetstream.api.client import read_reply
from jetstream.errors import JetStreamError, JetStreamNotAvailable
from jetstream.errors.api import ApiError
from jetstream.schema.consumer_info import ConsumerInfo
from natsproto.connection.receiver import Receiver
from natsproto.errors import LocalError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.api.client import ApiClient
    from natsproto.wire.frames import Msg

_PAUSE = 1.0  # between two lookups
_TRIES = 3


class Cleanup(Receiver):
    """A machine that is subscribed only to `inbox`, and ends its own subscription.

    `target` is the deliver_subject of the consumer; None if its name is enough. `used` means that
    it may have delivered messages.
    """

    __slots__ = ("_deleting", "_inbox", "_path", "_prefix", "_target", "_tries", "_used")

    def __init__(
        self, prefix: str, path: str, target: str | None, inbox: str, used: bool = False
    ) -> None:
        super().__init__()
        self._prefix = prefix
        self._path = path
        self._target = target
        self._used = used
        self._inbox = inbox.encode()
        self._tries = 0
        self._deleting = False

    def connected(self, now: float) -> None:
        self.handle_timer(now)

    def disconnected(self, now: float) -> None:
        self.deadline = None

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self._tries == _TRIES:
            self.leave()
            return False
        self._tries += 1
        self.deadline = now + _PAUSE
        self._call("DELETE" if self._deleting else "INFO")
        return False

    def receive(self, msg: Msg, now: float) -> bool:
        if self._deleting:
            self.leave()
            return False
        try:
            info = ConsumerInfo.from_json(read_reply(msg.data))
        except JetStreamError:
            return False  # the timer sends the request again
        if self._is_ours(info):
            self._deleting = True
            self._call("DELETE")
        else:
            self.leave()
        return False

    def _is_ours(self, info: ConsumerInfo) -> bool:
        if self._target is not None:
            return info.config.deliver_subject == self._target
        return self._used or not (info.delivered.consumer_seq or info.num_waiting)

    def _call(self, verb: str) -> None:
        subject = "%s.CONSUMER.%s.%s" % (self._prefix, verb, self._path)
        self.emit(subject.encode(), b"", self._inbox)

    def pending(self) -> int:
        return 0


def may_exist(error: BaseException) -> bool:
    """Return whether a CONSUMER.CREATE that failed by this error may have created the consumer."""
    return not isinstance(error, (ApiError, JetStreamNotAvailable, LocalError))


def clean_up(
    api: ApiClient, stream: str, name: str, target: str | None = None, *, used: bool = False
) -> None:
    """Start looking for the consumer, and return without waiting."""
    connection = api.session.connection
    if connection.closed:
        return  # the consumer, if it exists, expires by its inactive_threshold or stays
    inbox = connection.new_inbox()
    machine = Cleanup(api.prefix, "%s.%s" % (stream, name), target, inbox, used)
    api.session.attach(machine, inbox)
