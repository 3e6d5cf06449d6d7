"""Silence: whether the server still answers the pulls of consume().

While a pull is open, the server sends a heartbeat whenever it has no message to send, and it ends
each pull with a status when the pull expires. So there are two signs that pulls are lost:

    nothing arrived for two heartbeats    all pulls are abandoned: HeartbeatMissed
    a status is overdue                   its pull is abandoned: TimeoutExpired; if, in addition,
                                          nothing arrived for two heartbeats, as above

Each pull that is sent delays the first sign, because its heartbeats begin with it. The second one
is not delayed, so pulls that overlap cannot hide a server that is silent (CONSUME-28).

Silence proves nothing if the client has not read: a blocking client does not read while the user's
code runs, and a timer that fires late shows it. Then the server gets one more heartbeat
(D-CONSUME-10).
"""

from __future__ import annotations

from jetstream.errors import HeartbeatMissed
from natsproto.errors import TimeoutExpired

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .ledger import Ledger

# A timer that fires later than this shows that the client was busy, and may not have read.
LATE = 0.1


class Silence:
    """The time since anything arrived, and the open pulls, which it abandons when they are lost."""

    __slots__ = (
        "_grace_used",
        "_granted",
        "_heartbeat",
        "_ledger",
        "_length",
        "_pulled_at",
        "_silent_at",
    )

    def __init__(self, ledger: Ledger, heartbeat: float) -> None:
        self._ledger = ledger
        self._heartbeat = heartbeat
        self._length = 2 * heartbeat
        self._silent_at = 0.0  # two heartbeats after anything arrived
        self._pulled_at = 0.0
        self._grace_used = False
        self._granted = 0.0  # how much later the silence begins because of that

    def heard(self, now: float) -> None:
        """Note that the server has sent something to this subscription."""
        self._silent_at = now + self._length
        self._grace_used = False

    def heard_ago(self, now: float) -> float | None:
        """Return the seconds since anything arrived; None: nothing has yet."""
        if not self._silent_at:
            return None
        granted = self._granted if self._grace_used else 0.0
        return now - (self._silent_at - granted - self._length)

    def pulled(self, now: float) -> None:
        """Note that a pull is sent."""
        self._pulled_at = now

    @property
    def due(self) -> float | None:
        """When to call `check`; None while no pull is open."""
        ledger = self._ledger
        return min(self._silent_by(), ledger.ends_at) if ledger.open else None

    def check(self, now: float) -> NatsError | None:
        """Abandon the pulls that are lost, and return the error to report if there are any."""
        due = self.due
        if due is None:
            return None
        if now - due > LATE and not self._grace_used:
            self._grant_grace(now)
        overdue = self._ledger.give_up(now)
        if now >= self._silent_by() or (overdue and now >= self._silent_at):  # CONSUME-28
            # CONSUME-8: late answers to these pulls are ignored.
            self._ledger.clear()
            return HeartbeatMissed("the server was silent for %g s" % self._length)
        return TimeoutExpired("the server did not end a pull in time") if overdue else None

    def _silent_by(self) -> float:
        """Return when a heartbeat is missed: two after anything arrived or a pull was sent."""
        return max(self._silent_at, self._pulled_at + self._length)

    def _grant_grace(self, now: float) -> None:
        """Wait for one more heartbeat: messages may have arrived that were not read yet."""
        self._grace_used = True  # D-CONSUME-10
        later = now + self._heartbeat
        self._granted = max(0.0, later - self._silent_at) if self._silent_at else 0.0
        self._silent_at = max(self._silent_at, later)
        for pull in self._ledger.open:
            pull.ends_at = max(pull.ends_at, later)
