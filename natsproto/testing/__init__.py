"""Help for tests, demos and benchmarks: real servers that come and go.

Nothing in natsproto imports this package; it does I/O of its own and runs on POSIX systems.
"""

from .cluster import Cluster
from .server import Server, ServerFailed, ServerNotFound, find_server, free_port

__all__ = ["Cluster", "Server", "ServerFailed", "ServerNotFound", "find_server", "free_port"]
