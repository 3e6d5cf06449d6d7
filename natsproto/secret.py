"""Secret: a password, token, seed or JWT that does not appear in dumps."""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypeAlias

    # What users pass: the text, or a callable that returns it at every connection attempt.
    SecretLike: TypeAlias = "str | Callable[[], str] | Secret"


class Secret:
    """Text, or a callable that returns it, hidden from repr, vars, dumpers and pickle.

    Two secrets are equal only if they are the same object: a comparison of texts would leak them.
    A secret is true if it has a text or a callable, which is not called for that.
    """

    __slots__ = ("_given", "_source", "fixed")

    def __init__(self, value: str | Callable[[], str] = "") -> None:
        #: Whether the text never changes, so that it can be validated early.
        self.fixed: bool = not callable(value)
        self._given = bool(value)
        self._source = _call(value) if callable(value) else _constant(value)

    def reveal(self) -> str:
        """Return the text; a callable is called each time, and its errors propagate."""
        return self._source()

    def __bool__(self) -> bool:
        return self._given

    def __repr__(self) -> str:
        return "Secret(***)"  # D-CONN-19 (D-AUTH-1)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled or copied: that would expose it")


# Closures, because tools that dump attributes print them as functions. Callables are wrapped, too:
# the repr of a functools.partial or a bound method may expose its arguments.
def _constant(value: str) -> Callable[[], str]:
    return lambda: value


def _call(source: Callable[[], str]) -> Callable[[], str]:
    return lambda: source()  # AUTH-2


def as_secret(value: SecretLike) -> Secret:
    """Return the value as a Secret."""
    return value if isinstance(value, Secret) else Secret(value)
