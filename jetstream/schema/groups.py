"""The names of priority groups (ADR-42), in configurations and in pulls."""

from __future__ import annotations

from natsproto.wire.subjects import LETTERS_AND_DIGITS

_SIGNS = LETTERS_AND_DIGITS + "/_=-"


def is_group(name: str) -> bool:
    """Return whether a priority group can have this name."""
    return 0 < len(name) <= 16 and all(char in _SIGNS for char in name)
