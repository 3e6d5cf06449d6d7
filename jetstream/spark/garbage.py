"""Python's garbage collector, which is off while a task reads or writes.

A pull or a window has ten thousand objects, none of them in a cycle. The collector would look at
them, and at all of pyarrow and pandas, again and again: a quarter of the CPU time of a task.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def no_collection() -> Generator[None]:
    """Turn the collector off until the end of the block, unless it is off already."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
