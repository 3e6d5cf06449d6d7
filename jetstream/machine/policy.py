"""Policy: the part of a machine that decides about messages and about the loss of its consumer.

Consume (pull/consume.py) and Push (push/machine.py) have one policy each, which never changes:

    Policy       the consumer is not replaced; every message is kept      (consume)
    PlainPush    the same; gaps in the consumer's sequence are reported   (push/policy.py)
    InOrder      messages are kept in order, without gaps; a consumer that is lost is replaced by
                 the next one                                             (ordered/policy.py)

The machine asks for a verdict on each message:

    KEEP      queue it
    SKIP      the user already has it; it is still a sign of life
    STALE     it is not from the current consumer, or the policy has set it aside: ignore it
    FULL      there is no room for it: drop, count and report it
    GAP       messages before it are missing: the consumer is lost
    CONTROL   it is not a message of the stream, but a status or a response

Everything else is an input that the machine passes on. Afterwards it adds the policy's
effects to its own, ends if the policy has an error, and sets its deadline by `due`.
"""

from __future__ import annotations

from .queue import EventLog

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.effects import MachineEffect
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .status import Status

KEEP = "keep"
SKIP = "skip"
STALE = "stale"
FULL = "full"
GAP = "gap"
CONTROL = "control"


class Policy:
    """The plain policy: keep all messages, and leave a lost consumer to the machine.

    `events` are the machine's, too.
    """

    __slots__ = ("events",)

    #: Whether consumers are replaced, so that a message or a status may be from an earlier one.
    recreates = False
    #: The subject that a push subscription should move to; b"": it does not move.
    subject = b""

    def __init__(self) -> None:
        self.events: EventLog = EventLog()

    @property
    def ready(self) -> bool:
        """Whether there is a consumer to pull from, and to expect heartbeats from."""
        return True

    @property
    def consumer(self) -> str:
        """The known state of the consumer, for a snapshot."""
        return "ready"  # as in snapshot.py, which few programs need

    @property
    def due(self) -> float | None:
        """When to call `handle_timer`."""
        return None

    @property
    def error(self) -> NatsError | None:
        """The reason why there will be no other consumer, or None."""
        return None

    def admit(self, msg: Msg, room: bool) -> str:
        """Return the verdict on a message; `room`: whether it fits in the queue."""
        return KEEP if room else FULL

    def admit_all(self, msgs: list[Msg]) -> bool:
        """Admit all of them, which fit and are not statuses; False: each needs a verdict."""
        return True

    def gap(self, msg: Msg) -> NatsError:
        """Return the error for a message with the verdict GAP."""
        raise NotImplementedError

    def heartbeat(self, last: int | None) -> NatsError | None:
        """Return an error if messages up to `last`, the consumer's sequence, are missing."""
        return None

    def proved(self) -> None:
        """Record that the consumer works."""

    def loses(self, status: Status) -> bool:
        """Return whether this status means that the consumer must be replaced."""
        return False

    def lost(self, error: NatsError, now: float) -> bool:
        """Replace the consumer because of this error; return False if it is not replaced."""
        return False

    def owns(self, token: bytes) -> bool:
        """Return whether a response with this token must be passed to `receive`."""
        return False

    def receive(self, msg: Msg, now: float) -> None:
        """Take a response to an effect."""

    def connected(self, now: float) -> None:
        """Continue on a connection."""

    def disconnected(self, active: bool) -> bool:
        """Wait for the next connection; return whether to notify the user."""
        return False

    def handle_timer(self, now: float) -> None:
        """Do the work that is `due`, if its time has come."""

    def close(self) -> None:
        """Do nothing more: the machine has ended."""

    def rewind(self, messages: list[Msg]) -> None:
        """Record that these messages were queued but not taken."""

    def pull_subject(self, subject: bytes) -> bytes:
        """Return the subject to send a pull to, given that of the template."""
        return subject

    def take_early(self) -> list[Msg]:
        """Remove and return messages that were set aside until the consumer was ready."""
        return []

    def take_effects(self) -> list[MachineEffect]:
        """Remove and return the effects for the connection."""
        return []
