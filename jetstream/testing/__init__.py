"""The conformance checks of JetStream, for adapters that pass those of natsproto.testing.

Nothing else in jetstream imports this package; it does I/O and runs on POSIX systems.
"""

from . import checks
from .blocking_view import jetstream_of
from .suite import CHECKS, check_adapter

__all__ = [
    "CHECKS",
    "check_adapter",
    "checks",
    "jetstream_of",
]
