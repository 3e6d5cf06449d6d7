"""Sets of filter subjects, as a consumer takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.wire.subjects import matches

if TYPE_CHECKING:
    from collections.abc import Iterable


def minimal(subjects: Iterable[str]) -> list[str]:
    """Remove subjects that another one covers: the server rejects filters that overlap."""
    unique = list(dict.fromkeys(subjects))
    return [
        each
        for each in unique
        if not any(other != each and matches_all(other, each) for other in unique)
    ]


def matches_all(pattern: str, other: str) -> bool:
    """Return whether `pattern` matches every subject that `other` matches."""
    if other.endswith(">") and not pattern.endswith(">"):
        return False
    return matches(pattern, other)


def overlap(one: str, other: str) -> bool:
    """Return whether some subject matches both."""
    ours, theirs = one.split("."), other.split(".")
    for mine, its in zip(ours, theirs):
        if ">" in (mine, its):
            return True
        if mine != its and "*" not in (mine, its):
            return False
    return len(ours) == len(theirs)
