"""Which earlier frame a frame belongs to: a response to its request, a message to its pull, ...

PONG                        the oldest PING of the other side
a message on a reply        the request with that reply subject
a delivery                  the oldest open pull of its subscription (PULL-7)
a status                    the pull with that reply subject, which it ends unless it is a 100
an acknowledgment           the delivery with that reply subject
a flow control response     the request with that reply subject
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from natsproto.wire.frames import Msg, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.subjects import matches

if TYPE_CHECKING:
    from natsproto.explain import Note
    from natsproto.wire.frames import Frame

KEPT = 1000  # of each kind: the trace of a long-lived client must not grow without limit
Value = TypeVar("Value")


class _Newest(OrderedDict[str, Value], Generic[Value]):
    """A dict of the newest entries."""

    def __setitem__(self, key: str, value: Value) -> None:
        super().__setitem__(key, value)
        if len(self) > KEPT:
            self.popitem(last=False)


class _Pull:
    def __init__(self, number: int, batch: int) -> None:
        self.number = number
        self.left = batch


class Pairs:
    """Pairs the frames of one connection, which have consecutive numbers (D-PROXY-3)."""

    def __init__(self) -> None:
        self._pings: dict[bool, list[int]] = {True: [], False: []}
        self._requests: _Newest[int] = _Newest()
        self._pulls: _Newest[_Pull] = _Newest()
        self._deliveries: _Newest[int] = _Newest()
        self._subjects: dict[int, str] = {}

    def pair(self, number: int, frame: Frame, note: Note, sent: bool) -> int:
        """Record a frame and return the number of the earlier one; 0 if there is none."""
        if isinstance(frame, Ping):
            del self._pings[sent][:-KEPT]
            self._pings[sent].append(number)
        elif isinstance(frame, Pong):
            open_pings = self._pings[not sent]
            return open_pings.pop(0) if open_pings else 0
        elif isinstance(frame, Sub):
            self._subjects[frame.sid] = frame.subject
        elif isinstance(frame, Unsub) and not frame.after:
            self._subjects.pop(frame.sid, None)
        elif isinstance(frame, Pub):
            return self._published(number, frame, note)
        elif isinstance(frame, Msg):
            return self._delivered(number, frame, note)
        return 0

    def _published(self, number: int, pub: Pub, note: Note) -> int:
        if note.kind == "pull request":
            self._pulls[pub.reply] = _Pull(number, _batch(pub.data))
        elif pub.raw_reply:
            self._requests[pub.reply] = number
        if note.kind in ("ack", "flow control"):
            return self._deliveries.get(pub.subject, 0)
        return 0

    def _delivered(self, number: int, msg: Msg, note: Note) -> int:
        if note.kind in ("delivery", "flow control"):
            self._deliveries[msg.reply] = number
        pull = self._pulls.get(msg.subject)
        if pull is not None:
            if note.kind == "status":
                del self._pulls[msg.subject]
            return pull.number
        if note.kind == "delivery":
            return self._from_pull(msg)
        return self._requests.get(msg.subject, 0)

    def _from_pull(self, msg: Msg) -> int:
        subject = self._subjects.get(msg.sid, "")
        for reply, pull in self._pulls.items():
            if subject and (reply == subject or matches(subject, reply)):
                pull.left -= 1
                if not pull.left:
                    del self._pulls[reply]
                return pull.number
        return 0


def _batch(data: bytes) -> int:
    try:
        body: Any = json.loads(data or b"{}")
        return int(body.get("batch", 1) if hasattr(body, "get") else body)
    except (ValueError, TypeError):
        return 1
