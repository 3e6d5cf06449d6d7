"""The connection as a machine without I/O: `Connection`, imported on first use."""

from __future__ import annotations

from natsproto.lazy import lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .machine import Connection as Connection
else:
    __getattr__ = lazy_names("natsproto.connection", "machine: Connection", globals())
