"""Sweep: a machine that purges messages which no longer belong to an object, mostly chunks.

A canceled put must return at once, but chunks that it has sent may not be stored yet: servers queue
published messages, and clusters replicate them first. So the chunks are purged three times
(OBJ-25). If the info was sent and not acknowledged, the machine looks it up first, because the
chunks of an existing object must stay. A canceled delete is handled in the same way.

A call that replaces, deletes or renames an object purges the old messages itself. If the server
does not respond, this machine does it, and retries on the next connection (OBJ-24).

    pausing      the info may not be stored yet
    looking      STREAM.MSG.GET of the info was sent
                 the expected info  purge the chunks that it makes obsolete, if any -> purging
                 another, or none   purge the chunks of the canceled put, if any    -> purging
    purging      STREAM.PURGE was sent, or the pause before the next one runs
                 third response     -> over
                 an error           -> over: the stream is sealed, or deleted

A request without a response, or with a transient failure, is repeated after a second, a few times.
Each request has its own reply subject, `<inbox>.<token>`, and only the response to the last
one counts: a server that was frozen responds to all of them at once, before it stores the messages
that it has queued.
"""

from __future__ import annotations

from jetstream.api.client import encode_json, is_no_responders, read_reply
from jetstream.errors import JetStreamError
from jetstream.errors.api import ApiError, MessageNotFound
from natsproto.connection.receiver import Receiver

TYPE_CHECKING: bool = False
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


class Sweep(Receiver):
    """Purge a subject in the background; subscribed to `<inbox>.*`, and unsubscribes itself.

    `target` is the subject to purge: all of its messages, or those before the sequence `end_seq`.
    `done` is True after the second purge, or if there is nothing to purge.
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
        self._reply = b""  # of the last request
        self._tries = 0
        self._rounds = 0
        self.target: str = subject
        self.end_seq: int = end
        self.expected: ExpectedMeta | None = expected
        self.state = PURGING if expected is None else PAUSING
        self.done: bool = False

    def connected(self, now: float) -> None:
        if self.state == PAUSING:
            self.deadline = now + _PAUSE
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
        if msg.raw_subject != self._reply or is_no_responders(msg):
            return False  # the timer repeats the request
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
        return False  # the timer repeats the request

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
    """The expected info of an object: its subject, its nuid, and whether it is `deleted`.

    `target` is the subject of the chunks that are orphans if it matches; "" if there are none.
    """

    __slots__ = ("deleted", "nuid", "subject", "target")

    def __init__(self, subject: str, nuid: str, target: str, *, deleted: bool = False) -> None:
        self.subject: str = subject
        self.nuid: str = nuid
        self.target: str = target
        self.deleted: bool = deleted

    def matches(self, reply: dict[str, Any]) -> bool:
        """Return whether the message in this response has the expected info."""
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
    """Start a Sweep without waiting for it."""
    connection = api.session.connection
    inbox = connection.new_inbox()
    machine = Sweep(api.prefix, stream, subject, end, expected, inbox)
    if connection.closed:
        machine.end()  # no connection is left to purge with
        return machine
    api.session.attach(machine, inbox + ".*")
    return machine
