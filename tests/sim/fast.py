"""Fast batches: a program that adds messages and resumes after the stored ones; its invariants.

F1   the messages of a batch are stored in order, and none of them twice
F2   what is acknowledged is stored, but for losses that were told
F3   without gaps and without doubt: the first `stored` are stored, and no other ever is
F4   a commit or close that returns: everything is stored, but for losses that were told
F5   with ids everything is stored once in the end; without them, too, if nothing was in doubt
F6   without a fault no batch fails but for a message that was refused, and nothing is lost
F7   numbers go up one by one, and never beyond the acknowledgements that are due
F8   on a new connection nothing is sent before a ping is answered; nothing after a failure
F9   who waits is answered, or told after the patience; deadlines are not in the past
F10  pings and timers are few
F11  no loss is told twice, nor is a message stored that was told to be lost, but for doubts
F12  no batch is given up that a server in good health has
F13  the first message is sent again after a 503, not before and not after that; a batch is refused
     for lack of a leader only after three tries, in a cluster after 10 s
I10, I12 and I13 as in scenarios.py
"""

from __future__ import annotations

import re
from typing import Any

from jetstream.errors import (
    ApiError,
    FastBatchFailed,
    MessageTooLarge,
    NoStreamResponse,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.publish.fast import FastBatch
from jetstream.publish.fast_machine import NEW, OVER, FastBatchMachine
from jetstream.publish.request import RETRIES, RETRY_WAIT
from jetstream.testing.sim.fast_model import COMMIT, END, PING, REFUSALS, FastModel
from natsproto.errors import NatsError
from natsproto.testing.sim.peer import INFO
from tests.effects import will_publish
from tests.sim.scenarios import require
from tests.sim.world import Task, World

FAULTS = ["cut", "silence", "hole", "late", "stall", "freeze", "refusal"]
GENTLE = ["load", "load", "slow"]
MAX_SIZE = 100
CLUSTER = INFO.replace(b"{", b'{"cluster":"C",')
PLACE = re.compile(rb"\.(\w+)\.\d+\.(?:ok|fail)\.(\d+)\.(\d)\.\$FI|SUB [\w.]+?\.(\w+)\.> ")
LINGER = 2.0  # after the last message: what is late comes, too


class Seen:
    """One batch, as the wire shows it at the client's end."""

    def __init__(self) -> None:
        self.sent = 0
        self.committed = False
        self.acked = 0
        self.sure = 0  # what was acknowledged on the last connection
        self.flow = 0
        self.lost: set[int] = set()
        self.failed = False
        self.asking = False
        self.tries = 0  # of the first message
        self.begun = 0.0  # the first try
        self.missed = 0.0  # the last 503 on this connection


class Watched(FastBatchMachine):
    """The machine, and when its timer rang."""

    __slots__ = ()
    calls: list[float] = []  # noqa: RUF012 - of one world at a time

    def handle_timer(self, now: float) -> bool:
        self.calls.append(now)
        return super().handle_timer(now)


class Attempt:
    """One batch of the program: the messages to store, and the outcome."""

    def __init__(self, todo: list[int], batch: FastBatch, begun: float) -> None:
        self.todo = todo
        self.machine: FastBatchMachine = batch._machine
        self.machine.__class__ = Watched
        self.id = self.machine._id
        self.begun = begun
        self.healthy = False
        self.error: NatsError | None = None
        self.lost: set[int] = set()
        self.doubts: set[int] = set()
        self.over = False
        self.owed = False

    @property
    def in_doubt(self) -> bool:
        return isinstance(self.error, FastBatchFailed) and self.error.in_doubt


class Ingesting(World):
    """FastBatch, by a program that wants everything stored."""

    model: FastModel  # type: ignore[assignment]

    def begin(self) -> None:
        rng = self.rng
        self.count = rng.randrange(1, 16)
        self.gaps = rng.random() < 0.4
        self.ids = rng.random() < 0.5
        self.flow = rng.randrange(1, 5)
        self.max_acks = rng.randrange(1, 4)
        self.patience = rng.choice((2.0, 4.0, 6.0))
        slow = 3.5 if self.patience > 4.0 else 0.3
        self.storing = rng.choice((0.0, 0.0, 0.01, 0.3, slow))
        self.pause = rng.choice((0.0, 0.0, 0.01, 0.05, 0.3))
        self.idle_at = rng.randrange(self.count) if rng.random() < 0.2 else -1
        self.idle = rng.choice((5.0, 9.0, 15.0))
        self.commits = rng.random() < 0.5
        refusals = rng.choice((0, 0, 1, 2, 4))
        self.bad = {rng.randrange(self.count): rng.random() < 0.5 for _ in range(refusals)}
        self.refusals = len(self.bad)
        self.model = FastModel(
            self,
            max_size=MAX_SIZE,
            delay=self.storing,
            replicated=rng.random() < 0.5,
            pings_begin=rng.random() < 0.2,
        )
        if self.model.replicated and rng.random() < 0.5:
            self.info = CLUSTER
        self.seen: dict[bytes, Seen] = {}
        self.pings: list[float] = []
        Watched.calls = []
        self.attempts: list[Attempt] = []
        self.waiting: object = None
        self.waiting_since = 0.0
        faults = FAULTS + 2 * (["election"] if self.model.replicated else ["crash"])
        faults += 4 * ["untold"] if self.gaps and self.bad else []
        self.faults = rng.randrange(4)
        span = rng.choice((0.15, 0.5, 2.0, 6.0))
        self.plan(faults, self.faults, span)
        if rng.random() < 0.5:
            self.plan(GENTLE, rng.randrange(3), span)
        self.running = Task(self, self._run)

    # The program

    async def _run(self) -> None:
        todo = list(range(self.count))
        while todo:
            batch = FastBatch(self.session, self.gaps, self.flow, self.max_acks, self.patience)
            attempt = Attempt(todo, batch, self.now)
            self.attempts.append(attempt)
            todo = await self._attempt(attempt, batch)
            if not isinstance(attempt.error, FastBatchFailed) and attempt.error:
                await self.sleep(0.25)
        await self.sleep(LINGER)
        while self.model.on_the_way:
            await self.sleep(LINGER)

    async def _attempt(self, attempt: Attempt, batch: FastBatch) -> list[int]:
        """Add all messages; return those that are left."""
        begun = self.now
        well = not self.sick
        try:
            await self._add(attempt.todo, batch)
        except FastBatchFailed as error:
            attempt.error = error
            require(batch.stored == error.stored, "F2: the error says something else")
        except (NoStreamResponse, ApiError) as error:
            attempt.error = error
            require(batch.stored == 0, "FAST-2: refused at the first")
            if isinstance(error, NoStreamResponse):
                self._check_tries(self.seen[attempt.id.encode()], attempt.machine)
        attempt.healthy = well and not self.sick and self.last_fault <= begun
        losses = batch.take_losses()
        self.note(f"{attempt.id}: {batch.stored} of {batch.size}, {attempt.error!r}, {losses}")
        numbers = [number for loss in losses for number in range(loss.first, loss.last + 1)]
        attempt.lost = set(numbers)
        require(batch.lost == len(numbers), "F11: lost is not what was told")
        require(len(numbers) == len(attempt.lost), lambda: f"F11: told twice: {losses}")
        doubts = [loss for loss in losses if isinstance(loss.error, PublishInDoubt)]
        attempt.doubts = {each for loss in doubts for each in range(loss.first, loss.last + 1)}
        self._check_outcome(attempt, batch)
        left = attempt.todo[batch.stored :]
        return [attempt.todo[number - 1] for number in sorted(attempt.lost)] + [
            each for each in left if attempt.todo.index(each) + 1 not in attempt.lost
        ]

    async def _add(self, todo: list[int], batch: FastBatch) -> None:
        for index, number in enumerate(todo):
            options: Any = {"msg_id": f"id{number}"} if self.ids else {}
            data = b"%d" % number
            large = self.bad.pop(number, None)  # the next time it is a good one
            if large:
                data += b" " * MAX_SIZE
            elif large is not None:
                options["expect_last_seq"] = 1000
            if number == self.idle_at:
                self.idle_at = -1
                await self.sleep(self.idle)
            if self.commits and index == len(todo) - 1:
                await batch.commit("s.x", data, **options)
                return
            require(await batch.add("s.x", data, **options) == index + 1, "F7: another number")
            if self.pause:
                await self.sleep(self.pause)
        await batch.close()

    def _check_outcome(self, attempt: Attempt, batch: FastBatch) -> None:
        error = attempt.error
        if error is None:
            rest = set(range(batch.stored + 1, len(attempt.todo) + 1))
            require(not rest - attempt.lost, lambda: f"F4: {rest} are not stored")
        elif attempt.healthy:
            require(not attempt.in_doubt or attempt.owed, "F6: in doubt, without a fault")
            cause = error.cause if isinstance(error, FastBatchFailed) else error
            wanted = attempt.owed or isinstance(cause, (MessageTooLarge, WrongLastSequence))
            require(wanted, lambda: f"F6: {error!r}")
        if attempt.healthy:
            require(len(attempt.lost) <= self.refusals, lambda: f"F6: {attempt.lost} lost")

    def _check_tries(self, seen: Seen, machine: FastBatchMachine) -> None:
        waited = self.now - seen.begun
        enough = seen.tries > RETRIES and waited >= machine._election
        require(
            enough or waited + RETRY_WAIT >= machine._patience,
            lambda: f"F13: refused after {seen.tries} tries in {waited} s",
        )

    # Faults

    def _fault(self, name: str) -> None:
        before = self.last_fault
        super()._fault(name)
        if name in GENTLE:  # nothing may come of them
            self.last_fault = before

    def fault_election(self, seconds: float) -> None:
        model = self.model
        if model.leader and not model.frozen:
            model.step_down(self.rng.randrange(4), self.rng.random() < 0.3)
            self._sick(seconds, model.elect)

    def fault_crash(self, seconds: float) -> None:
        """Crash the server, which loses its state of batches."""
        self.model.crash(self.rng.randrange(4))
        self.down_until = self.now + seconds
        if self.link is not None:
            self.link.cut()
        self._sick(seconds, lambda: None)

    def fault_freeze(self, seconds: float) -> None:
        if self.model.leader and not self.model.frozen:
            self.model.freeze()
            self._sick(seconds, self.model.thaw)

    def fault_refusal(self, seconds: float) -> None:
        """Messages are refused, each by itself, and pings as well."""
        self.model.refusing = self.rng.choice(REFUSALS)

        def accept() -> None:
            self.model.refusing = None

        self._sick(min(seconds, 0.3), accept)

    def fault_late(self, seconds: float) -> None:
        """Lose the connection; the sent data still arrives, perhaps after that of the next one."""
        link = self.link
        if link is None:
            return
        link.frozen_until = self.now + self.rng.choice((0.0, 0.2, 0.5, 1.0))

        def lose() -> None:
            if self.link is link and link.open:
                self.link = None
                if link.peer is not None:
                    link.peer.alive = False
                self.connection.transport_closed(self.now, None)
                self.carry_out()

        self.at(self.now + self.rng.uniform(0.0, 0.3), lose)
        self._sick(1.0, lambda: None)

    def fault_untold(self, seconds: float) -> None:
        """Break the connection just when the server reports a loss."""

        def lose() -> None:
            self.model.before_loss = None
            if self.link is not None:
                self.last_fault = self.now
                self.link.cut()

        self.model.before_loss = lose

    def fault_load(self, seconds: float) -> None:
        """Change the flow, as if other batches started and ended."""
        self.model.capacity = self.rng.choice((1, 2, 3, 5, 500))

    def fault_slow(self, seconds: float) -> None:
        delay = self.model.delay
        self.model.delay = min(self.rng.choice((0.5, 1.5, 3.5)), self.patience - 0.5)

        def recover() -> None:
            self.model.delay = delay

        self.at(self.now + seconds, recover)

    # What must hold on the wire

    def sent(self, data: bytes) -> None:
        for name, number, operation, subscribed in PLACE.findall(data):
            seen = self.seen.setdefault(name or subscribed, Seen())
            if subscribed:
                if not seen.asking:
                    seen.sure = seen.acked
                seen.asking = seen.sent > 0
                seen.missed = self.now - RETRY_WAIT
                continue
            self._check_sent(seen, int(number), int(operation))

    def _check_sent(self, seen: Seen, number: int, operation: int) -> None:
        if operation == PING:
            require(number == seen.sent > 0, "FAST-1: a ping has the last number")
            require(seen.flow > 0 or seen.committed, "FAST-8: a ping might begin the batch")
            self.pings.append(self.now)
            require(
                len(self.pings) < 10 or self.now - self.pings[-10] > 1.0, "F10: a storm of pings"
            )
            return
        require(number == seen.sent + 1, "F7: a number is left out, or used twice")
        if number == 1:
            seen.tries += 1
            seen.begun = seen.begun or self.now
            wait = self.now - seen.missed
            require(wait > RETRY_WAIT - 0.001, lambda: f"F13: sent again after {wait} s")
        require(not seen.asking or operation == END, "F8: sent before it was asked what came")
        require(not seen.failed, "F8: sent after the failure")
        if operation != END:
            lost = sum(each > seen.acked for each in seen.lost)
            most = max(1, seen.acked + seen.flow * self.max_acks + lost)
            require(number <= most, lambda: f"F7: {number} is sent of {most}")
            seen.sent = number
            seen.committed = operation == COMMIT

    def received(self, data: bytes) -> None:
        if data.startswith((b"MSG ", b"HMSG ")) and data.endswith((b"}\r\n", b"\r\n\r\n\r\n")):
            found = PLACE.search(data)
            assert found is not None
            seen = self.seen.setdefault(found[1], Seen())
            self._observe(seen, int(found[2]), int(found[3]), data)

    def _observe(self, seen: Seen, number: int, operation: int, data: bytes) -> None:
        if number == 1 and operation != PING and b"NATS/1.0 503" in data and not seen.flow:
            seen.sent = 0
            seen.missed = self.now
            return
        ack = re.search(rb'"type":"ack","seq":(\d+),"msgs":(\d+)', data)
        if ack:
            seen.acked = max(seen.acked, int(ack[1]))
            seen.flow = int(ack[2])
            if operation == PING and number == seen.sent and seen.asking:
                seen.asking = False
                seen.lost.update(range(seen.sure + 1, seen.sent + 1))  # maybe
            return
        gap = re.search(rb'"type":"gap","last_seq":(\d+),"seq":(\d+)', data)
        if gap:
            seen.lost.update(range(int(gap[1]), int(gap[2])))
        elif operation not in (PING, END):
            seen.lost.add(number)
        if operation not in (PING, END) and not self.gaps:
            seen.failed = True

    def check(self) -> None:
        each = self.pause + self.storing + 1.0
        limit = self.last_fault + 40.0 + self.idle + self.count * each
        require(self.now < limit, lambda: f"I4: {len(self.model.stored)} after {limit:.1f} s")
        if self.attempts:
            self._check_patience(self.attempts[-1].machine)
            self._check_end(self.attempts[-1])
        if self.running.done:
            require(self.running.error is None, lambda: f"I10: {self.running.error!r}")
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True

    def _check_end(self, attempt: Attempt) -> None:
        if attempt.over or attempt.machine.state != OVER:
            return
        attempt.over = True
        batch = self.model.batches.get(attempt.id)
        # What waited for the end of a fault has to be stored and acknowledged first.
        recovered = self.last_fault + self.storing + 2.0
        if batch is None or self.sick or self.now < recovered:
            return
        if batch.pending or batch.ending:  # slow; or ended by late messages, which a ping undoes
            return
        # When the flow gets less, or behind a gap, one acknowledgement may be due that the server
        # sends with that of the next message, if there is one.
        attempt.owed = batch.stored >= batch.told + batch.flow
        failure = attempt.machine.failure
        doubtful = isinstance(failure, FastBatchFailed) and failure.in_doubt
        require(not doubtful or attempt.owed, "F12: the server knows the batch")

    def _check_patience(self, machine: FastBatchMachine) -> None:
        stalled = self.now <= self.stall_until
        past = machine.deadline is not None and machine.deadline < self.now
        require(stalled or not past, lambda: f"F9: {machine.deadline=}")
        waiting = machine.state not in (NEW, OVER) and machine.sent >= machine.limit
        if waiting and machine._online:
            require(machine.deadline is not None, "F9: nobody looks at the time")
            state = (machine.state, machine.stored, machine.sent, machine._checking, machine._flow)
        else:
            state = ()
        if state != self.waiting or stalled:
            self.waiting, self.waiting_since = state, self.now
        if state:
            waited = self.now - self.waiting_since
            require(waited <= machine._patience + 0.001, lambda: f"F9: waits for {waited:.1f} s")

    def _ring(self) -> None:
        stalled = self.now < self.stall_until
        super()._ring()
        if not stalled and self.attempts:
            deadline = self.attempts[-1].machine.deadline
            require(deadline is None or deadline > self.now, "F9: again at the same time")
            calls = Watched.calls
            few = len(calls) < 10 or self.now - calls[-10] > 1.0
            require(few, "F10: too many timers")

    # What must hold in the end

    def finally_check(self) -> None:
        stored = self.model.stored
        values = [int(message.data) for message in stored]
        for attempt in self.attempts:
            self._check_stored(attempt, set(values))
        once = len(values) == len(set(values))
        doubtful = any(attempt.in_doubt for attempt in self.attempts)
        require(set(values) == set(range(self.count)), "F5: not everything is stored")
        if self.ids or not (self.gaps or doubtful):
            require(once, lambda: f"F5: stored twice: {values}")
        if not self.gaps:
            first = list(dict.fromkeys(values))
            require(first == sorted(first), lambda: f"F1: stored out of order: {values}")
        connection: Any = self.connection
        require(not connection.subscriptions.by_sid, "I13: subscriptions are left")
        require(
            not any(will_publish(each) for each in connection.subscriptions.busy),
            "I13: orders are left",
        )

    def _check_stored(self, attempt: Attempt, values: set[int]) -> None:
        mine = [message for message in self.model.stored if message.id == attempt.id]
        numbers = [message.number for message in mine]
        require(numbers == sorted(set(numbers)), lambda: f"F1: {numbers} of a batch are stored")
        for message in mine:
            require(int(message.data) == attempt.todo[message.number - 1], "F1: another one")
        known = set(numbers)
        if self.ids:
            known |= {at for at, value in enumerate(attempt.todo, 1) if value in values}
        told = set(range(1, attempt.machine.stored + 1))
        missing = told - known - attempt.lost
        require(not missing, lambda: f"F2: {missing} are not stored")
        if not self.gaps and not attempt.in_doubt:
            require(not set(numbers) - told, lambda: f"F3: {numbers} are stored")
        if not self.model.pings_begin:
            false = (attempt.lost - attempt.doubts) & set(numbers)
            require(not false, lambda: f"F11: {false} were said to be lost")
