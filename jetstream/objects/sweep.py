"""Sweep: a machine that purges what belongs to no object any more, chunks above all.

A put that is cancelled must not wait any longer. What it has sent may be still to come, for servers
queue what is published, and clusters agree on it: so the chunks are purged three times (OBJ-25). If
its info was sent, and nobody said what became of it, that is looked up before: the chunks of an
object must stay. So it is with a deletion.

Whoever has replaced, deleted or renamed an object purges what it leaves. If that is not answered,
it is done by this machine, which asks again on the next connection (OBJ-24).

    pausing      the info may be still to come
    looking      STREAM.MSG.GET of the info is on its way
                 it is there        the chunks go that are nobody's then, if any -> purging
                 another's, none    the chunks of what was to be put go, if any  -> purging
    purging      STREAM.PURGE is on its way, or the pause before the next one
                 the third answer   -> over
                 an error           -> over: it is sealed, or gone

What is not answered, or cannot be done now, is asked again a second later, a few times. Each
question has a reply subject of its own, `<inbox>.<token>`, and only the answer to the last one
counts: a server that was frozen answers all of them at once, and what it has queued comes then.
"""

from __future__ import annotations

from jetstream.api.client import encode_json, read_reply
from jetstream.errors import JetStreamError
from jetstream.errors.api import ApiError, MessageNotFound
from jetstream.machine.base import Machine
from natsproto.connection.waitable import NO_RESPONDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.api.client import ApiClient
    from natsproto.wire.frames import Msg

_PAUSE = 1.0
_TRIES = 10
_PAUSES = (0.05, 1.0)  # after each purge but the last

PAUSING = "pausing"
LOOKING = "looking"
PURGING = "purging"


class Sweep(Machine):
    """Subscribed to `<inbox>.*`; it ends its subscription by itself.

    `target` is the subject of what is to go: all of it, or what is before the sequence `end_seq`.
    `done` when it was purged twice, or nothing is to be purged.
    """

    __slots__ = (
        "_inbox",
        "_path",
        "_prefix",
        "_reply",
        "_rounds",
        "_tries",
        "done",
        "end_seq",
        "expected",
        "state",
        "target",
    )

    def __init__(
        self,
        prefix: str,
        stream: str,
        subject: str,
        end: int,
        expected: ExpectedMeta | None,
        inbox: str,
    ) -> None:
        super().__init__()
        self._prefix = prefix
        self._path = stream
        self._inbox = inbox.encode() + b"."
        self._reply = b""  # of the last question
        self._tries = 0
        self._rounds = 0
        self.target = subject
        self.end_seq = end
        self.expected = expected
        self.state = PURGING if expected is None else PAUSING
        self.done = False

    def connected(self, now: float) -> None:
        if self.state == PAUSING:
            self.deadline = now + _PAUSE
            self.busy.append(self)  # for the timer: nothing is ordered
        else:
            self.handle_timer(now)

    def disconnected(self, now: float) -> None:
        self.deadline = None

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self._tries == _TRIES:
            return self._over()
        self._tries += 1
        if self.state == PAUSING:
            self.state = LOOKING
        self._ask(now)
        return False

    def receive(self, msg: Msg, now: float) -> bool:
        if msg.raw_subject != self._reply or (msg.status == NO_RESPONDERS and not msg.data):
            return False  # the timer asks again
        if self.state == LOOKING:
            return self._found(msg.data, now)
        try:
            read_reply(msg.data)
        except JetStreamError as error:
            return self._failed(error)
        self._rounds += 1
        if self._rounds > len(_PAUSES):
            return self._over()
        self.deadline = now + _PAUSES[self._rounds - 1]
        self.done = self._rounds > 1
        return self.done

    def _found(self, data: bytes, now: float) -> bool:
        assert self.expected is not None
        try:
            there = self.expected.matches(read_reply(data))
        except MessageNotFound:
            there = False
        except JetStreamError as error:
            return self._failed(error)
        if there:
            self.target = self.expected.target
        if not self.target:
            return self._over()
        self.state = PURGING
        self._ask(now)
        return False

    def _ask(self, now: float) -> None:
        self.deadline = now + _PAUSE
        if self.state == LOOKING:
            assert self.expected is not None
            self._call("STREAM.MSG.GET", {"last_by_subj": self.expected.subject})
        else:
            body: dict[str, Any] = {"filter": self.target}
            if self.end_seq:
                body["seq"] = self.end_seq
            self._call("STREAM.PURGE", body)

    def _call(self, verb: str, body: dict[str, Any]) -> None:
        self._reply = self._inbox + self.tokens.next()
        subject = "%s.%s.%s" % (self._prefix, verb, self._path)
        self.emit(subject.encode(), encode_json(body), self._reply)

    def _failed(self, error: JetStreamError) -> bool:
        if isinstance(error, ApiError) and error.code < 500:
            return self._over()
        return False  # the timer asks again

    def _over(self) -> bool:
        self.deadline = None
        self.done = True
        self.leave()
        return True

    def end(self, error: Any = None) -> bool:
        self.done = True
        return super().end(error)

    def pending(self) -> int:
        return 0


class ExpectedMeta:
    """What to look for: the info of this subject and nuid, of an object that is there or `deleted`.

    `target` is the subject of the chunks that belong to nobody if it is so; "" if there are none.
    """

    __slots__ = ("deleted", "nuid", "subject", "target")

    def __init__(self, subject: str, nuid: str, target: str, *, deleted: bool = False) -> None:
        self.subject = subject
        self.nuid = nuid
        self.target = target
        self.deleted = deleted

    def matches(self, reply: dict[str, Any]) -> bool:
        """Whether the message in this answer is the one."""
        import binascii
        import json

        try:
            data = binascii.a2b_base64(reply["message"]["data"])
            info = json.loads(data.decode())
            return info["nuid"] == self.nuid and info.get("deleted", False) is self.deleted
        except (AttributeError, KeyError, TypeError, ValueError):
            return False


def sweep(
    api: ApiClient, stream: str, subject: str, end: int = 0, expected: ExpectedMeta | None = None
) -> Sweep:
    """Begin, without waiting."""
    connection = api.session.connection
    inbox = connection.new_inbox()
    machine = Sweep(api.prefix, stream, subject, end, expected, inbox)
    if connection.closed:
        machine.end()  # there is nobody left to do it
        return machine
    api.session.attach(machine, inbox + ".*")
    return machine
