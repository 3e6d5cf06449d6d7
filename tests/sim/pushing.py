"""Push subscriptions: the behavior of the client in each mode, and its invariants.

P1   what arrived before the end was taken, waits, was returned or dropped, and drops are counted
P2   what was delivered and did not arrive is reported as a gap, and nothing else is
P3   silence is reported after three heartbeats, then at growing intervals, only while connected
P4   a flow control request is answered only when all messages before it were taken
P5   the same request is not answered twice within a heartbeat, on one connection
P6   the queue holds no more than the window of the server, or the limit of the client
P7   in the end everything arrives: no stall is for ever
I9 to I13 as in scenarios.py
"""

from __future__ import annotations

from typing import Any

from jetstream.api.metadata import read_consumer_seq
from jetstream.errors import HeartbeatMissed
from jetstream.events import ConsumerSequenceReset, Gap, PushWarning
from jetstream.pull.presence import FIRST_REPEAT, LONGEST_REPEAT
from jetstream.push.api import PushMessages
from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from jetstream.testing.sim.pull_model import NANO
from jetstream.testing.sim.push_model import PushModel
from natsproto import Parser
from natsproto.errors import ConnectionClosed
from tests.effects import will_publish
from tests.sim.scenarios import ROUNDING, require
from tests.sim.world import STORED, Task, World

ANNOUNCED = ["cut", "stall"]
SILENT = ["silence", "hole", "kill", "lost_message", "lost_message", "reset", "recount"]
FLOW = ["lost_request", "lost_answer"]
HEARTBEAT = 0.5
ACK_WAIT = 2.0
INBOX = "_INBOX.d"
LARGEST = 250  # a message on the wire


class Pushing(World):
    """A subscription to an existing consumer, whose messages are acknowledged."""

    model: PushModel  # type: ignore[assignment]
    flow_control = False

    def begin(self) -> None:
        rng = self.rng
        self.count = rng.randrange(1, 13)
        self.handling = rng.choice((0.0, 0.0, 0.01, 0.2))
        self.limit = 0 if self.flow_control else rng.choice((0, 0, 1, 3))
        self.model = PushModel(
            self, window=rng.choice((100, 200)), most_window=400, release=self.release
        )
        self.consumer = self.model.add_consumer("C", self._config())
        self.left_to_add = self.count
        for _ in range(self.count):
            self.at(rng.choice((0.0, rng.uniform(0.0, 3.0))), self._add)
        self.alarm_after = rng.choice((2, 3, 3))
        self.policy = PlainPush(last=0)
        self.machine = Push(
            self.policy,
            heartbeat=HEARTBEAT,
            alarm_after=self.alarm_after,
            flow_control=self.flow_control,
            max_messages=self.limit or None,
        )
        self.connection.subscribe(INBOX, self.machine)
        self.messages = PushMessages(self.session, self.machine)
        self.messages.on_end = self._at_end
        self.ends = 0
        self.taken = 0
        self.rest = 0
        self.ending = False
        self.how = rng.choice(("stop", "drain", "unsubscribe", "close"))
        self.heard = self.alarm_due = 0.0
        self.repeat = FIRST_REPEAT
        self.got: set[int] = set()  # the deliveries that came, since the consumer counts
        self.missing: set[int] = set()  # those that were told to be missing
        self.number = 0  # of the delivery that comes in this step
        self.dropped = 0
        self.answered: dict[bytes, float] = {}
        self.asked_after: dict[bytes, int] = {}  # requests, and how many messages came before
        self.arrivals = 0
        self.late = 0  # messages that were on their way when the subscription ended
        self.leaders = 1
        self.iterating = Task(self, self._iterate)
        faults = ANNOUNCED + (SILENT if rng.random() < 0.7 else [])
        self.plan(faults + (FLOW if self.flow_control else []), rng.randrange(4), 4.0)

    def _config(self) -> dict[str, Any]:
        return {
            "deliver_subject": INBOX,
            "idle_heartbeat": round(HEARTBEAT * NANO),
            "ack_wait": round(ACK_WAIT * NANO),
            "flow_control": self.flow_control,
        }

    def _add(self) -> None:
        self.left_to_add -= 1
        self.model.add(b"x" * self.rng.choice((0, 1, 30)), self.rng.choice(self.blocks))
        self.model.pump()

    async def _iterate(self) -> None:
        async for msg in self.messages:
            require(msg.metadata.stream == "S", "I11: a message without metadata")
            self.taken += 1
            if self.handling:
                await self.sleep(self.handling)
            await msg.ack()

    async def _at_end(self) -> None:
        self.ends += 1

    async def _end(self) -> None:
        if self.how == "drain":
            await self.messages.drain()
        elif self.how == "close":
            self.connection.close(self.now)
        elif self.how == "stop":
            self.rest = self.messages.pending
            require(len(await self.messages.stop()) == self.rest, "P1: not returned")
        else:
            self.rest = self.messages.pending
            await self.messages.unsubscribe()

    # Faults

    def fault_lost_message(self, seconds: float) -> None:
        """A delivery gets lost between two servers."""
        self.model.lose_messages += self.rng.choice((1, 1, 2))
        self._sick(0.0, lambda: None)

    def fault_lost_request(self, seconds: float) -> None:
        self.model.lose_requests += 1
        self._sick(0.0, lambda: None)

    def fault_lost_answer(self, seconds: float) -> None:
        self.model.lose_answers += 1
        self._sick(0.0, lambda: None)

    def fault_reset(self, seconds: float) -> None:
        self.consumer.reset()
        self._sick(0.0, lambda: None)

    def fault_recount(self, seconds: float) -> None:
        self.leaders += 1  # each with a window of its own
        self.consumer.forget(self.rng.choice((1, 2)))
        self._sick(0.0, lambda: None)

    # What must hold

    def received(self, data: bytes) -> None:
        """A frame at a time, but for the one that is cut."""
        if b"MSG " not in data[:5] or not self.machine._online or not Parser().feed(data):
            return
        self._heard()
        if self.machine.ended and data.startswith(STORED):
            self.late += 1
        words = data.split(b"\r\n", 1)[0].split(b" ")
        reply = words[3] if len(words) > 3 else b""
        if b"FlowControl" in data:
            self.asked_after[reply] = self.arrivals
        elif b"Nats-Consumer-Stalled: " in data:
            name = data.partition(b"Nats-Consumer-Stalled: ")[2].partition(b"\r")[0]
            self.asked_after.setdefault(name, self.arrivals)
        elif reply.startswith(b"$JS.ACK"):
            self.arrivals += 1
            self.number = read_consumer_seq(reply) or 0

    def _heard(self) -> None:
        self.heard = self.now
        self.alarm_due = self.now + self.alarm_after * HEARTBEAT
        self.repeat = FIRST_REPEAT

    def sent(self, data: bytes) -> None:
        for line in data.split(b"\r\n"):
            if line.startswith(b"PUB $JS.FC."):
                self._check_answer(line.split(b" ")[1])

    def _check_answer(self, subject: bytes) -> None:
        require(subject in self.asked_after, "P4: nobody asked for it")
        gone = self.taken + self.rest + self.machine.dropped
        # The one that is being taken now is not yet counted.
        require(gone + 1 >= self.asked_after[subject], lambda: f"P4: too early, {gone} gone")
        before = self.answered.get(subject)
        self.answered[subject] = self.now
        again = before is None or before <= self.online_since or self.now - before >= HEARTBEAT
        require(again, "P5: answered again too soon")

    online_since = -1.0
    was_online = False

    @property
    def complete(self) -> bool:
        return not self.left_to_add and self.consumer.done

    def check(self) -> None:
        machine = self.machine
        if machine._online and not self.was_online:
            self.online_since = self.now
            self._heard()
        self.was_online = machine._online
        rounds = 2 + self.count / (self.limit or self.count)
        limit = self.last_fault + 4.0 + rounds * (2 * ACK_WAIT + self.count * self.handling) + 12.0
        require(self.now < limit, lambda: f"P7: {self.complete=} after {limit:.1f} s")
        self._check_queue(machine)
        self._check_news(machine)
        if machine.ended or machine.stopped or self.iterating.done:
            self._check_end()
        else:
            quiet = self.now - max(self.alarm_due, self.stall_until)
            require(
                not machine._online or (machine.deadline is not None and quiet < 1.5 * HEARTBEAT),
                "P3: no alarm",
            )
            if self.complete and not self.ending:
                self.ending = True
                Task(self, self._end)

    def _check_queue(self, machine: Push) -> None:
        if self.flow_control:
            most = self.leaders * (400 + 2 * LARGEST)
            require(machine._bytes <= most, lambda: f"P6: {machine._bytes} bytes")
        elif self.limit:
            require(machine.pending() <= self.limit, "P6: above the limit")

    def _check_news(self, machine: Push) -> None:
        for event in machine.events.items:
            self.note(f"told: {event!r}")
            if isinstance(event, Gap):
                gap = set(range(event.first, event.last + 1))
                require(bool(gap) and not gap & self.got, lambda: f"P2: {gap} came")  # noqa: B023
                self.missing |= gap
            elif isinstance(event, ConsumerSequenceReset):
                require(event.now <= event.before, "P2: it does not go back")
                last = event.now - (1 if self.number else 0)
                self.got = {number for number in self.got if number <= last}
                self.missing = {number for number in self.missing if number <= last}
            else:
                assert isinstance(event, PushWarning)
                require(isinstance(event.error, HeartbeatMissed), lambda: f"P3: {event!r}")  # noqa: B023
                self._check_alarm(machine)
        machine.events.items.clear()
        if self.number and machine.dropped == self.dropped and not machine.ended:
            require(self.number not in self.got | self.missing, "P2: a number came twice")
            self.got.add(self.number)
        self.number, self.dropped = 0, machine.dropped
        last = self.policy.last or 0
        whole = len(self.got) + len(self.missing) == last and not self.got & self.missing
        require(whole, lambda: f"P2: {self.got} came, {self.missing} not, and it is at {last}")

    def _check_alarm(self, machine: Push) -> None:
        require(machine._online, "P3: an alarm without a connection")
        late = self.sick > 0 or self.now - self.last_fault < 4.0
        exact = abs(self.now - self.alarm_due) < ROUNDING
        require(exact or (late and self.now > self.alarm_due), f"P3: due at {self.alarm_due}")
        self.alarm_due = self.now + self.repeat
        self.repeat = min(2 * self.repeat, LONGEST_REPEAT)

    def _check_end(self) -> None:
        if not self.iterating.done:
            return
        error = self.iterating.error
        closed = self.how == "close" and isinstance(error, ConnectionClosed)
        require(error is None or closed, lambda: f"I10: {error!r}")
        require(self.ending, "I10: the iteration ended by itself")
        if self.how == "drain" and not self.machine.ended:
            return
        if not self.connection.closed:
            require(self.ends == 1, lambda: f"PUSH-15: {self.ends} times")
            self.connection.close(self.now)
            self.carry_out()
        self.finished = self.connection.closed != ""

    def finally_check(self) -> None:
        machine = self.machine
        waiting = machine.pending() + self.rest
        gone = self.taken + waiting + machine.dropped + self.late
        require(self.arrived == gone, lambda: f"P1: {self.arrived} came, {gone} known")
        require(bool(self.limit) or not machine.dropped, "P6: dropped without a limit")
        replies = self.model.replies
        once = all(count <= replies[reply] for reply, count in self.model.acks.items())
        require(once, "I9: acknowledged twice")
        connection: Any = self.connection
        require(not connection.subscriptions.by_sid, "I13: subscriptions are left")
        require(
            not any(will_publish(each) for each in connection.subscriptions.busy),
            "I13: orders are left",
        )


class PushingWithFlowControl(Pushing):
    flow_control = True
