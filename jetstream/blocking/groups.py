"""Consumer groups without async and await."""

from __future__ import annotations

from jetstream.pull.groups import api as _api
from jetstream.pull.groups import group as _group
from jetstream.pull.groups import member as _member
from jetstream.pull.groups import message as _message
from natsproto.errors import InvalidValue
from natsproto.port import blocking, blocking_next_to, blocking_to, locked_to
from natsproto.wire.text import shorten

from . import JetStream
from .loops import StoppableLoop
from .pull import JsMsg

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from natsproto.port import BlockingPort


class GroupMsg(JsMsg):
    """A message of a consumer group: a JsMsg with the subject that it was published to."""

    __slots__ = ("_group_msg",)

    def __init__(self, inner: _message.GroupMsg, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._group_msg = inner

    @property
    def partition(self) -> int:
        """The partition that the message belongs to; -1 if the subject does not begin with one."""
        return self._group_msg.partition


class GroupMember(StoppableLoop):
    """A member of a consumer group: `with` it, and iterate. Returned by `join` of a group.

    Messages arrive one after the other for each key, as long as every message is acknowledged
    before the next one is requested. Several instances of one member may run: one of them receives
    messages, and another one takes over if it ends or is silent for the ack wait.

    The iteration ends with `stop`, when the group is deleted, or with the client. It raises
    GroupChanged if a setting of the group changes or, for a static group, its members.
    """

    def __init__(self, inner: _member.GroupMember, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """The name of the member."""
        return self.inner.name

    @property
    def partitions(self) -> list[int]:
        """The current partitions of the member, as of the last configuration that was read."""
        return self.inner.partitions

    @property
    def state(self) -> str:
        """OUT, WANTED, IN, CHANGED, STOPPED, LEAVING or ENDED; see jetstream.pull.groups."""
        return self.inner.state

    @property
    def closed(self) -> bool:
        """Whether there will be no more messages."""
        return self.inner.closed

    _start = blocking(_member.GroupMember.start)
    next = blocking_to(GroupMsg, _member.GroupMember.next)
    stop = blocking(_member.GroupMember.stop)
    __next__ = blocking_next_to(GroupMsg, _member.GroupMember.__anext__)

    def start(self) -> Self:
        """Join the group; raise GroupNotFound or NotAMember if that is not possible."""
        self._start()
        return self

    def run(
        self,
        callback: Callable[[GroupMsg], object],
        *,
        on_error: Callable[[GroupMsg, Exception], object] | None = None,
    ) -> None:
        """Call `callback(msg)` for each message, one at a time: other members work in parallel.

        Returns when the iteration has ended. When a callback raises, `on_error(msg, error)` is
        called, and the next message is handled; without `on_error` the member leaves the group, and
        the error is raised.
        """
        try:
            for msg in self:
                _call(msg, callback, on_error)
        finally:
            self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __repr__(self) -> str:
        return repr(self.inner)


def _call(
    msg: GroupMsg,
    callback: Callable[[GroupMsg], object],
    on_error: Callable[[GroupMsg, Exception], object] | None,
) -> None:
    try:
        callback(msg)
    except Exception as error:
        if on_error is None:
            raise
        on_error(msg, error)


class StaticGroup:
    """A consumer group whose members never change. Returned by ConsumerGroups."""

    def __init__(self, inner: _group.StaticGroup, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self.inner.stream

    @property
    def name(self) -> str:
        """The name of the group."""
        return self.inner.name

    config = blocking(_group.StaticGroup.config)
    join = locked_to(GroupMember, _group.StaticGroup.join)
    active_members = blocking(_group.StaticGroup.active_members)
    step_down = blocking(_group.StaticGroup.step_down)
    delete = blocking(_group.StaticGroup.delete)

    def __repr__(self) -> str:
        return repr(self.inner)


class ElasticGroup:
    """A consumer group whose members may change. Returned by ConsumerGroups."""

    def __init__(self, inner: _group.ElasticGroup, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self.inner.stream

    @property
    def name(self) -> str:
        """The name of the group."""
        return self.inner.name

    @property
    def queue(self) -> str:
        """The name of the stream that the members consume from."""
        return self.inner.queue

    config = blocking(_group.ElasticGroup.config)
    join = locked_to(GroupMember, _group.ElasticGroup.join)
    add_members = blocking(_group.ElasticGroup.add_members)
    drop_members = blocking(_group.ElasticGroup.drop_members)
    set_mappings = blocking(_group.ElasticGroup.set_mappings)
    delete_mappings = blocking(_group.ElasticGroup.delete_mappings)
    active_members = blocking(_group.ElasticGroup.active_members)
    step_down = blocking(_group.ElasticGroup.step_down)
    delete = blocking(_group.ElasticGroup.delete)

    def __repr__(self) -> str:
        return repr(self.inner)


class ConsumerGroups:
    """Partitioned consumer groups of a JetStream; needs nats-server 2.11.

    They are compatible with pcgroups of orbit.go.
    """

    def __init__(self, js: JetStream) -> None:
        if not isinstance(js, JetStream):
            raise InvalidValue(
                "js is not a jetstream.blocking.JetStream: %s; for others, use"
                " jetstream.ConsumerGroups" % shorten(js)
            )
        self.inner: _api.ConsumerGroups = _api.ConsumerGroups(js.inner)
        self.port: BlockingPort = js.port

    create_static = blocking_to(StaticGroup, _api.ConsumerGroups.create_static)
    create_elastic = blocking_to(ElasticGroup, _api.ConsumerGroups.create_elastic)
    static = blocking_to(StaticGroup, _api.ConsumerGroups.static)
    elastic = blocking_to(ElasticGroup, _api.ConsumerGroups.elastic)
    static_names = blocking(_api.ConsumerGroups.static_names)
    elastic_names = blocking(_api.ConsumerGroups.elastic_names)

    def __repr__(self) -> str:
        return repr(self.inner)
