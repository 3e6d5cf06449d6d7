"""The connection as a machine without I/O: `Connection` and its effects, imported on first use.

docs/embedding.md lists what programs that drive it themselves can rely on.
"""

from __future__ import annotations

from natsproto.lazy import lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .effects import Dial as Dial
    from .effects import Hangup as Hangup
    from .effects import StartTls as StartTls
    from .machine import Connection as Connection
else:
    _HOMES = """
        effects: Dial Hangup StartTls
        machine: Connection
    """
    __getattr__ = lazy_names("natsproto.connection", _HOMES, globals())
