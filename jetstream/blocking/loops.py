"""The common part of the blocking loops that `stop` ends."""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Self


class StoppableLoop:
    """A loop over itself, which a with block stops at its end."""

    def stop(self) -> None:
        """End the loop; a subclass says how."""
        raise NotImplementedError

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
