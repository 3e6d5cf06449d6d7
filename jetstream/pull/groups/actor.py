"""Actor: executes the decisions of a member's Membership, and reports the results to it."""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors import ConsumerDeleted, JetStreamNotAvailable
from jetstream.errors.api import (
    ConsumerExists,
    ConsumerNotFound,
    MessageNotFound,
    StreamNotFound,
    TemporarilyUnavailable,
    TooManyRequests,
    WorkQueueConflict,
)
from jetstream.kv.entry import stored_entry
from jetstream.kv.names import prefix_of, stream_of
from jetstream.pull.messages import machine_of
from natsproto.errors import ConnectionLost, InvalidState, TimeoutExpired

from .feed import ConfigFeed
from .membership import CREATE, DELETE, LOOK, STOP, Membership
from .names import PRIORITY_GROUP

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.message import JsMsg
    from jetstream.pull.messages import Messages
    from natsproto.errors import NatsError

    from .config import GroupConfig
    from .plan import MemberPlan

GONE = (ConsumerNotFound, StreamNotFound, ConsumerDeleted)
LATER = (  # D-GROUP-18
    ConnectionLost,
    JetStreamNotAvailable,
    TemporarilyUnavailable,
    TimeoutExpired,
    TooManyRequests,
)


class Actor:
    """The consumer, the pulls and the configuration of one instance of a member.

    messages: those of the consumer; None while nothing is pulled
    """

    def __init__(self, plan: MemberPlan) -> None:
        self.plan = plan
        self._session = plan.api.session
        self._pin = ""
        now = self._session.port.now()
        self.membership: Membership = Membership(plan.member, plan.elastic, plan.ack_wait)
        self.feed: ConfigFeed = ConfigFeed(plan.ack_wait + 0.5, now)
        self.messages: Messages | None = None

    @property
    def subject(self) -> str:
        """The subject of the key of the configuration."""
        return prefix_of(self.plan.bucket) + self.plan.key

    async def update(self) -> None:
        """Read the configuration, and pass it to the membership."""
        try:
            config = await self.read()
        except LATER:
            self.feed.failed(self._session.port.now())
            return
        now = self._session.port.now()
        self.feed.was_read(self.membership.seen(config, now), now)

    async def read(self) -> GroupConfig | None:
        """Return the configuration; None if the group was deleted."""
        plan = self.plan
        try:
            body = {"last_by_subj": self.subject}
            stored = await get_by_api(plan.api, stream_of(plan.bucket), body)
        except (MessageNotFound, StreamNotFound):
            return None
        entry = stored_entry(stored, plan.bucket, plan.key)
        return plan.decode(entry.value) if entry.operation == "PUT" else None

    async def take(self) -> JsMsg | None:
        """Return a message that has arrived; None if there is none, or if the consumer was lost."""
        messages = self.messages
        assert messages is not None
        msg = messages.poll()
        if msg is None and (messages.pending or messages.closed or machine_of(messages).error):
            try:
                msg = await messages.next(0)
            except InvalidState:  # the client has been closed or drained
                self.membership.close()
            except GONE as error:
                await self._lose(error)
        return msg

    async def _lose(self, error: NatsError) -> None:
        """Record that another program deleted the consumer."""
        self._drop()
        if self.plan.elastic:
            self.feed.next_at = now = self._session.port.now()
            self.membership.lost(now)
        else:
            # D-GROUP-16: another one would begin with messages that were processed before.
            deleted = await self.read() is None
            self.membership.close(None if deleted else error)

    def _drop(self) -> None:
        self.messages = None
        self.feed.target = None

    async def act(self, action: str) -> None:
        """Execute the decision of the membership, and report the result."""
        if action is CREATE:
            await self._create()
        elif action is STOP:
            await self._stop_pulling()
        elif action is LOOK:
            await self._look()
        elif action is DELETE:
            await self._delete()

    async def _create(self) -> None:
        membership = self.membership
        feed = self.feed
        try:
            consumer = await self.plan.create(membership.subjects)
        except WorkQueueConflict:
            membership.refused(self._session.port.now(), False)
        except ConsumerExists:
            if not self.plan.elastic:
                raise
            membership.refused(self._session.port.now(), True)
        except LATER:
            membership.refused(self._session.port.now(), False)
        except StreamNotFound:
            feed.next_at = now = self._session.port.now()  # the group may have been deleted
            membership.refused(now, False)
        else:
            membership.created()
            self.messages = consumer.consume(
                max_messages=self.plan.batch, expires=self.plan.expires, group=PRIORITY_GROUP
            )
            feed.target = machine_of(self.messages)

    async def _stop_pulling(self) -> None:
        messages = self.messages
        assert messages is not None
        self._pin = machine_of(messages).pin
        rest = await messages.stop(nak=True)
        self._drop()
        self.membership.stopped(len(rest), self._session.port.now())

    async def _look(self) -> None:
        try:
            info = await self.plan.info()
        except GONE:
            self.membership.deleted(self._session.port.now())
            return
        except LATER:
            return
        pinned = any(
            row.group == PRIORITY_GROUP and row.pinned_client_id == self._pin
            for row in info.priority_groups
            if self._pin
        )
        subjects = info.config.filter_subjects
        now = self._session.port.now()
        self.membership.looked(pinned, subjects, info.num_ack_pending, now)

    async def _delete(self) -> None:
        try:
            await self.plan.delete()
        except GONE:
            pass
        except LATER:
            return
        self.membership.deleted(self._session.port.now())
