"""Presence: what consume() makes of signs that its consumer may be gone.

503, or another sign of absence    reported at once, then at growing intervals while it lasts
a refusal of the consumer          likewise
the second 503 in a row            the consumer is looked up (probe.py)
a missed heartbeat                 reported like a 503, and looked up like the second one
not found                          the consumer is gone: `receive` returns the error
any other answer, or none          looked up again at growing intervals while signs go on
a message, a heartbeat, or a pull that ends as it should: all is well again
"""

from __future__ import annotations

from jetstream.errors import ConsumerUnavailable, HeartbeatMissed
from jetstream.machine.probe import GONE

from .pace import Pace, Repeats

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.probe import Probe
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

# D-CONSUME-21: so many 503s in a row are a reason to look the consumer up.
DOUBTFUL = 2
# D-CONSUME-11: between two reports of the same cause, and between two lookups.
FIRST_REPEAT = 10.0
LONGEST_REPEAT = 60.0


class Presence:
    """Decides what to report and when to look the consumer up; without a probe never.

    Methods that return True want the machine to send the request that `request` returns; `reply`
    is where the answer to the last one is expected.
    """

    __slots__ = (
        "_absences",
        "_absent",
        "_looks",
        "_refusals",
        "doubted",
        "probe",
        "reply",
    )

    def __init__(self, probe: Probe | None) -> None:
        self.probe: Probe | None = probe
        self._looks = Pace(FIRST_REPEAT, LONGEST_REPEAT)
        self._absent = Repeats(FIRST_REPEAT, LONGEST_REPEAT)
        self._refusals = Repeats(FIRST_REPEAT, LONGEST_REPEAT)
        self._absences = 0  # 503s in a row
        self.reply: bytes = b""
        self.doubted: bool = False  # whether `proved` has anything to do

    @property
    def due(self) -> float | None:
        """When to call `handle_timer`."""
        return None if self.probe is None else self.probe.due

    def connected(self) -> None:
        """Start over: what is wrong now is reported on each connection."""
        self.proved()
        self._refusals.clear()

    def disconnected(self) -> None:
        """Stop the lookup, whose answer is lost with the connection."""
        if self.probe is not None:
            self.probe.stop()

    def proved(self) -> None:
        """Note that the consumer exists and serves this client."""
        self.doubted = False
        self._absences = 0
        self._absent.clear()
        self._looks.reset()

    def reports(self, error: NatsError, now: float) -> bool:
        """Return True if the user is to be notified of this error now (D-CONSUME-11)."""
        if isinstance(error, (ConsumerUnavailable, HeartbeatMissed)):
            self.doubted = True
            return self._absent.due(str(error), now)
        return self._refusals.due(str(error), now)

    def absent(self, now: float) -> bool:
        """Note a pull that was answered with 503; return whether to look the consumer up."""
        self._absences += 1
        return self._absences >= DOUBTFUL and self.silent(now)

    def silent(self, now: float) -> bool:
        """Note a missed heartbeat (CONSUME-22); return whether to look the consumer up."""
        self.doubted = True
        probe = self.probe
        if probe is None or probe.asking or not self._looks.due(now):
            return False
        return probe.start(now)

    def handle_timer(self, now: float) -> bool:
        """Repeat the lookup if it is due; return whether to send its request."""
        probe = self.probe
        if probe is None or probe.due is None or now < probe.due:
            return False
        return probe.handle_timer(now)

    def request(self, prefix: bytes, token: bytes) -> tuple[bytes, bytes, bytes]:
        """Return subject, payload and reply of the lookup; `prefix` is that of reply subjects."""
        assert self.probe is not None
        # A reply subject of its own each time: no answer is counted twice.
        self.reply = b"%si%s" % (prefix, token)
        return self.probe.subject, b"", self.reply

    def receive(self, msg: Msg) -> NatsError | None:
        """Return the error of a consumer that is gone (D-CONSUME-23); None for any other answer."""
        probe = self.probe
        return probe.error if probe is not None and probe.receive(msg) == GONE else None
