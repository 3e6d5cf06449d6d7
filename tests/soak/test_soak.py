"""The short form of the soak (`make soak` runs the long form), and tests of its checks."""

from __future__ import annotations

import asyncio
import random

import pytest

from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from tests.soak.__main__ import main
from tests.soak.faults import PLACES, ThreeNodes
from tests.soak.ledger import Ledger
from tests.soak.load import Soak, contents

# Seeds whose faults are: a crash and a freeze; a stop of a member and a leader that steps down.
SHORT = [("single", 3, {"kill", "freeze"}), ("cluster", 3, {"terminate", "stream step-down"})]


@pytest.mark.parametrize(("where", "seed", "faults"), SHORT)
def test_nothing_is_lost(where, seed, faults):
    soak = Soak(where, 3000, 2, seed)
    complaints = asyncio.run(soak.run())
    assert not complaints, soak.summary()
    assert set(soak.names) == faults
    assert len(soak.ledger.faults) == 2


def good(count: int = 100) -> Ledger:
    ledger = Ledger(count)
    for number in range(count):
        ledger.note_published(number)
        ledger.note_delivered(number, 1, float(number))
        ledger.note_acked(number)
        ledger.note_stored(number)
    return ledger


def unsaid(ledger):
    ledger.confirmed[5] = 0


def lost(ledger):
    ledger.stored[5] = 0


def doubled(ledger):
    ledger.note_stored(5)


def undelivered(ledger):
    ledger.delivered[5] = 0


def unacknowledged(ledger):
    ledger.acked[5] = 0


def in_doubt(ledger):
    unacknowledged(ledger)
    ledger.note_in_doubt(5)


def all_acked_but_one(ledger):
    unacknowledged(ledger)
    ledger.note_in_doubt(6)
    ledger.all_acked = True


def confirmed_twice(ledger):
    ledger.note_published(5)


def as_new(ledger):
    ledger.note_delivered(5, 1, 50.0)
    ledger.faults.append(("kill", 0.0, 4.0))
    ledger.faults.append(("kill", 51.0, 60.0))


def leaking(ledger):
    ledger.rss = [(number, number << 20) for number in range(100)]


BAD = [
    (unsaid, "1 stored and not confirmed, as [5]"),
    (lost, "1 confirmed to the publisher and not stored, as [5]"),
    (doubled, "1 stored more than once, as [5]"),
    (undelivered, "1 stored and not delivered, as [5]"),
    (unacknowledged, "1 never acknowledged, as [5]"),
    (in_doubt, "1 never acknowledged, as [5]"),
    (all_acked_but_one, "1 never acknowledged, as [5]"),
    (confirmed_twice, "5 was confirmed twice"),
    (as_new, "1 delivered again as new, without a fault, as [5]"),
    (leaking, "RSS grew from 50 to 99 MB in the second half"),
]


def test_a_good_ledger():
    ledger = good()
    ledger.note_delivered(5, 2, 50.0)  # its delivery count says so
    ledger.note_delivered(6, 1, 50.0)  # a server died in the meantime
    in_doubt(ledger)
    ledger.all_acked = True
    ledger.faults.append(("kill", 49.0, 60.0))
    assert ledger.complaints() == []
    assert ledger.again == 2


@pytest.mark.parametrize(("harm", "complaint"), BAD)
def test_a_bad_ledger(harm, complaint):
    ledger = good()
    harm(ledger)
    assert complaint in ledger.complaints()


def test_leaks_are_seen():
    """Each kind of leftover changes the count that the soak compares."""

    async def main():
        with Server() as server:
            async with connect(server.url) as client:
                before = contents(client)
                sub = await client.subscribe("nobody.publishes.here")
                subscribed = contents(client)
                service = await client.subscribe("nobody.answers.here")
                request = asyncio.create_task(client.request("nobody.answers.here", timeout=30.0))
                await anext(service)  # the request is open now
                requested = contents(client)
                request.cancel()
                await asyncio.wait([request])
                await sub.unsubscribe()
                await service.unsubscribe()
                return before, subscribed, requested, contents(client)

    before, subscribed, requested, after = asyncio.run(main())
    assert before == after == (0, 0, before[2])  # the timers: that of the next PING
    assert subscribed == (1, 0, before[2])
    assert requested == (2, 1, before[2] + 1)


def test_the_meta_leader_steps_down():
    place = ThreeNodes(random.Random(1))
    try:
        before = place._cluster.meta_leader()
        place.faults["meta step-down"]()
        assert before is not None
        assert place._cluster.meta_leader() is not before
    finally:
        place.stop()


def test_the_command(monkeypatch, capsys):
    assert sorted(PLACES) == ["cluster", "single"]

    async def run(self):
        return ["so it goes"]

    monkeypatch.setattr(Soak, "run", run)
    assert main(["--messages", "10", "--faults", "1", "--seed", "7", "--where", "single"]) == 1
    output = capsys.readouterr().out
    assert "so it goes" in output
    assert "python -m tests.soak --messages 10 --faults 1 --seed 7 --where single" in output
