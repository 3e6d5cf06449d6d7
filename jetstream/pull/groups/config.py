"""The configurations of consumer groups, as they are stored in JSON (GROUP-2, GROUP-3).

Programs in Go that use orbit.go's pcgroups read and write the same JSON, so members of one group
can be written in both languages. Unknown keys are kept when a configuration is stored again.
"""

from __future__ import annotations

from jetstream.api.client import encode_json
from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidValue, LocalError
from natsproto.session import check_count
from natsproto.wire.record import Record
from natsproto.wire.subjects import check_new_name, check_subscribe
from natsproto.wire.text import shorten

from .partitions import EVERYTHING, balanced, filter_subjects, mapped
from .stored import number, numbers, objects, read_object, text, texts

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from typing_extensions import Self

MOST = 2**31 - 1


class MemberMapping(Record):
    """A member and the partitions that it has."""

    __slots__ = ("member", "partitions")

    def __init__(self, member: str, partitions: Sequence[int]) -> None:
        self.member: str = member
        self.partitions: list[int] = list(partitions)


class PartitioningFilter(Record):
    """A filter with wildcards, and the numbers of the `*` that make the key, from 1.

    Without numbers the whole subject is the key.
    """

    __slots__ = ("filter", "wildcards")

    def __init__(self, filter: str, wildcards: Sequence[int] = ()) -> None:
        self.filter: str = filter
        self.wildcards: list[int] = list(wildcards)


class GroupConfig(Record):
    """Base class of both configurations.

    max_members: the number of partitions, and so the most members that can work at once
    members: their names; the partitions are distributed evenly
    mappings: alternatively, the partitions of each member
    """

    __slots__ = ("_stored", "extra", "mappings", "max_members", "members")

    KNOWN: tuple[str, ...] = ("max_members", "members", "member_mappings")

    def __init__(
        self, max_members: int, members: Sequence[str] = (), mappings: Sequence[MemberMapping] = ()
    ) -> None:
        self.max_members: int = max_members
        self.members: list[str] = list(members)
        self.mappings: list[MemberMapping] = list(mappings)
        self.extra: dict[str, Any] = {}
        self._stored: Mapping[str, Any] = {}  # the JSON that was read

    def _fields(self) -> list[tuple[str, object]]:
        base = [(name, getattr(self, name)) for name in ("max_members", "members", "mappings")]
        return base + super()._fields()

    @property
    def names(self) -> list[str]:
        """The names of all members."""
        return self.members or [row.member for row in self.mappings]

    def partitions(self, member: str) -> list[int]:
        """Return the partitions of a member; none if it is not in the group."""
        if self.members:
            return balanced(self.members, self.max_members, member)
        return mapped(self.mappings, member)

    def subjects(self, member: str) -> list[str]:
        """Return the filter subjects of a member's consumer."""
        filters = self.subject_filters() if self.members else []  # GROUP-5
        return filter_subjects(self.partitions(member), filters or [EVERYTHING])

    def subject_filters(self) -> list[str]:
        """Return the filters of the group; none for all subjects."""
        raise NotImplementedError

    def settings(self) -> list[object]:
        """Return what must not change while the group exists."""
        raise NotImplementedError

    def check(self) -> Self:
        """Raise InvalidValue if it breaks a rule of groups; return the configuration."""
        check_count("max_members", self.max_members, 1, MOST, "GROUP-2")
        if self.members and self.mappings:
            raise InvalidValue("group has both members and mappings", "GROUP-2")
        for name in self.names:
            check_new_name("member", name)
        if self.mappings:
            self._check_mappings()
        return self

    def check_stored(self) -> Self:
        """Raise InvalidResponse if the stored configuration breaks a rule of groups."""
        try:
            return self.check()
        except LocalError as error:
            raise InvalidResponse("stored configuration of a group: %s" % error) from None

    def _check_mappings(self) -> None:
        names = [row.member for row in self.mappings]
        numbers = [each for row in self.mappings for each in row.partitions]
        if len(names) > self.max_members:
            text = "mappings have %d members for %d partitions"
            raise InvalidValue(text % (len(names), self.max_members), "GROUP-5")
        if len(set(names)) < len(names):
            raise InvalidValue("mappings have a member twice: %s" % shorten(names), "GROUP-5")
        if sorted(numbers) != list(range(self.max_members)):
            text = "mappings do not have each partition from 0 to %d once: %s"
            raise InvalidValue(text % (self.max_members - 1, shorten(numbers)), "GROUP-5")

    def _tail(self) -> dict[str, Any]:
        """Return the JSON that both configurations end with."""
        json: dict[str, Any] = {}
        if self.members:
            json["members"] = self.members
        if self.mappings:
            json["member_mappings"] = [
                {"member": row.member, "partitions": row.partitions} for row in self.mappings
            ]
        json.update(self.extra)
        return json

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as it is stored."""
        raise NotImplementedError

    def encode(self) -> bytes:
        """Return the stored form."""
        return encode_json(self.to_json())

    def _read(self, raw: Mapping[str, Any]) -> Self:
        """Set the fields that both configurations have."""
        self._stored = raw
        self.max_members = number(raw, "max_members")
        self.members = texts(raw, "members")
        self.mappings = [
            MemberMapping(text(row, "member"), numbers(row, "partitions"))
            for row in objects(raw, "member_mappings")
        ]
        self.extra = {name: raw[name] for name in raw if name not in self.KNOWN}
        return self


class StaticGroupConfig(GroupConfig):
    """The configuration of a static group: its members are the same for as long as it exists.

    The subjects of its stream begin with the number of their partition.

    filters: the subjects after that number; all of them if there are none
    """

    __slots__ = ("filters",)

    KNOWN: tuple[str, ...] = GroupConfig.KNOWN + ("filters",)

    def __init__(
        self,
        max_members: int = 0,
        members: Sequence[str] = (),
        mappings: Sequence[MemberMapping] = (),
        filters: Sequence[str] = (),
    ) -> None:
        super().__init__(max_members, members, mappings)
        self.filters: list[str] = list(filters)

    def subject_filters(self) -> list[str]:
        """Return the filters of the group; none for all subjects."""
        return self.filters

    def settings(self) -> list[object]:
        """Return what must not change while the group exists."""
        return [self.max_members, self.filters, self.members, self.mappings]

    def check(self) -> Self:
        """Raise InvalidValue if it breaks a rule of groups; return the configuration."""
        for each in self.filters:
            check_subscribe(each, "filter")
        return super().check()

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as it is stored."""
        json: dict[str, Any] = {"max_members": self.max_members}
        if self.filters:
            json["filters"] = self.filters
        json.update(self._tail())
        return json

    @classmethod
    def decode(cls, data: bytes) -> StaticGroupConfig:
        """Return a stored configuration; raise InvalidResponse if it is invalid."""
        raw = read_object(data)
        made = cls()._read(raw)
        made.filters = texts(raw, "filters")
        return made.check_stored()


class ElasticGroupConfig(GroupConfig):
    """The configuration of an elastic group, whose members may change.

    partitioning_filters: the subjects, and which of their wildcards make the key; with none, all
        subjects, and the whole subject is the key
    max_buffered_msgs, max_buffered_bytes: the limits of its work queue; 0: none
    """

    __slots__ = ("max_buffered_bytes", "max_buffered_msgs", "partitioning_filters")

    KNOWN: tuple[str, ...] = GroupConfig.KNOWN + (
        "partitioning_filters",
        "max_buffered_msg",
        "max_buffered_bytes",
    )

    def __init__(
        self,
        max_members: int = 0,
        members: Sequence[str] = (),
        mappings: Sequence[MemberMapping] = (),
        partitioning_filters: Sequence[PartitioningFilter] = (),
        max_buffered_msgs: int = 0,
        max_buffered_bytes: int = 0,
    ) -> None:
        super().__init__(max_members, members, mappings)
        self.partitioning_filters: list[PartitioningFilter] = list(partitioning_filters)
        self.max_buffered_msgs: int = max_buffered_msgs
        self.max_buffered_bytes: int = max_buffered_bytes

    def subject_filters(self) -> list[str]:
        """Return the filters of the group; none for all subjects."""
        return [row.filter for row in self.partitioning_filters]

    def settings(self) -> list[object]:
        """Return what must not change while the group exists."""
        limits = [self.max_buffered_msgs, self.max_buffered_bytes]
        return [self.max_members, self.partitioning_filters, limits]

    def check(self) -> Self:
        """Raise InvalidValue if it breaks a rule of groups; return the configuration."""
        for row in self.partitioning_filters:
            check_partitioning(row)
        check_count("max_buffered_msgs", self.max_buffered_msgs)
        check_count("max_buffered_bytes", self.max_buffered_bytes)
        return super().check()

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as it is stored."""
        json: dict[str, Any] = {
            "max_members": self.max_members,
            "partitioning_filters": self._filters_json(),
        }
        if self.max_buffered_msgs:
            json["max_buffered_msg"] = self.max_buffered_msgs
        if self.max_buffered_bytes:
            json["max_buffered_bytes"] = self.max_buffered_bytes
        json.update(self._tail())
        return json

    def _filters_json(self) -> list[dict[str, Any]] | None:
        """Return the filters as they were read: Go tells null from an empty list (GROUP-3)."""
        if self.partitioning_filters == _read_filters(self._stored):
            stored: list[dict[str, Any]] | None = self._stored.get("partitioning_filters")
            return stored
        return [
            {"filter": row.filter, "partitioning_wildcards": row.wildcards}
            for row in self.partitioning_filters
        ]

    @classmethod
    def decode(cls, data: bytes) -> ElasticGroupConfig:
        """Return a stored configuration; raise InvalidResponse if it is invalid."""
        raw = read_object(data)
        made = cls()._read(raw)
        made.partitioning_filters = _read_filters(raw)
        made.max_buffered_msgs = number(raw, "max_buffered_msg")
        made.max_buffered_bytes = number(raw, "max_buffered_bytes")
        return made.check_stored()


def _read_filters(raw: Mapping[str, Any]) -> list[PartitioningFilter]:
    return [
        PartitioningFilter(text(row, "filter"), numbers(row, "partitioning_wildcards"))
        for row in objects(raw, "partitioning_filters")
    ]


def check_partitioning(row: PartitioningFilter) -> None:
    """Raise InvalidValue unless the filter has the wildcards that make the key (GROUP-3)."""
    tokens = row.filter.split(".")
    count = tokens.count("*")
    check_subscribe(row.filter, "partitioning filter")
    if not count and tokens[-1] != EVERYTHING:
        raise InvalidValue(
            "partitioning filter has no wildcard: %s" % shorten(row.filter), "GROUP-3"
        )
    if len(set(row.wildcards)) < len(row.wildcards):
        raise InvalidValue("wildcards contain a duplicate: %s" % shorten(row.wildcards), "GROUP-3")
    for each in row.wildcards:
        check_count("wildcard of %s" % shorten(row.filter), each, 1, count, "GROUP-3")
