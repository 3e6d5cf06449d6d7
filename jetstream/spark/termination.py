"""The end of a query's process on the driver.

Spark runs the reader of a query in a process of its own. It ends that process by SIGTERM when the
query is stopped, and closes its socket when the driver ends. In the second case it calls the
reader's `stop`; in the first one Python would end at once, without `stop` and without atexit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PROCESS = "pyspark.sql.streaming.python_streaming_source_runner"


def call_at_termination(call: Callable[[], None]) -> None:
    """Call this when Spark stops the query; do nothing in any process that is not its own.

    The call interrupts whatever the process does, so it must not use what the process uses. A
    second signal ends it.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != _PROCESS:
        return
    unused = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unused or threading.current_thread() is not threading.main_thread():
        return

    def terminate(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            call()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
