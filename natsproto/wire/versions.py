"""Server versions, as INFO contains them."""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .frames import Info

_MOST_DIGITS = 9  # of a part of a version


def has_version(info: Info | None, since: tuple[int, ...]) -> bool:
    """Return whether the server has this version or a later one; True if it is unknown."""
    version = read_version(info.version) if info is not None else ()
    return not version or version >= since


def read_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a server's version: 2.12.0-beta.1 is (2, 12, 0)."""
    numbers: list[int] = []
    for part in text.partition("-")[0].split("."):
        if not 0 < len(part) <= _MOST_DIGITS or not all(char in "0123456789" for char in part):
            break
        numbers.append(int(part))
    return tuple(numbers)
