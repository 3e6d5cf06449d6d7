"""Membership: the machine of one instance of a member. It decides; the API acts and reports.

    state     meaning                                          action
    OUT       the member has no partitions                     wait
    WANTED    it has partitions, and no consumer               create, after a pause
    IN        it pulls from its consumer                       run
    CHANGED   its partitions have changed, or the group ended  stop
    STOPPED   it no longer pulls; are its messages settled?    look, repeatedly
    LEAVING   all of its messages are settled                  delete
    ENDED     there is nothing more to do                      end

    input                            from             to
    partitions                       OUT              WANTED
    no partitions                    WANTED           OUT
    other partitions, or the end     IN               CHANGED
    created                          WANTED           IN
    refused: others have a partition WANTED           WANTED, after a pause
    refused: an old consumer exists  WANTED           STOPPED
    stopped                          CHANGED          STOPPED
    looked: its filters are right    STOPPED          WANTED
    looked: pinned to this instance,
            and all is settled       STOPPED          LEAVING
    looked: pinned to another one    STOPPED          WANTED, after a pause
    deleted                          LEAVING          WANTED, OUT or ENDED
    lost                             IN               WANTED, after a pause

A work queue does not allow two consumers for one partition. So a member that receives a partition
waits until the previous owner has deleted its consumer, which happens only after its current
messages are settled (D-GROUP-12). Thus no two messages of one key are processed at the same time.
"""

from __future__ import annotations

from jetstream.errors.groups import GroupChanged, NotAMember

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .config import GroupConfig

# States
OUT = "OUT"
WANTED = "WANTED"
IN = "IN"
CHANGED = "CHANGED"
STOPPED = "STOPPED"
LEAVING = "LEAVING"
ENDED = "ENDED"

# Actions
WAIT = "wait"
CREATE = "create"
RUN = "run"
STOP = "stop"
LOOK = "look"
DELETE = "delete"
END = "end"

_ACTIONS = {
    OUT: WAIT,
    WANTED: CREATE,
    IN: RUN,
    CHANGED: STOP,
    STOPPED: LOOK,
    LEAVING: DELETE,
    ENDED: END,
}
CONFLICT = 0.25  # seconds until a consumer is created again
STANDBY = 0.5  # seconds that the pinned instance has to replace the consumer
LOOKS = 0.05  # seconds between the first two looks, doubled up to
LONGEST_LOOKS = 1.0


class Membership:
    """The decisions of one instance of a member.

    ack_wait: how long processing a message may take; then the server delivers it again anyway
    """

    __slots__ = (
        "_ack_wait",
        "_elastic",
        "_member",
        "_must",
        "_pause",
        "_patient_until",
        "_rest",
        "config",
        "error",
        "next_at",
        "over",
        "state",
        "subjects",
    )

    def __init__(self, member: str, elastic: bool, ack_wait: float) -> None:
        self._member = member
        self._elastic = elastic
        self._ack_wait = ack_wait
        self._rest = 0  # messages that were received and not taken
        self._must = False  # delete the consumer, whichever instance is pinned
        self._pause = LOOKS
        self._patient_until = 0.0
        self.config: GroupConfig | None = None
        #: The filter subjects of the consumer.
        self.subjects: list[str] = []
        self.state: str = OUT
        #: When the next action is due; nothing happens before.
        self.next_at: float = 0.0
        #: Whether the group has ended for this member, and why, if it was not deleted.
        self.over: bool = False
        self.error: NatsError | None = None

    def action(self, now: float) -> str:
        """Return the action to take now."""
        return WAIT if now < self.next_at else _ACTIONS[self.state]

    # The configuration

    def seen(self, config: GroupConfig | None, now: float) -> bool:
        """Take the configuration that was read, None if there is none; return whether it is new."""
        before = self.config
        if self.over or (before is not None and config == before):
            return False
        if config is None:
            self._finish(None)
        elif before is not None and config.settings() != before.settings():
            self._finish(GroupChanged(self._member))  # GROUP-10
        else:
            self.config = config
            self._assign(config.subjects(self._member), now)
        return True

    def _assign(self, subjects: list[str], now: float) -> None:
        if not subjects and not self._elastic:
            self._finish(NotAMember(self._member))
        elif subjects != self.subjects:
            self.subjects = subjects
            if self.state in (OUT, WANTED):
                self.state = WANTED if subjects else OUT
                self.next_at = now
            elif self.state == IN:
                self.state = CHANGED
            elif self.state == STOPPED:
                # The consumer may have been replaced by now, so this instance must not delete it.
                self._must = False
                self._patient_until = now + self._ack_wait

    def _finish(self, error: NatsError | None) -> None:
        self.over = True
        self.error = error
        self.subjects = []
        if self.state == IN:
            self.state = CHANGED
        elif self.state in (OUT, WANTED):
            self.state = ENDED
            self.next_at = 0.0

    # The results of actions

    def created(self) -> None:
        """Record that the consumer exists, with the filters of `subjects`."""
        self.state = IN

    def refused(self, now: float, exists: bool) -> None:
        """Record that the consumer was not created.

        exists: a consumer of this member exists with other filters. Otherwise another member still
        has one of the partitions, or the server did not answer.
        """
        if exists:
            self._must = True
            self._settle(0, now)
        else:
            self.next_at = now + CONFLICT

    def stopped(self, rest: int, now: float) -> None:
        """Record that pulling has stopped; `rest` messages were received but not taken."""
        if self.over and (self._elastic or self.error is not None):
            # Other instances, or the deletion of the group, take care of the consumer (D-GROUP-14).
            self.state = ENDED
            return
        self._must = self.over
        self._settle(rest, now)

    def _settle(self, rest: int, now: float) -> None:
        self.state = STOPPED
        self._rest = rest
        self._pause = LOOKS
        self._patient_until = now + self._ack_wait

    def looked(self, pinned: bool, subjects: list[str], ack_pending: int, now: float) -> None:
        """Record the consumer's state.

        pinned: whether this instance is pinned
        subjects: the filter subjects of the consumer
        ack_pending: how many delivered messages are not settled
        """
        if subjects == self.subjects:
            # Another instance was faster, or the partitions have changed back.
            self.deleted(now)
        elif not (pinned or self._must):
            self.state = WANTED if self.subjects else OUT
            self.next_at = now + STANDBY  # GROUP-11
        elif ack_pending <= self._rest or now >= self._patient_until:  # D-GROUP-12
            self.state = LEAVING
        else:
            self.next_at = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_LOOKS)

    def deleted(self, now: float) -> None:
        """Record that the consumer no longer exists."""
        self._must = False
        self.next_at = now
        if self.over:
            self.state = ENDED
        else:
            self.state = WANTED if self.subjects else OUT

    def lost(self, now: float) -> None:
        """Record that the consumer was deleted while messages were pulled from it."""
        self.deleted(now)
        if self.state == WANTED:
            self.next_at = now + STANDBY

    def close(self, error: NatsError | None = None) -> None:
        """Record that nothing more can be done, and the error, if there is one."""
        self.over = True
        self.error = error
        self.state = ENDED
