"""Real servers for tests, demos and benchmarks, the conformance checks for adapters, and `sim`.

Nothing else in natsproto imports this package. It does I/O and runs on POSIX systems, except for
`natsproto.testing.sim`, a simulated network that runs everywhere. The names are imported on first
use, so that the simulation does not need the modules of the others.
"""

from __future__ import annotations

from natsproto.lazy import lazy_names as _lazy_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from . import checks as checks
    from . import sim as sim
    from .checks import CHECKS as CHECKS
    from .checks import check_adapter as check_adapter
    from .cluster import Cluster as Cluster
    from .context import Context as Context
    from .context import Servers as Servers
    from .runner import AsyncioRunner as AsyncioRunner
    from .runner import BlockingRunner as BlockingRunner
    from .runner import CheckHung as CheckHung
    from .runner import Runner as Runner
    from .runner import Task as Task
    from .runner import TrioRunner as TrioRunner
    from .server import Server as Server
    from .server import ServerFailed as ServerFailed
    from .server import ServerNotFound as ServerNotFound
    from .server import find_server as find_server
    from .server import free_port as free_port
    from .suite import Check as Check
    from .suite import Checks as Checks
    from .suite import ChecksFailed as ChecksFailed
    from .suite import Report as Report
else:
    # The checks have registered themselves where CHECKS is imported from.
    _HOMES = """
        checks: CHECKS check_adapter
        cluster: Cluster
        context: Context Servers
        runner: AsyncioRunner BlockingRunner CheckHung Runner Task TrioRunner
        server: Server ServerFailed ServerNotFound find_server free_port
        suite: Check Checks ChecksFailed Report
    """
    __getattr__ = _lazy_names("natsproto.testing", _HOMES, globals())

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
    "sim",
]


def __dir__() -> list[str]:
    return __all__
