"""Generic: makes a class of the core generic for type checkers, with no effect at run time.

MicroPython has neither typing.Generic nor classes that can be subscripted. A generic class of the
core is written as

    if TYPE_CHECKING:
        Item = TypeVar("Item")
    else:
        Item = None

    class Watcher(Generic[Item]): ...
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Generic as Generic
else:

    class _Parameters:
        def __getitem__(self, names):
            return object

    Generic = _Parameters()
