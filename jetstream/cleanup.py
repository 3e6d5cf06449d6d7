"""Cleanup: a machine that deletes a consumer of which nobody knows whether it was created.

A call that is cancelled, or whose answer does not come, must not wait any longer. What it may have
created is looked for afterwards, and deleted if it delivers to the subject that the call had chosen
for it: nobody else's does (JSSUB-12).

    asking       CONSUMER.INFO is on its way
                 found, ours          CONSUMER.DELETE  -> deleting
                 found, not ours      -> over
                 anything else        again after a while: in a cluster it may be still to come
    deleting     any answer           -> over
"""

from __future__ import annotations

from .call import read_reply
from .errors import JetStreamError
from .info import ConsumerInfo
from .machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.frames import Msg

    from .call import Api

_PAUSE = 1.0  # between two looks
_TRIES = 3


class Cleanup(Machine):
    """Subscribed to `inbox` alone; it ends its subscription by itself."""

    __slots__ = ("_deleting", "_inbox", "_path", "_prefix", "_target", "_tries")

    def __init__(self, prefix: str, path: str, target: str, inbox: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._path = path
        self._target = target
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
            return False  # the timer asks again
        if info.config.deliver_subject == self._target:
            self._deleting = True
            self._call("DELETE")
        else:
            self.leave()
        return False

    def _call(self, verb: str) -> None:
        subject = "%s.CONSUMER.%s.%s" % (self._prefix, verb, self._path)
        self.order(subject.encode(), b"", self._inbox)

    def pending(self) -> int:
        return 0


def clean_up(api: Api, stream: str, name: str, target: str) -> None:
    """Begin, without waiting."""
    connection = api.session.connection
    if connection.closed:
        return  # whatever there is goes by its inactive_threshold, or stays
    inbox = connection.new_inbox()
    machine = Cleanup(api.prefix, "%s.%s" % (stream, name), target, inbox)
    connection.subscribe(inbox, machine)
    api.session.begin(machine)
