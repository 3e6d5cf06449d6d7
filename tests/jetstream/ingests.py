"""A fast batch with its effects, and with responses as a server writes them."""

from __future__ import annotations

import json

from jetstream.errors import (
    FastBatchFailed,
)
from jetstream.publish.fast_machine import (
    APPEND,
    OVER,
    START,
    FastBatchMachine,
)
from natsproto.wire.frames import Msg
from tests.effects import publishes

INBOX = b"_INBOX.b"


def ack(number, flow=2):
    return {"type": "ack", "seq": number, "msgs": flow}


def gap(first, seq):
    return {"type": "gap", "last_seq": first, "seq": seq}


def wrong(code, number=0):
    error = {"error": {"code": 400, "err_code": code, "description": "x"}}
    return {"type": "err", "seq": number, **error} if number else {**error, "stream": "S", "seq": 0}


def final(count, batch="b"):
    return {"stream": "S", "seq": 100 + count, "batch": batch, "count": count}


UNKNOWN = wrong(10208)
LARGE = wrong(10054)
REFUSED = wrong(10205)
STALE = 10071
NOBODY = b"NATS/1.0 503\r\n\r\n"


class Batch:
    """The machine with its effects, and with responses as a server writes them."""

    def __init__(
        self, sent=0, *, gaps=False, flow=2, max_acks=2, patience=5.0, election=0.0, online=True
    ):
        self.machine = FastBatchMachine(INBOX, flow, max_acks, gaps, patience, election)
        self.mode = b"ok" if gaps else b"fail"
        self.flow = flow
        if online:
            self.machine.connected(0.0)
        if sent:
            self.send(START)
            self.answer(1, START, ack(0, flow))
            for _ in range(sent - 1):
                self.send()

    def send(self, operation=APPEND, now=0.0):
        subject = b"s.first" if self.machine.sent == 0 else b"s.other"
        self.machine.note_sent(operation, subject, now)

    def answer(self, number, operation, data, now=0.0):
        place = b"%d.%s.%d.%d.$FI" % (self.flow, self.mode, number, operation)
        subject = INBOX + b"." + place
        if data is NOBODY:
            return self.machine.receive(Msg(subject, 1, b"", b"", NOBODY), now)
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        return self.machine.receive(Msg(subject, 1, b"", raw, None), now)

    def orders(self):
        """Return the numbers and operations of its effects: `3.4` is a ping for message 3."""
        orders = publishes(self.machine)
        assert all((order.subject, order.data) == (b"s.first", b"") for order in orders)
        base = b"%s.%d.%s." % (INBOX, self.flow, self.mode)
        assert all(order.reply.startswith(base) for order in orders)
        assert all(order.reply.endswith(b".$FI") for order in orders)
        return [order.reply[len(base) : -4].decode() for order in orders]

    @property
    def losses(self):
        """Return first, last, and the class of the error."""
        return [
            (each.first, each.last, None if each.error is None else type(each.error))
            for each in self.machine.losses
        ]

    @property
    def outcome(self):
        """Return stored, sent, in doubt, and the class of the cause."""
        failure = self.machine.failure
        assert self.machine.state == OVER
        assert isinstance(failure, FastBatchFailed)
        cause = None if failure.cause is None else type(failure.cause)
        return failure.stored, failure.sent, failure.in_doubt, cause
