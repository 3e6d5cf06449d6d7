"""The conformance checks of JetStream, for adapters that pass those of natsproto.testing; `sim`.

Nothing else in jetstream imports this package. It does I/O and runs on POSIX systems, except for
`jetstream.testing.sim`, a simulated server with JetStream, which runs everywhere.
"""

from __future__ import annotations

from natsproto.lazy import lazy_names as _lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from . import checks as checks
    from . import sim as sim
    from .blocking_view import jetstream_of as jetstream_of
    from .checks import CHECKS as CHECKS
    from .checks import check_adapter as check_adapter
else:
    # The checks have registered themselves where CHECKS is imported from.
    _HOMES = """
        blocking_view: jetstream_of
        checks: CHECKS check_adapter
    """
    __getattr__ = _lazy_names("jetstream.testing", _HOMES, globals())

__all__ = [
    "CHECKS",
    "check_adapter",
    "checks",
    "jetstream_of",
    "sim",
]


def __dir__() -> list[str]:
    return __all__
