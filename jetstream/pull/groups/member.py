"""GroupMember: iterate the messages of the partitions that a member of a group has.

The Membership decides (membership.py), the ConfigFeed knows when to read the configuration
(feed.py), and a GroupMember acts: it reads, creates and deletes consumers, and waits. It does so
only within its own calls, between two messages. So the partitions of a member never change while
the program processes a message.
"""

from __future__ import annotations

from jetstream.errors import GroupNotFound
from jetstream.errors.api import ApiError
from jetstream.pull.messages import machine_of
from natsproto.errors import InvalidState, TimeoutExpired

from .actor import LATER, Actor
from .membership import END, RUN, WAIT
from .message import group_msg

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from typing_extensions import Self

    from natsproto.durations import Seconds

    from .message import GroupMsg
    from .plan import MemberPlan


class GroupMember:
    """A member of a consumer group: `async with` it, and iterate. Returned by `join` of a group.

    Messages arrive one after the other for each key, as long as every message is acknowledged
    before the next one is requested. Several instances of one member may run: one of them receives
    messages, and another one takes over if it ends or is silent for the ack wait.

    The iteration ends with `stop`, when the group is deleted, or with the client. It raises
    GroupChanged if a setting of the group changes or, for a static group, its members.
    """

    def __init__(self, plan: MemberPlan) -> None:
        self._plan = plan
        self._session = plan.api.session
        self._actor = Actor(plan)
        self._membership = self._actor.membership
        self._feed = self._actor.feed
        self._started = False
        #: Whether there will be no more messages.
        self.closed: bool = False

    @property
    def name(self) -> str:
        """The name of the member."""
        return self._plan.member

    @property
    def partitions(self) -> list[int]:
        """The current partitions of the member, as of the last configuration that was read."""
        config = self._membership.config
        return [] if config is None or self.closed else config.partitions(self.name)

    @property
    def state(self) -> str:
        """OUT, WANTED, IN, CHANGED, STOPPED, LEAVING or ENDED; see jetstream.pull.groups."""
        return self._membership.state

    async def start(self) -> Self:
        """Join the group; raise GroupNotFound or NotAMember if that is not possible."""
        if self._started:
            return self
        session = self._session
        session.attach(self._feed, self._actor.subject)
        self._started = True
        try:
            config = await self._actor.read()
            if config is None:
                raise GroupNotFound(self._plan.key)
            now = session.port.now()
            self._membership.seen(config, now)
            self._feed.was_read(True, now)
            if self._membership.error is not None:
                raise self._membership.error
        except BaseException:
            self._leave()
            raise
        return self

    async def next(self, timeout: Seconds | None = None) -> GroupMsg:
        """Return the next message; raise TimeoutExpired, or InvalidState at the end."""
        deadline = None if timeout is None else self._session.deadline(timeout)
        msg = await self._next(deadline)
        if msg is None:
            raise InvalidState("member %s has left its group" % self.name)
        return msg

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> GroupMsg:
        msg = await self._next(None)
        if msg is None:
            raise StopAsyncIteration
        return msg

    async def run(
        self,
        callback: Callable[[GroupMsg], Awaitable[object]],
        *,
        on_error: Callable[[GroupMsg, Exception], Awaitable[object]] | None = None,
    ) -> None:
        """Call `callback(msg)` for each message, one at a time: other members work in parallel.

        Returns when the iteration has ended. When a callback raises, `on_error(msg, error)` is
        called, and the next message is handled; without `on_error` the member leaves the group, and
        the error is raised.
        """
        try:
            while True:
                msg = await self._next(None)
                if msg is None:
                    return
                try:
                    await callback(msg)
                except Exception as error:
                    if on_error is None:
                        raise
                    await on_error(msg, error)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Leave the group now: another instance of the member takes over.

        The consumer stays, and so do the partitions; an elastic consumer that no instance uses is
        removed by the server after its ack wait.
        """
        messages = self._actor.messages
        self._leave()
        if messages is None or self._session.connection.closed:
            return
        self._actor.messages = None
        pinned = machine_of(messages).pin
        await messages.stop(nak=True)
        if pinned:
            # D-GROUP-17: otherwise others would wait until the pin expires.
            try:
                await self._plan.unpin()
            except LATER + (ApiError,):
                pass

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<GroupMember %s of %s, %s>" % (self.name, self._plan.key, self.state)

    def _leave(self) -> None:
        self.closed = True
        if self._started and not self._feed.ended:
            self._session.connection.unsubscribe(self._feed.sid)
            self._session.port.flush_soon()

    async def _next(self, deadline: float | None) -> GroupMsg | None:
        """Return the next message; None at the end of the membership."""
        await self.start()
        actor = self._actor
        while not self.closed:
            now = self._session.port.now()
            if now >= self._feed.next_at:
                await actor.update()
                continue
            action = self._membership.action(now)
            if action is RUN:
                msg = await actor.take()
                if msg is not None:
                    return group_msg(msg)
                if self._membership.action(now) is RUN:
                    await self._wait(deadline)
            elif action is WAIT:
                await self._wait(deadline)
            elif action is END:
                self._leave()
                if self._membership.error is not None:
                    raise self._membership.error
            else:
                await actor.act(action)
        return None

    async def _wait(self, deadline: float | None) -> None:
        """Wait for a message, a change of the configuration, or the next action."""
        feed = self._feed
        soonest = feed.next_at
        now = self._session.port.now()
        if now < self._membership.next_at < soonest:
            soonest = self._membership.next_at
        if deadline is not None and deadline <= soonest:
            await self._session.wait(feed.target or feed, deadline, "message")
            return
        try:
            await self._session.wait(feed.target or feed, soonest, "message")
        except TimeoutExpired:
            pass  # the configuration or an action is due
