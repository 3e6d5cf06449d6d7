"""A world whose server is that of jetstream.testing.sim: streams, consumers, and faults."""

from __future__ import annotations

from typing import Any

from jetstream import JetStream
from jetstream.testing.sim.service import JetStreamService
from natsproto.client import Client
from natsproto.testing.sim.server import CoreServer
from tests.effects import will_publish
from tests.sim.world import World, require

NETWORK = ["cut", "cut", "silence", "hole", "stall"]
SERVER = ["election", "kill", "deleted", "vanished", "lost_message"]


class Served(World):
    """Subclasses are scenarios of programs that use JetStream as users do."""

    def serve(self) -> None:
        """Make the server, and a client of it."""
        self.server = CoreServer(self.rng)  # type: ignore[arg-type]
        self.service = JetStreamService(self, self.release)
        self.server.services.append(self.service)
        self.info = self.release.info()
        self.client = Client(self.connection, self.host.port)
        self.js = JetStream(self.client, timeout=self.timeout)

    def publish(self, stream: str, subject: str, data: bytes, block: bytes | None = None) -> int:
        """Store a message of another client."""
        assets = self.service.assets[stream]
        seq, _ = assets.stream.publish(subject, block, data, self.now)
        assets.pump()
        return seq

    # Faults: those of the network are the World's

    def fault_election(self, seconds: float) -> None:
        if self.service.leader and not self.service.frozen:
            self.service.step_down()
            self._sick(seconds, self.service.elect)

    def fault_kill(self, seconds: float) -> None:
        """Neither messages nor heartbeats nor answers."""
        if self.service.leader and not self.service.frozen:
            self.service.freeze()
            self._sick(seconds, self.service.thaw)

    def fault_deleted(self, seconds: float) -> None:
        self._remove("409 Consumer Deleted")

    def fault_vanished(self, seconds: float) -> None:
        """Gone without a word, as after a crash."""
        self._remove("")

    def _remove(self, line: str) -> None:
        for assets in self.service.assets.values():
            for consumer in assets.each():
                if not consumer.config.get("durable_name"):
                    assets.remove(consumer.name, line)

    def fault_lost_message(self, seconds: float) -> None:
        self.service.lose_message = self.rng.choice((1, 1, 2, 4))

    # What must hold in the end

    def check_nothing_is_left(self) -> None:
        connection: Any = self.connection
        left = connection.subscriptions.by_sid
        require(not left, lambda: f"I13: {len(left)} subscriptions are left")
        busy = connection.subscriptions.busy
        require(not any(will_publish(each) for each in busy), "I13: orders are left")
