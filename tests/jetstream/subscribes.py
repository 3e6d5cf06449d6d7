"""subscribe() on a client whose server is a list of answers."""

from __future__ import annotations

import itertools

from jetstream import JetStream
from natsproto import Parser
from natsproto.errors import (
    NatsError,
)
from natsproto.wire.frames import Pub, Sub, Unsub
from tests.jetstream.support import Stage

NAME = "1" * 22  # the tokens of the scripted randomness after the first one
TOKEN = "0" * 22
ABSENT = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
EXISTS = {"error": {"code": 400, "err_code": 10148, "description": "consumer already exists"}}
NO_STREAM = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
DENIED = {"error": {"code": 500, "err_code": 10009, "description": "no leader"}}
DONE = {"success": True}


class Cancelled(BaseException):
    """The exception that an event loop throws into a canceled coroutine."""


class Noting:
    """A parser that records its frames in short form, without the request inbox and watches.

    A liveness probe is subscribed right before its subscription.
    """

    def __init__(self, log):
        self._parser = Parser(peer="client")
        self._log = log
        self._watches = []

    def feed(self, data):
        frames = self._parser.feed(data)
        subs = [each for each in frames if isinstance(each, Sub) and each.subject[-1] != "*"]
        pairs = itertools.pairwise(subs)
        self._watches += [sub.sid for sub, after in pairs if after.sid == sub.sid + 1]
        for frame in frames:
            if isinstance(frame, Pub):
                self._log.append(frame.subject.replace("$JS.API.", ""))
            elif getattr(frame, "sid", 0) in self._watches:
                pass
            elif frame in subs:
                self._log.append(f"SUB {frame.subject} {frame.queue}".strip())
            elif isinstance(frame, Unsub):
                self._log.append("UNSUB")
        return frames


class Listener(Stage):
    """A stage whose `log` also has SUBs and UNSUBs. It can cancel a waiting caller."""

    def __init__(self, *answers, **info):
        super().__init__(*answers, **info)
        self.log = []
        self.cancel_at = 0
        self._parser = Noting(self.log)

    def forget_transport(self):
        super().forget_transport()
        self._parser = Noting(self.log)

    async def wait(self, waitable):
        if self.waits + 1 == self.cancel_at:
            raise Cancelled
        await super().wait(waitable)

    def settle(self):
        """Answer requests until none is left."""
        while self.serve():
            pass

    def deliver(self, subject, *numbers, name="c"):
        """Deliver messages of the consumer, by its sequence."""
        self.serve()
        [sid] = [sid for sid, known in self._subs.items() if known == subject]
        for number in numbers:
            ack = f"$JS.ACK.S.{name}.1.{number}.{number}.1794786953259130270.0"
            self.wire.data(b"MSG s.a %d %s 1\r\nx\r\n" % (sid, ack.encode()))


def consumer(name="c", *, delivered=0, bound=False, **config):
    return {
        "stream_name": "S",
        "name": name,
        "config": {"name": name, "ack_policy": "explicit", **config},
        "delivered": {"consumer_seq": delivered, "stream_seq": delivered},
        "push_bound": bound,
    }


def streams(*names):
    return {"streams": list(names), "total": len(names)}


def begin(*answers, **asked):
    """Return a stage with these answers, the subscription or the error, and the frames sent."""
    stage = Listener(*answers)
    asked.setdefault("subject", "s.a")
    try:
        made = stage.run(JetStream(stage.client).subscribe(**asked))
    except NatsError as error:
        made = error
    stage.settle()
    assert stage.answers == []
    log = list(stage.log)
    stage.log[:] = []
    return stage, made, log


def left(stage):
    """Return machines that are still subscribed."""
    return [
        each
        for each in stage.connection.subscriptions.receivers()
        if each is not stage.connection.requests.inbox
    ]
