"""A model of a stream that accepts fast batches, as clients see it.

A message that is taken is stored after a while, in order. A replicated stream has followers that
learn of what is stored: a leader that comes of them knows of a batch only its last stored message.
tests/sim/test_fast_model.py plays the same dialogues with it and with a real server.
"""

from __future__ import annotations

import json
from collections import OrderedDict

from natsproto.testing.sim.peer import status_block

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.testing.sim.peer import Peer
    from natsproto.wire.frames import Pub

    from .pull_model import Clock

APPEND, COMMIT, END, PING = 1, 2, 3, 4
FORGET_AFTER = 10.0
UNKNOWN = (400, 10208, "batch publish ID unknown")
TOO_LARGE = (400, 10054, "message size exceeds maximum allowed")
REFUSALS = [(503, 10023, "insufficient resources"), (429, 10167, "too many requests")]


def _json(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _error(code: tuple[int, int, str]) -> dict[str, Any]:
    return {"code": code[0], "err_code": code[1], "description": code[2]}


def header(block: bytes | None, name: bytes) -> bytes:
    """Return the value of a header."""
    return (block or b"").partition(name + b": ")[2].partition(b"\r\n")[0]


class Message:
    """One message of a batch, or something of the same form: its end, a ping."""

    __slots__ = ("block", "data", "flow", "gaps", "id", "number", "operation", "reply")

    def __init__(self, reply: bytes, block: bytes | None, data: bytes) -> None:
        self.reply: bytes = reply
        words = reply.split(b".")
        assert words[-1] == b"$FI", reply
        self.id: str = words[-6].decode()
        self.flow: int = int(words[-5])
        self.gaps: bool = words[-4] == b"ok"
        self.number: int = int(words[-3])
        self.operation: int = int(words[-2])
        self.block: bytes | None = block
        self.data: bytes = data

    @property
    def msg_id(self) -> bytes:
        """The id by which a stream recognizes the message."""
        return header(self.block, b"Nats-Msg-Id")


class Batch:
    """A server's state of a batch. The last received number is at least the last stored one."""

    __slots__ = (
        "came",
        "ending",
        "flow",
        "gaps",
        "id",
        "most",
        "pending",
        "reply",
        "seq",
        "stored",
        "told",
        "touched",
    )

    def __init__(self, message: Message, now: float) -> None:
        self.id: str = message.id
        self.gaps: bool = message.gaps
        self.most: int = message.flow
        self.flow: int = 1
        self.came: int = 0
        self.stored: int = 0
        self.told: int = 0  # the last acknowledgement
        self.pending: int = 0  # messages that came and are not yet stored
        self.seq: int = 0  # in the stream
        self.reply: bytes = message.reply  # of the last stored one
        self.ending: bool = False
        self.touched: float = now


class FastModel:
    """The stream, its leader, and the state of its followers."""

    def __init__(self, clock: Clock, name: str = "S", **config: Any) -> None:
        self._clock = clock
        self.name: str = name
        self.max_size: int = config.get("max_size", 1 << 20)
        self.capacity: int = config.get("capacity", 500)  # messages for all batches
        self.delay: float = config.get("delay", 0.0)  # until a message is stored
        self.replicated: bool = config.get("replicated", False)
        self.pings_begin: bool = config.get("pings_begin", False)  # as before 2.15.0 was out
        self.batches: dict[str, Batch] = {}
        self.followers: dict[str, Batch] = {}
        self.stored: list[Message] = []
        self.ids: dict[bytes, int] = {}  # and where they are; 0 if they are on their way
        self.on_the_way: list[Message] = []
        self.relied: int = 0  # so many on their way have been taken as known
        self.safe: int = 0  # so many of those that are stored, are acknowledged
        self.leader: bool = True
        self.silent: bool = False  # without a leader, nobody says so
        self.frozen: bool = False  # it leads, and does nothing
        self.refusing: tuple[int, int, str] | None = None
        self.era: int = 0  # leaders and lives
        self.before_loss: Callable[[], None] | None = None  # what happens before one is told
        self._peers: OrderedDict[Peer, int] = (
            OrderedDict()
        )  # and the era in which they were last alive
        self._queue: list[Message] = []  # what came while it was frozen
        self._free_at = 0.0

    @property
    def now(self) -> float:
        """The simulated time."""
        return self._clock.now

    # What clients do

    def subscribed(self, peer: Peer) -> None:
        """Handle SUB."""
        self._peers[peer] = self.era

    def published(self, peer: Peer, pub: Pub) -> None:
        """Handle a message of a batch."""
        assert pub.raw_subject == b"s.x", f"nobody asked for {pub.raw_subject!r}"
        if peer.alive:
            self._peers[peer] = self.era
        elif self._peers[peer] != self.era:
            # A follower does not know that a batch was ended for a gap, and would take what comes
            # after all. No client can help that: what is left of a connection goes no farther.
            return
        message = Message(pub.raw_reply, pub.raw_headers, pub.data)
        if not self.leader:
            if not self.silent:
                block = status_block("503", header=f"Nats-Subject: {pub.subject}\r\n")
                self._deliver(message.reply, block, b"")
        elif self.frozen:
            self._queue.append(message)
        else:
            self.take(message)

    def _deliver(self, reply: bytes, block: bytes | None, data: bytes) -> None:
        for peer in self._peers:
            peer.deliver(reply, reply, b"", block, data)

    def _answer(self, reply: bytes, **fields: Any) -> None:
        if self.before_loss is not None and fields.get("type") in ("gap", "err"):
            self.before_loss()
        self._deliver(reply, None, _json(**fields))

    def _refuse(self, message: Message, code: tuple[int, int, str]) -> None:
        self._answer(message.reply, error=_error(code), stream=self.name, seq=0)

    # What the leader does with a message

    def take(self, message: Message) -> None:
        """Handle a message as the leader does."""
        if self.refusing:
            return self._refuse(message, self.refusing)
        if len(message.block or b"") + len(message.data) > self.max_size:
            return self._refuse(message, TOO_LARGE)
        batch = self._find(message)
        if batch is None:
            return self._refuse(message, UNKNOWN)
        batch.touched = self.now
        if message.operation == PING:
            return self._pinged(batch, message)
        if batch.ending or not self._in_order(batch, message):
            return None
        if message.operation in (COMMIT, END):
            if message.operation == END:
                batch.came -= 1
                self._catch_up(batch)
            self._commit(batch, message.reply)
            if message.operation == END:
                return None
        elif message.number == 1:
            self._answer(message.reply, type="ack", seq=0, msgs=batch.flow)
        return self._check(batch, message)

    def _find(self, message: Message) -> Batch | None:
        for each in list(self.batches.values()):
            if not each.ending and self.now >= each.touched + FORGET_AFTER:
                del self.batches[each.id]
        batch = self.batches.get(message.id)
        begins = message.number == 1 and (message.operation != PING or self.pings_begin)
        if batch is None and begins:
            batch = self.batches[message.id] = Batch(message, self.now)
            self._init_flow(batch)
        return batch

    def _init_flow(self, batch: Batch) -> None:
        batch.flow = min(self.capacity, batch.most) if len(self.batches) == 1 else 1

    def _pinged(self, batch: Batch, message: Message) -> None:
        if message.number > batch.came:
            gap = {"last_seq": batch.came + 1, "seq": message.number + 1}
            self._answer(message.reply, type="gap", **gap)
            if not batch.gaps:
                if not self._commit(batch, message.reply):
                    self._acknowledge(batch, message.reply)
                return
            batch.came = message.number
            self._catch_up(batch)
            if self._flow(batch, message.reply):
                return
        self._acknowledge(batch, message.reply)

    def _in_order(self, batch: Batch, message: Message) -> bool:
        """Whether the message is the next one; a gap ends the batch, unless it allows gaps."""
        expected = batch.came + 1
        if message.number != expected:
            self._answer(message.reply, type="gap", last_seq=expected, seq=message.number)
            if not batch.gaps or message.number < expected:
                self._commit(batch, message.reply)
                return False
        batch.came = message.number
        return True

    def _check(self, batch: Batch, message: Message) -> None:
        last = len(self.stored) + len(self.on_the_way)
        expected = header(message.block, b"Nats-Expected-Last-Sequence")
        if message.msg_id in self.ids:
            return self._known(batch, message)
        if expected and int(expected) != last:
            return self._wrong(batch, message, (400, 10071, f"wrong last sequence: {last}"))
        batch.pending += 1
        if message.msg_id:
            self.ids[message.msg_id] = 0
        self.on_the_way.append(message)
        if self.delay or self.on_the_way[0] is not message:
            self._free_at = max(self._free_at, self.now + self.delay)
            era = self.era
            self._clock.at(self._free_at, lambda: self._store() if era == self.era else None)
        else:
            self._store()
        return None

    def _known(self, batch: Batch, message: Message) -> None:
        """Its id is known: it is as good as stored."""
        seq = self.ids[message.msg_id]
        if not seq:
            ids = [each.msg_id for each in self.on_the_way]
            self.relied = max(self.relied, ids.index(message.msg_id) + 1)
        if not batch.pending:
            batch.stored = message.number
            self._flow(batch, message.reply)
        if message.operation != COMMIT:
            return
        if not batch.gaps and batch.came == 1:
            del self.batches[batch.id]
            ack = b'{"stream":"%s","seq":%d,"duplicate": true,"batch":"%s","count":1}'
            values = (self.name.encode(), seq, batch.id.encode())
            self._deliver(message.reply, None, ack % values)
        else:
            self._commit(batch, message.reply)

    def _wrong(self, batch: Batch, message: Message, code: tuple[int, int, str]) -> None:
        if not batch.gaps and batch.came == 1:
            del self.batches[batch.id]
            return self._refuse(message, code)
        self._answer(message.reply, type="err", seq=message.number, error=_error(code))
        if not batch.gaps or message.operation == COMMIT:
            batch.came -= 1
            self._catch_up(batch)
            self._commit(batch, message.reply)
        return None

    # What becomes of messages

    def _store(self) -> None:
        """The next one on the way is stored."""
        message = self.on_the_way.pop(0)
        self.stored.append(message)
        seq = len(self.stored)
        if self.relied:
            self.relied -= 1
            self.safe = seq
        if message.msg_id:
            self.ids[message.msg_id] = seq
        if self.replicated:
            self._follow(message, seq)
        batch = self.batches.get(message.id)
        if batch is None:
            return
        batch.reply = message.reply
        batch.seq = seq
        batch.pending -= 1
        batch.stored = batch.came if not batch.pending else message.number
        if batch.ending and batch.stored == batch.came:
            self._finish(batch, message.reply)
        else:
            self._flow(batch, message.reply)

    def _follow(self, message: Message, seq: int) -> None:
        if message.operation == COMMIT:
            self.followers.pop(message.id, None)
            return
        batch = self.followers[message.id] = Batch(message, self.now)
        batch.came = batch.stored = batch.told = message.number
        batch.seq = seq

    def _catch_up(self, batch: Batch) -> None:
        """Skip messages that arrived and were not stored."""
        if not batch.pending:
            batch.stored = batch.came

    def _flow(self, batch: Batch, reply: bytes) -> bool:
        """An acknowledgement, if one is due; the flow goes towards a fair share."""
        if batch.stored < batch.told + batch.flow:
            return False
        batch.told += (batch.stored - batch.told) // batch.flow * batch.flow
        share = min(batch.most, max(1, self.capacity // len(self.batches)))
        if batch.flow < share:
            batch.flow = min(2 * batch.flow, share)
        elif batch.flow > share:
            batch.flow = max(batch.flow // 2, share)
        self._acknowledge(batch, reply)
        return True

    def _acknowledge(self, batch: Batch, reply: bytes) -> None:
        if batch.told:
            self.safe = len(self.stored)
        self._answer(reply, type="ack", seq=batch.told, msgs=batch.flow)

    def _commit(self, batch: Batch, reply: bytes) -> bool:
        """Accept no more messages; the batch ends when all that arrived are stored."""
        batch.ending = True
        if batch.came == batch.stored:
            self._finish(batch, reply)
            return True
        return False

    def _finish(self, batch: Batch, reply: bytes) -> None:
        del self.batches[batch.id]
        self.safe = len(self.stored)
        self._answer(reply, stream=self.name, seq=batch.seq, batch=batch.id, count=batch.came)

    # What happens to servers

    def freeze(self) -> None:
        """Stop all activity; frames that arrive wait."""
        self.frozen = True

    def thaw(self) -> None:
        """Handle the messages that have arrived in the meantime."""
        self.frozen = False
        queue, self._queue = self._queue, []
        for message in queue:
            self.take(message)

    def step_down(self, survive: int, silent: bool) -> None:
        """Remove the leader: the first messages in flight are stored, the others are lost."""
        self.leader = False
        self.silent = silent
        self._queue = []
        self.era += 1
        # A message that was taken as known counts on one that is still on its way, maybe of
        # another batch. That it may be lost is the server's affair.
        lost = self.on_the_way[max(survive, self.relied) :]
        for message in lost:
            self.ids.pop(message.msg_id, None)
            self.on_the_way.remove(message)
        self.batches = {}
        while self.on_the_way:
            self._store()

    def elect(self) -> None:
        """Make a follower the leader, which reports its position to the batches that it knows."""
        self.leader = True
        self._free_at = self.now
        alive = [each for each in self.followers.values() if self.now < each.touched + FORGET_AFTER]
        self.batches = {each.id: each for each in alive}
        self.followers = {each.id: self._copy(each) for each in alive}
        for batch in alive:
            self._init_flow(batch)
            batch.touched = self.now
            self._acknowledge(batch, batch.reply)

    def _copy(self, batch: Batch) -> Batch:
        twin = Batch(Message(batch.reply, None, b""), batch.touched)
        twin.came = twin.stored = twin.told = batch.stored
        twin.seq = batch.seq
        return twin

    def crash(self, lose: int) -> None:
        """Crash a single server: batches are lost, and so may be messages not yet acknowledged."""
        self.era += 1
        self._queue = []
        self.batches = {}
        self.followers = {}
        if self.relied:
            self.stored += self.on_the_way[: self.relied]
            self.safe = len(self.stored)
        del self.stored[max(self.safe, len(self.stored) - lose) :]
        self.on_the_way = []
        self.relied = 0
        self.ids = {each.msg_id: seq for seq, each in enumerate(self.stored, 1) if each.msg_id}
        self._free_at = self.now
