"""The arithmetic of partitions: which member has which of them, and the subjects of each.

Every program of a group computes the same result from the same configuration, so nothing has to be
negotiated. Members in order of their names get equal runs of partitions; if partitions are left
over, the first members get one more each. With 7 partitions and 3 members: a has 0, 1 and 6, b has
2 and 3, c has 4 and 5.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .config import MemberMapping, PartitioningFilter

EVERYTHING = ">"


def balanced(members: Iterable[str], count: int, member: str) -> list[int]:
    """Return the partitions of a member, out of `count` that all members share (GROUP-4)."""
    names = sorted(set(members))[:count]
    if member not in names:
        return []
    place = names.index(member)
    run = count // len(names)
    rest = range(run * len(names), count)
    return list(range(place * run, (place + 1) * run)) + [
        each for number, each in enumerate(rest) if number == place
    ]


def mapped(mappings: Iterable[MemberMapping], member: str) -> list[int]:
    """Return the partitions that mappings assign to a member (GROUP-5)."""
    return [each for row in mappings if row.member == member for each in row.partitions]


def filter_subjects(partitions: Sequence[int], filters: Sequence[str]) -> list[str]:
    """Return the subjects of these partitions, filter by filter: "3.orders.*"."""
    return ["%d.%s" % (each, subject) for subject in filters for each in partitions]


def transform(row: PartitioningFilter, count: int) -> str:
    """Return the subject transform that puts the partition before the subject (GROUP-7)."""
    number = 0
    tokens: list[str] = []
    for token in row.filter.split("."):
        if token == "*":
            number += 1
            token = "{{Wildcard(%d)}}" % number
        tokens.append(token)
    keys = ",".join([str(each) for each in [count] + row.wildcards])
    return "{{Partition(%s)}}.%s" % (keys, ".".join(tokens))
