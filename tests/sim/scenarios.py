"""The behavior of the client in each mode, and the invariants I1 to I14.

I1   0 <= asked <= the limit, in messages and bytes; when nothing is under way it is exactly what
     the server owes, unless there were silent faults
I2   asked and buffered are never above the limit, on the server's side either, unless silent
     faults made the client give up pulls that the server still has
I3   no reply subject is used for two pulls
I4   never stuck: an open pull, a pause, or something in the buffer; in the end all messages arrive
I5   after faults that were announced the server has a pull again soon, without missed heartbeats
I6   a heartbeat is missed after two of them, not earlier and not later, and only while connected
I7   no more than 20 pulls a second bring nothing
I8   what was received is taken, returned or kept
I9   one acknowledgement for each delivery
I10  an iteration does not end, and raises nothing, but for what the scenario did
I11  messages that look like statuses arrive like others
I12  nothing but NatsErrors (any other exception ends the run)
I13  at the end nothing is left behind: subscriptions, orders, deadlines
I14  the same seed gives the same run (test_sim.py)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    ConsumerDeleted,
    HeartbeatMissed,
    NoStreamResponse,
    PublishesFailed,
    PublishInDoubt,
)
from jetstream.events import PullWarning
from jetstream.message import JsMsg
from jetstream.publish.window import PublishWindow
from jetstream.publish.window_machine import Publication
from jetstream.pull.api import Puller
from jetstream.pull.consume import Consume
from jetstream.pull.messages import Messages
from jetstream.testing.sim.pull_model import Model
from natsproto.errors import ConnectionClosed, PendingBufferFull
from tests.effects import will_publish
from tests.sim.world import Task, World, require

if TYPE_CHECKING:
    pass

ANNOUNCED = ["cut", "election", "shutdown", "stall"]
SILENT = ["silence", "hole", "kill", "lost_pull", "crowd"]
LONGEST_ABSENCE = 2.0
ROUNDING = 0.001  # seconds by which equal times may differ
LOOKUP = re.compile(rb"H?MSG _INBOX\.\w+\.i\w+ ")  # the answer to one is no heartbeat


class Pulls(World):
    """The part that fetch and consume share: a stream that is filled and must be emptied."""

    def begin(self) -> None:
        rng = self.rng
        self.count = rng.randrange(1, 13)
        self.expires = rng.choice((1.0, 2.0, 4.0))
        self.handling = rng.choice((0.0, 0.0, 0.01, 0.2))
        self.model = self.make_model(
            ack_wait=3.0,
            max_ack_pending=rng.choice((2, 5, 1000)),
            max_waiting=rng.choice((1, 2, 512, 512)),
        )
        for _ in range(self.count):
            self.at(rng.choice((0.0, rng.uniform(0.0, 3.0))), self._add)
        self.left_to_add = self.count
        self.puller = Puller(self, "S", "C", False, self.pinned)  # type: ignore[arg-type]
        self.taken = 0
        self.acked = 0
        faults = ANNOUNCED if rng.random() < 0.5 else ANNOUNCED + SILENT
        faults = faults + 2 * list(self.faults)
        self.plan(faults, rng.randrange(4), 4.0)
        self.set_up()

    pinned = False
    patience = 12.0
    faults: tuple[str, ...] = ()  # besides

    def make_model(self, **config: Any) -> Model:
        return Model(self, release=self.release, **config)

    def set_up(self) -> None:
        raise NotImplementedError

    def _add(self) -> None:
        self.left_to_add -= 1
        block = self.rng.choice(self.blocks)  # I11
        self.model.add(b"x" * self.rng.choice((0, 1, 30)), block)
        self.model.pump()

    async def handle(self, msg: JsMsg) -> None:
        require(msg.metadata.stream == "S", "I11: a message without metadata")
        self.taken += 1
        if self.handling:
            await self.sleep(self.handling)
        await msg.ack()
        self.acked += 1

    @property
    def complete(self) -> bool:
        return not self.left_to_add and self.model.done

    def check(self) -> None:
        self.silent = self.silent or self.model.swallowed > 0
        # I4: enough for the last fault, lost messages, and the handling of all of them.
        rounds = 2 + self.count / min(self.model.max_ack_pending, self.count)
        limit = self.last_fault + 4.0 + rounds * (3.0 + 2.0 + self.count * self.handling)
        limit += self.patience
        require(self.now < limit, lambda: f"I4: {self.model.done=} after {limit:.1f} s")

    def finally_check(self) -> None:
        require(max(self.model.acks.values(), default=0) <= 1, "I9: acknowledged twice")
        replies = [request.reply for request in self.model.pulls]
        require(len(replies) == len(set(replies)), "I3: a reply subject was used twice")
        connection: Any = self.connection
        require(
            not connection.subscriptions.by_sid,
            lambda: f"I13: {len(connection.subscriptions.by_sid)} subscriptions are left",
        )
        require(
            not any(will_publish(each) for each in connection.subscriptions.busy),
            "I13: orders are left",
        )


class Consuming(Pulls):
    """consume() and its iteration."""

    by_bytes = False
    deletes = 0.05  # how often the consumer is deleted
    priority: Any = None

    def set_up(self) -> None:
        rng = self.rng
        self.limit = rng.choice((150, 200, 400)) if self.by_bytes else rng.choice((1, 2, 5, 10))
        share = rng.choice((None, 1, self.limit))
        self.stop_after = rng.choice((None, None, None, self.count))
        self.heartbeat = 0.5
        self.threshold = share
        self.messages: Messages | None = None
        self.ending = False
        self.deleted = rng.random() < self.deletes
        self.heard = 0.0
        self.told = 0
        self.rest = 0
        self.iterating = Task(self, self._iterate)
        self.how = rng.choice(("stop", "drain", "nak", "close"))
        if self.deleted:
            self.at(rng.uniform(1.0, 4.0), self._delete)

    def _delete(self) -> None:
        self.note("the consumer is deleted")
        self.model.delete()
        self.left_to_add = 0
        self.model._refusal = lambda *_: "409 Consumer Deleted"  # type: ignore[method-assign]
        self._elect()

    async def _iterate(self) -> None:
        limits: dict[str, Any] = (
            {"max_bytes": self.limit, "threshold_bytes": self.threshold}
            if self.by_bytes
            else {"max_messages": self.limit, "threshold_messages": self.threshold}
        )
        self.messages = self.puller.consume(
            limits.get("max_messages"),
            limits.get("max_bytes"),
            self.expires,
            self.heartbeat,
            limits.get("threshold_messages"),
            limits.get("threshold_bytes"),
            self.stop_after,
            self.priority or {},
        )
        async for msg in self.messages:
            await self.handle(msg)

    async def _end(self) -> None:
        assert self.messages is not None
        if self.how == "drain":
            await self.messages.drain()
        elif self.how == "close":
            self.connection.close(self.now)
        else:
            self.rest = self.messages.pending
            returned = await self.messages.stop(nak=self.how == "nak")
            require(len(returned) == (0 if self.how == "nak" else self.rest), "I8: not returned")

    @property
    def machine(self) -> Consume:
        assert self.messages is not None
        return self.messages._machine

    def sent(self, data: bytes) -> None:
        if b"MSG.NEXT" in data:
            self.heard = self.now

        self.pulled_at = self.now if b"MSG.NEXT" in data else self.pulled_at

    pulled_at = -1.0

    def received(self, data: bytes) -> None:
        if b"MSG " in data and not LOOKUP.match(data):
            self.heard = self.last_received = self.now
        if b"Leadership Change" in data and self.now - self.pulled_at < 3 * self.delay:
            self.silent = True  # PULL-7: a pull on its way to the next leader is not counted

    def check(self) -> None:
        super().check()
        if self.messages is None:
            return
        machine = self.machine
        ledger = machine.ledger
        asked = ledger.size if self.by_bytes else ledger.messages
        buffered = machine.buffered_bytes if self.by_bytes else machine.pending()
        require(0 <= asked <= self.limit, lambda: f"I1: {asked} asked of {self.limit}")
        require(all(not pull.empty for pull in ledger.open), "I3: an empty pull is open")
        if not self.silent:
            require(
                asked + buffered <= self.limit, lambda: f"I2: {asked} + {buffered} of {self.limit}"
            )
        self._check_server(buffered)
        self._check_news(machine)
        if machine.ended or machine.stopped:
            self._check_end(machine)
            return
        require(machine.refill.received == self.arrived, "I8: a message was dropped")
        if machine._online:
            alive = bool(ledger.open) or machine.refill.waiting or machine.pending() > 0
            wanted = self.stop_after is None or machine.refill.received < self.stop_after
            require(alive or not wanted, "I4: connected, and neither pull nor pause nor message")
            require(not ledger.open or machine.deadline is not None, "I4: a pull without deadline")
        if self.complete and not self.ending and not self.stop_after:
            self.ending = True
            Task(self, self._end)

    def _check_server(self, buffered: int) -> None:
        mine = [
            request
            for request in self.model.waiting
            if request.peer is not None and request.peer.sid(request.reply)
        ]
        left = sum(each.bytes if self.by_bytes else each.left for each in mine)
        if not self.silent:
            require(
                left + buffered <= self.limit, lambda: f"I2: the server owes {left} and {buffered}"
            )
        machine = self.machine
        asked = machine.ledger.size if self.by_bytes else machine.ledger.messages
        quiet = not (self.in_flight or self.sick or self.silent or self.deleted)
        if quiet and machine._online and machine._active:
            require(asked == left, lambda: f"I1: {asked} asked, and the server owes {left}")
        if mine or machine.pending() or self.sick or not machine._online or self.in_flight:
            self.idle_since = self.now
        bound = (
            LONGEST_ABSENCE + 0.6 + (4 * self.heartbeat + self.expires + 1 if self.silent else 0)
        )
        active = not (machine.stopped or machine.ended or self.complete)
        if active and (self.stop_after is None or machine.refill.received < self.stop_after):
            since = max(self.idle_since, self.healthy_since)
            require(self.now - since <= bound, lambda: f"I5: no pull at the server for {bound} s")

    idle_since = 0.0

    def _check_news(self, machine: Consume) -> None:
        for event in machine.events.items[self.told :]:
            if isinstance(event, PullWarning) and isinstance(event.error, HeartbeatMissed):
                self.note("heartbeat missed")
                silence = self.now - self.heard_before
                exact = abs(silence - 2 * self.heartbeat) < ROUNDING
                late = self.sick > 0 or self.now - self.last_fault < 4.0
                require(machine._online, "I6: a missed heartbeat without a connection")
                # CONSUME-28: a pull is overdue, and nothing has come for two heartbeats.
                overdue = self.now - self.last_received > 2 * self.heartbeat - ROUNDING
                require(
                    exact or overdue or (late and silence > 2 * self.heartbeat),
                    f"I6: after {silence} s",
                )
                require(self.silent or late, "I5: a missed heartbeat, and no silent fault")
                self.silent = True  # pulls were given up that the server may have
        self.told = len(machine.events.items)
        self.heard_before = self.heard

    heard_before = 0.0
    last_received = 0.0

    def _check_end(self, machine: Consume) -> None:
        if not self.iterating.done:
            return
        error = self.iterating.error
        if self.deleted and error is not None:
            require(isinstance(error, ConsumerDeleted), lambda: f"I10: {error!r}")
        elif self.ending and self.how == "close" and isinstance(error, ConnectionClosed):
            pass  # I9: the acknowledgement of a message that came again, after the client's end
        else:
            require(error is None, lambda: f"I10: {error!r}")
            wanted = self.ending or (self.stop_after is not None and machine.finished)
            require(wanted, "I10: the iteration ended by itself")
        if not self.connection.closed and (self.how != "drain" or machine.ended):
            self.connection.close(self.now)
            self.carry_out()
        self.finished = self.connection.closed != ""

    def finally_check(self) -> None:
        super().finally_check()
        machine = self.machine
        received = machine.refill.received
        require(received <= self.arrived, "I8: more than arrived")
        rest = self.rest + machine.pending()
        require(received == self.taken + rest, lambda: f"I8: {received} came, {self.taken} taken")
        if self.stop_after is not None and machine.finished:
            require(self.taken == self.stop_after, lambda: f"CONSUME-16: {self.taken}")
        useless = [request.at for request in self.model.pulls if not request.brought]
        for index in range(20, len(useless)):
            require(useless[index] - useless[index - 20] > 0.99, "I7: a storm of pulls")


class ConsumingBytes(Consuming):
    by_bytes = True


class Publishing(World):
    """publisher(): a window of publishes, with and without ids."""

    def begin(self) -> None:
        rng = self.rng
        self.count = rng.randrange(1, 20)
        self.model = Model(self, release=self.release)
        self.pause = rng.choice((0.0, 0.0, 0.05, 0.3))
        self.ids = rng.random() < 0.5
        self.retries = rng.choice((0, 2))
        self.window: PublishWindow | None = None
        self.made: list[tuple[int, Publication]] = []
        self.refused: list[int] = []
        self.publishing = Task(self, self._publish)
        self.plan(["cut", "silence", "hole", "stores_no_more", "stall"], rng.randrange(4), 4.0)

    def fault_stores_no_more(self, seconds: float) -> None:
        self.model.stored_leader = False

        def back() -> None:
            self.model.stored_leader = True

        self._sick(seconds, back)

    async def _publish(self) -> None:
        window = self.window = PublishWindow(
            self.session, self.rng.choice((1, 4, 100)), 1.0, self.retries
        )
        for number in range(self.count):
            options: Any = {"msg_id": f"id{number}"} if self.ids else {}
            while True:
                try:
                    self.made.append(
                        (number, await window.publish("s.x", b"%d" % number, **options))
                    )
                except PublishesFailed:
                    continue
                except PendingBufferFull:
                    self.refused.append(number)
                break
            if self.pause:
                await self.sleep(self.pause)
        try:
            await window.close()
        except PublishesFailed as error:
            require(len(error.publications) > 0, "PublishesFailed without one")

    def check(self) -> None:
        limit = self.last_fault + 16.0 + self.count * (self.pause + 3.0)
        require(
            self.now < limit, lambda: f"I4: {len(self.made)} of {self.count} after {limit:.1f} s"
        )
        if self.window is not None:
            machine = self.window._machine
            require(len(machine.open) <= machine.max_pending, "I1: more than the window takes")
            waits = machine.deadline is not None or will_publish(machine)
            require(not machine.open or waits or not self.connection.online, "I4: no deadline")
        if self.publishing.done and not self.finished:
            require(self.publishing.error is None, lambda: f"I10: {self.publishing.error!r}")
            self.connection.close(self.now)
            self.finished = True

    def finally_check(self) -> None:
        stored = [int(message.data) for message in self.model.stored]
        require(len(self.made) + len(self.refused) == self.count, "I8: a publish was forgotten")
        for number, publication in self.made:
            require(publication.done, f"I4: publish {number} is not settled")
            copies = stored.count(number)
            if publication.error is None:
                assert publication.ack is not None
                require(stored[publication.ack.seq - 1] == number, "acknowledged as another one")
            elif isinstance(publication.error, NoStreamResponse):
                require(copies == 0, f"publish {number} is stored, and was said not to be")
            else:
                require(isinstance(publication.error, PublishInDoubt), f"{publication.error!r}")
            require(copies <= 1, f"publish {number} is stored {copies} times")
        connection: Any = self.connection
        require(not connection.subscriptions.by_sid, "I13: subscriptions are left")
