"""Elastic groups under random events: members join, are dropped, leave and crash.

The members are real; the server is the one in memory, with acknowledgments that take time. Each
event happens between two calls of a member, or while a program has a message in hand. After every
delivery:

- no other program that is alive has a message of the same key in hand;
- it is the first message of its key that was not processed, unless its acknowledgment was lost in
  a crash;

and in the end every message was processed.
"""

from __future__ import annotations

import random

import pytest

from jetstream.config import ConsumerConfig
from jetstream.pull.groups.group import ElasticGroup
from jetstream.pull.groups.member import GroupMember
from jetstream.pull.groups.membership import LEAVING, OUT, Membership
from jetstream.pull.groups.plan import MemberPlan
from natsproto.errors import InvalidState, TimeoutExpired
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, configured

BUCKET = "elastic-consumer-groups"
NAMES = ["a", "b", "c"]
KEYS = 6
PARTITIONS = 4
ACK_WAIT = 5.0
LONGEST = 2.0  # seconds that a message is in hand
STEPS = 250


class Broken(AssertionError):
    """An invariant does not hold."""


class Program:
    """A program that has joined as one member."""

    def __init__(self, server, name):
        self.name = name
        self.js = Js(server)
        self.member = GroupMember(MemberPlan(self.js, "S", "g", name, True, ConsumerConfig()))
        self.held = None  # key, number, sequence, since when


class World:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.server = configured(BUCKET, max_members=PARTITIONS, members=["a"])
        self.group = ElasticGroup(Js(self.server), "S", "g")
        self.programs = [Program(self.server, "a")]
        self.published = [0] * KEYS
        self.processed = [0] * KEYS
        self.doubtful = set()  # key, number: the acknowledgment was lost in a crash
        self.acks = []  # when it arrives, consumer, sequence, program

    # Events

    def publish(self):
        key = self.rng.randrange(KEYS)
        subject = f"{key % PARTITIONS}.k{key}"
        self.server.publish("S-g", subject, b"%d %d" % (key, self.published[key]))
        self.published[key] += 1

    def take(self, program):
        try:
            msg = run_sync(program.member.next(0))
        except (TimeoutExpired, InvalidState):
            return
        key, number = map(int, msg.data.split())
        for other in self.programs:
            if other.held and other.held[0] == key:
                raise Broken(f"{program.name} and {other.name} both have a message of key {key}")
        if number != self.processed[key] and (key, number) not in self.doubtful:
            raise Broken(f"key {key}: {number} instead of {self.processed[key]}")
        program.held = key, number, int(msg.raw_reply.split(b".")[5]), self.server.now

    def finish(self, program):
        key, number, sequence, _ = program.held
        program.held = None
        self.processed[key] = max(self.processed[key], number + 1)
        due = self.server.now + self.rng.choice([0.0, 0.02, 0.3])
        self.acks.append((due, program, sequence, (key, number)))

    def crash(self, program):
        self.programs.remove(program)
        self.server.feeds = [row for row in self.server.feeds if row[1] is not program.member._feed]
        for row in [row for row in self.acks if row[1] is program]:
            if self.rng.random() < 0.5:
                self.acks.remove(row)
                self.doubtful.add(row[3])

    def leave(self, program):
        self.programs.remove(program)
        run_sync(program.member.stop())

    def change(self):
        members = self.rng.sample(NAMES, self.rng.randint(1, 3))
        current = run_sync(self.group.config()).members
        run_sync(self.group.add_members(*members))
        run_sync(self.group.drop_members(*[name for name in current if name not in members]))

    def tick(self, seconds):
        self.server.now += seconds
        for row in [row for row in self.acks if row[0] <= self.server.now]:
            self.acks.remove(row)
            self.server.ack("S-g", row[1].name, row[2])
        for program in list(self.programs):
            messages = program.member._actor.messages
            consumer = self.server.consumers.get(("S-g", program.name))
            if consumer is not None and messages is not None and consumer.pin is messages:
                consumer.used = self.server.now  # it pulls all the time
            if program.held and self.server.now > program.held[3] + LONGEST:
                self.finish(program)

    def step(self):
        rng = self.rng
        idle = [each for each in self.programs if each.held is None]
        busy = [each for each in self.programs if each.held is not None]
        event = rng.choices(
            ["publish", "take", "finish", "tick", "change", "start", "crash", "leave"],
            [6, 12, 8, 10, 1, 1, 1, 1],
        )[0]
        if event == "publish":
            self.publish()
        elif event == "take" and idle:
            self.take(rng.choice(idle))
        elif event == "finish" and busy:
            self.finish(rng.choice(busy))
        elif event == "tick":
            self.tick(rng.choice([0.01, 0.05, 0.3, 1.0]))
        elif event == "change":
            self.change()
        elif event == "start" and len(self.programs) < 6:
            self.programs.append(Program(self.server, rng.choice(NAMES)))
        elif event == "crash" and self.programs:
            self.crash(rng.choice(self.programs))
        elif event == "leave" and idle:
            self.leave(rng.choice(idle))

    def settle(self):
        """Let one program of each member work until everything is processed."""
        for name in run_sync(self.group.config()).members:
            self.programs.append(Program(self.server, name))
        for _ in range(400):
            if self.processed == self.published:
                return
            self.tick(0.3)
            for program in self.programs:
                if program.held:
                    self.finish(program)
                self.take(program)
        raise Broken(f"{self.published} were published, {self.processed} were processed")


def simulate(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    return world


def simulate_all(seeds):
    for seed in seeds:
        simulate(seed)


@pytest.mark.rule("D-GROUP-12")
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_order_is_kept_and_nothing_is_lost(first):
    for seed in range(first, first + 50):
        try:
            world = simulate(seed)
        except Broken as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert sum(world.processed) > 0


def leaves_at_once(self, pinned, subjects, ack_pending, now):
    self.state = LEAVING


def forgets_its_partitions(self, now):
    self.state = OUT


@pytest.mark.parametrize(
    ("name", "mistake"),
    [("looked", leaves_at_once), ("deleted", forgets_its_partitions)],
)
def test_the_simulation_finds_mistakes(monkeypatch, name, mistake):
    monkeypatch.setattr(Membership, name, mistake)
    with pytest.raises(Broken):
        simulate_all(range(100))
