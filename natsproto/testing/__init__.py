"""Real servers for tests, demos and benchmarks, and the conformance checks for adapters.

Nothing else in natsproto imports this package; it does I/O and runs on POSIX systems.
"""

from . import checks
from .cluster import Cluster
from .context import Context, Servers
from .runner import AsyncioRunner, BlockingRunner, CheckHung, Runner, Task, TrioRunner
from .server import Server, ServerFailed, ServerNotFound, find_server, free_port
from .suite import CHECKS, Check, Checks, ChecksFailed, Report, check_adapter

__all__ = [
    "CHECKS",
    "AsyncioRunner",
    "BlockingRunner",
    "Check",
    "CheckHung",
    "Checks",
    "ChecksFailed",
    "Cluster",
    "Context",
    "Report",
    "Runner",
    "Server",
    "ServerFailed",
    "ServerNotFound",
    "Servers",
    "Task",
    "TrioRunner",
    "check_adapter",
    "checks",
    "find_server",
    "free_port",
]
