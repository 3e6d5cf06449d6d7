"""Simulation: that of natsproto.testing.sim, with JetStream on the simulated server.

with Simulation(seed=1) as sim:
    js = JetStream(sim.client())
    sim.run(js.create_stream(name="ORDERS", subjects=["orders.>"]))
    worker = sim.start(program(js))
    sim.advance(10.0)
    sim.lose_leader(2.0)
    sim.advance(10.0)
"""

from __future__ import annotations

from natsproto.testing.sim import simulation
from natsproto.testing.sim.steps import with_data
from natsproto.wire.frames import Msg, Pub

from .releases import NEWEST, find_release
from .service import JetStreamService

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.wire.frames import Frame

_NEXT = "$JS.API.CONSUMER.MSG.NEXT."
_CALL = "$JS.API."
_ACK = "$JS.ACK."
_HEARTBEAT = 100


class Simulation(simulation.Simulation):
    """A program, its clients, the network and a server with JetStream, on simulated time.

    seed: chooses everything that is random; the same seed produces the same run
    delay: how long data is on its way, in seconds and in one direction
    server: the release of nats-server that is simulated, "2.15.1", "2.12.0" or "2.10.25"
    """

    def __init__(
        self, seed: int = 0, *, delay: float = 0.001, server: str = NEWEST.version
    ) -> None:
        super().__init__(seed, delay=delay)
        release = find_release(server)
        self.info: bytes = release.info()
        #: Streams, consumers and their faults.
        self.jetstream: JetStreamService = JetStreamService(self, release)
        self.server.services.append(self.jetstream)

    def __enter__(self) -> Simulation:
        return self

    # Faults

    def lose_leader(self, seconds: float = 1.0) -> None:
        """Take the leader from all streams and consumers for so many seconds.

        Open pulls end with 409 Leadership Change, new ones and publishes are answered with 503, and
        the API does not answer. Push consumers are silent.
        """
        self.record("", "fault", "no leader for %g s" % seconds)
        self.jetstream.step_down()
        self.at(self.now + seconds, self.jetstream.elect)

    def freeze(self, seconds: float) -> None:
        """Freeze JetStream: it delivers and answers nothing, while connections stay alive."""
        self.record("", "fault", "freeze for %g s" % seconds)
        self.jetstream.freeze()
        self.at(self.now + seconds, self.jetstream.thaw)

    def restart(self, seconds: float = 0.5) -> None:
        """Restart the server: connections break, and consumers without a durable name are lost."""
        self.record("", "fault", "restart")
        self.jetstream.forget()
        super().cut(seconds)

    def drop_next_pull(self, count: int = 1) -> None:
        """Lose the next pulls on their way: they are not answered."""
        self.record("", "fault", "the next pull is lost")
        self.jetstream.lose_pulls += count

    def drop_next_message(self) -> None:
        """Lose the next message to a pull consumer, as between two servers of a cluster."""
        self.record("", "fault", "the next message is lost")
        self.jetstream.lose_message = 1

    def drop_next_ack(self, count: int = 1) -> None:
        """Lose the next acknowledgments of messages."""
        self.record("", "fault", "the next acknowledgment is lost")
        self.jetstream.lose_acks += count

    def drop_next_puback(self, count: int = 1) -> None:
        """Lose the responses to the next publishes, which are stored."""
        self.record("", "fault", "the response to the next publish is lost")
        self.jetstream.lose_puback += count

    def remove_consumer(self, stream: str, name: str, *, status: bool = False) -> None:
        """Remove a consumer as a crash does, without a word; with `status` as a deletion."""
        self.record("", "fault", "consumer %s of %s is removed" % (name, stream))
        assets = self.jetstream.assets[stream]
        assets.remove(name, "409 Consumer Deleted" if status else "")

    # The trace

    def describe(self, frame: Frame) -> tuple[str, str]:
        """Return the kind of a frame, and a text."""
        if isinstance(frame, Pub):
            subject = frame.subject
            if subject.startswith(_NEXT):
                return "pull", with_data(subject[len(_NEXT) :], frame.data)
            if subject.startswith(_CALL):
                return "call", with_data(subject[len(_CALL) :], frame.data)
            if subject.startswith(_ACK):
                words = subject.split(".")
                kind = frame.data.decode() or "+ACK"
                return "ack", "%s of message %s of %s" % (kind, words[5], words[2])
        if isinstance(frame, Msg):
            if frame.status == _HEARTBEAT:
                return "heartbeat", frame.subject
            answer = frame.subject.startswith("_INBOX.") and frame.data.startswith(b"{")
            if answer and not frame.status and not frame.reply:
                return "response", with_data(frame.subject, frame.data)
        return super().describe(frame)
