"""The models of several releases of nats-server against recordings of each of them.

The recordings are made by tests/vectors/record_releases.py.
"""

from __future__ import annotations

import json
import random

import pytest

from jetstream import JetStream
from jetstream.testing.sim import Simulation
from jetstream.testing.sim.releases import RELEASES, find_release
from jetstream.testing.sim.service import JetStreamService
from natsproto import Parser
from natsproto.testing import Server
from natsproto.testing.sim.clock import Clock
from natsproto.testing.sim.peer import Peer
from natsproto.testing.sim.server import CoreServer
from tests.vectors import record_releases
from tests.vectors.record_releases import CONNECT, differences, read_recording, record, shapes
from tests.vectors.release_scripts import SCRIPTS

VERSIONS = [release.version for release in RELEASES]


def replay(release, steps):
    """Return a recording of the model: the same frames at the same times."""
    clock = Clock()
    server = CoreServer(random.Random(1))
    server.services.append(JetStreamService(clock, release))
    sent = []
    peer = Peer(server, sent.append, release.info())
    peer.receive(CONNECT)
    parser = Parser()
    played = []
    for step in steps:
        peer.receive(step["send"].encode("latin-1"))
        clock.run_until(clock.now + step["listen"])
        played.append({**step, "got": shapes(parser.feed(b"".join(sent)))})
        sent.clear()
    return played


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_model_answers_as_the_server_did(version, script):
    recorded = read_recording(version)[script]
    played = replay(find_release(version), recorded)
    for before, now in zip(recorded, played):
        assert now["got"] == before["got"], before["send"]


def test_the_releases_that_are_recorded():
    assert sorted(VERSIONS) == sorted(record_releases.RELEASES)
    for version in VERSIONS:
        recording = read_recording(version)
        assert [*recording] == ["INFO", *SCRIPTS]
        release = find_release(version)
        assert recording["INFO"] == [{"version": release.version, "level": release.level}]
        for script, steps in SCRIPTS.items():
            sent = [(step["send"].encode("latin-1"), step["listen"]) for step in recording[script]]
            assert sent == steps, f"{script} has changed: record it again"


def test_every_habit_of_a_release_is_recorded():
    """Without one of its habits a release answers differently from its recording."""
    for release in RELEASES:
        for habit in [name for name in release.__slots__ if name not in ("level", "version")]:
            other = find_release(release.version)
            before = getattr(other, habit)
            setattr(other, habit, not before)
            try:
                recording = read_recording(release.version)
                different = [
                    name for name in SCRIPTS if replay(other, recording[name]) != recording[name]
                ]
            finally:
                setattr(other, habit, before)
            hidden = habit == "counts_early" and release.moves_start  # no start is after the end
            assert bool(different) != hidden, (release.version, habit)


def test_the_recording_of_the_installed_server_can_be_repeated():
    with Server() as server:
        version = ".".join(map(str, server.version))
    if version not in VERSIONS:
        pytest.skip(f"there is no recording of nats-server {version}")
    assert differences(read_recording(version), json.loads(json.dumps(record()))) == []


@pytest.mark.parametrize(("server", "version"), [("2.10", "2.10.25"), ("2.15.1", "2.15.1")])
def test_a_simulation_of_a_release(server, version):
    with Simulation(server=server) as sim:
        client = sim.client()
        assert client.info.version == version
        info = sim.run(JetStream(client).account_info())
        assert info.api.level == find_release(version).level


def test_an_unknown_release():
    with pytest.raises(ValueError, match=r"'2\.1'.*2\.15\.1, 2\.12\.0, 2\.10\.25"):
        Simulation(server="2.1")
