"""Secret: a password, token, seed or JWT that does not show itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypeAlias

    # What users give: the text, or what to call for it at every connection attempt.
    SecretLike: TypeAlias = "str | Callable[[], str] | Secret"


class Secret:
    """Text, or a callable that gives it, out of sight of repr, vars, dumpers and pickle.

    Two secrets are equal only if they are the same object: comparing texts tells about them.
    A secret is true if there is something to reveal; a callable is not asked for that.
    """

    __slots__ = ("_given", "_source", "fixed")

    def __init__(self, value: str | Callable[[], str] = "") -> None:
        #: Whether it is the same text for ever, and may be looked at before it is needed.
        self.fixed = not callable(value)
        self._given = bool(value)
        self._source = _call(value) if callable(value) else _constant(value)

    def reveal(self) -> str:
        """The text; a callable is called anew each time, and what it raises comes out."""
        return self._source()

    def __bool__(self) -> bool:
        return self._given

    def __repr__(self) -> str:
        return "Secret(***)"  # CONN-19

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled or copied: a pickle is readable by all")


# Closures, because a dumper of attributes prints them as functions. That holds for callables too:
# the repr of a functools.partial or of a bound method may tell what it was made with.
def _constant(value: str) -> Callable[[], str]:
    return lambda: value


def _call(source: Callable[[], str]) -> Callable[[], str]:
    return lambda: source()


def as_secret(value: SecretLike) -> Secret:
    """The value as a Secret, unless it is one."""
    return value if isinstance(value, Secret) else Secret(value)
