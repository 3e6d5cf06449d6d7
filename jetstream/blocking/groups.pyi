# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable, Sequence

from typing_extensions import Self, Unpack

from jetstream.blocking import JetStream
from jetstream.blocking.loops import StoppableLoop
from jetstream.blocking.pull import JsMsg
from jetstream.pull.groups import api as _api
from jetstream.pull.groups import group as _group
from jetstream.pull.groups import member as _member
from jetstream.pull.groups import message as _message
from jetstream.pull.groups.config import (
    ElasticGroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
)
from jetstream.schema.consumer_config import ConsumerConfigDict
from jetstream.streams.manager import ConsumerConfigLike
from natsproto.durations import Seconds
from natsproto.port import BlockingPort

class GroupMsg(JsMsg):
    """A message of a consumer group: a JsMsg with the subject that it was published to."""

    __slots__ = ("_group_msg",)

    def __init__(self, inner: _message.GroupMsg, port: BlockingPort) -> None: ...
    @property
    def partition(self) -> int:
        """The partition that the message belongs to; -1 if the subject does not begin with one."""
        ...

class GroupMember(StoppableLoop):
    """A member of a consumer group: `with` it, and iterate. Returned by `join` of a group.

    Messages arrive one after the other for each key, as long as every message is acknowledged
    before the next one is requested. Several instances of one member may run: one of them receives
    messages, and another one takes over if it ends or is silent for the ack wait.

    The iteration ends with `stop`, when the group is deleted, or with the client. It raises
    GroupChanged if a setting of the group changes or, for a static group, its members.
    """

    inner: _member.GroupMember
    port: BlockingPort

    def __init__(self, inner: _member.GroupMember, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name of the member."""
        ...

    @property
    def partitions(self) -> list[int]:
        """The current partitions of the member, as of the last configuration that was read."""
        ...

    @property
    def state(self) -> str:
        """OUT, WANTED, IN, CHANGED, STOPPED, LEAVING or ENDED; see jetstream.pull.groups."""
        ...

    @property
    def closed(self) -> bool:
        """Whether there will be no more messages."""
        ...

    def next(self, timeout: Seconds | None = None) -> GroupMsg:
        """Return the next message; raise TimeoutExpired, or InvalidState at the end."""
        ...

    def stop(self) -> None:
        """Leave the group now: another instance of the member takes over.

        The consumer stays, and so do the partitions; an elastic consumer that no instance uses is
        removed by the server after its ack wait.
        """
        ...

    def __next__(self) -> GroupMsg: ...
    def start(self) -> Self:
        """Join the group; raise GroupNotFound or NotAMember if that is not possible."""
        ...

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
        ...

    def __enter__(self) -> Self: ...
    def __repr__(self) -> str: ...

class StaticGroup:
    """A consumer group whose members never change. Returned by ConsumerGroups."""

    inner: _group.StaticGroup
    port: BlockingPort

    def __init__(self, inner: _group.StaticGroup, port: BlockingPort) -> None: ...
    @property
    def stream(self) -> str:
        """The name of its stream."""
        ...

    @property
    def name(self) -> str:
        """The name of the group."""
        ...

    def config(self) -> StaticGroupConfig:
        """Return the configuration; raise GroupNotFound if the group does not exist."""
        ...

    def join(
        self,
        member: str,
        config: ConsumerConfigLike | None = None,
        **fields: Unpack[ConsumerConfigDict],
    ) -> GroupMember:
        """Return a member of this name: `async with` it, and iterate.

        config, fields  settings of its consumer, the same for all instances of the member; by
                        default an ack_wait of 5 s and a max_ack_pending of 1, for strict order
        """
        ...

    def active_members(self) -> list[str]:
        """Return the names of the members that currently wait for messages."""
        ...

    def step_down(self, member: str) -> None:
        """Replace the active instance of the member by another one."""
        ...

    def delete(self) -> None:
        """Delete the group and the consumers of its members, which stop."""
        ...

    def __repr__(self) -> str: ...

class ElasticGroup:
    """A consumer group whose members may change. Returned by ConsumerGroups."""

    inner: _group.ElasticGroup
    port: BlockingPort

    def __init__(self, inner: _group.ElasticGroup, port: BlockingPort) -> None: ...
    @property
    def stream(self) -> str:
        """The name of its stream."""
        ...

    @property
    def name(self) -> str:
        """The name of the group."""
        ...

    @property
    def queue(self) -> str:
        """The name of the stream that the members consume from."""
        ...

    def config(self) -> ElasticGroupConfig:
        """Return the configuration; raise GroupNotFound if the group does not exist."""
        ...

    def join(
        self,
        member: str,
        config: ConsumerConfigLike | None = None,
        **fields: Unpack[ConsumerConfigDict],
    ) -> GroupMember:
        """Return a member of this name: `async with` it, and iterate.

        It may join before it is added to the group, and receives messages from then on.

        config, fields  settings of its consumer, the same for all instances of the member; by
                        default an ack_wait of 5 s and a max_ack_pending of 1, for strict order
        """
        ...

    def add_members(self, *members: str) -> list[str]:
        """Add members, and return all of them; the partitions are distributed again."""
        ...

    def drop_members(self, *members: str) -> list[str]:
        """Remove members, and return the others; the partitions are distributed again."""
        ...

    def set_mappings(self, mappings: Sequence[MemberMapping]) -> None:
        """Set the partitions of each member, instead of distributing them evenly."""
        ...

    def delete_mappings(self) -> None:
        """Remove all mappings, which leaves the group without members."""
        ...

    def active_members(self) -> list[str]:
        """Return the names of the members that have a consumer now."""
        ...

    def step_down(self, member: str) -> None:
        """Replace the active instance of the member by another one."""
        ...

    def delete(self) -> None:
        """Delete the group and its work queue; the members stop.

        If it fails halfway, such as by a timeout, it can be called again. Raises GroupNotFound if
        there is nothing to delete.
        """
        ...

    def __repr__(self) -> str: ...

class ConsumerGroups:
    """Partitioned consumer groups of a JetStream; needs nats-server 2.11.

    They are compatible with pcgroups of orbit.go.
    """

    inner: _api.ConsumerGroups
    port: BlockingPort

    def __init__(self, js: JetStream) -> None: ...
    def create_static(
        self,
        stream: str,
        name: str,
        *,
        max_members: int,
        members: Sequence[str] = (),
        mappings: Sequence[MemberMapping] = (),
        filters: Sequence[str] = (),
    ) -> StaticGroup:
        """Create a group whose members never change; raise GroupExists if another one exists.

        The subjects of the stream must begin with the number of their partition, which a
        subject_transform of the stream can provide.

        max_members  the number of partitions
        members      the names of the members, which share the partitions evenly
        mappings     alternatively, the partitions of each member
        filters      only these subjects, without the partition
        """
        ...

    def create_elastic(
        self,
        stream: str,
        name: str,
        *,
        max_members: int,
        members: Sequence[str] = (),
        partitioning_filters: Sequence[PartitioningFilter] = (),
        max_buffered_msgs: int = 0,
        max_buffered_bytes: int = 0,
    ) -> ElasticGroup:
        """Create a group whose members may change; raise GroupExists if another one exists.

        This creates a work queue, the stream `<stream>-<name>`, that sources the stream.

        max_members           the number of partitions
        members               the first members; `add_members` adds others
        partitioning_filters  the subjects, and the wildcards in them that make the key; by default
                              all subjects, and the whole subject is the key
        max_buffered_msgs     limits of the work queue; 0: none
        max_buffered_bytes
        """
        ...

    def static(self, stream: str, name: str) -> StaticGroup:
        """Return the static group of this name; raise GroupNotFound if it does not exist."""
        ...

    def elastic(self, stream: str, name: str) -> ElasticGroup:
        """Return the elastic group of this name; raise GroupNotFound if it does not exist."""
        ...

    def static_names(self, stream: str) -> list[str]:
        """List the names of the static groups of a stream."""
        ...

    def elastic_names(self, stream: str) -> list[str]:
        """List the names of the elastic groups of a stream."""
        ...

    def __repr__(self) -> str: ...
