"""The end of a query's process on the driver.

Spark runs the reader of a query in a process of its own. When the driver ends, it closes the socket
of that process, which then calls the reader's `stop`. When the query is stopped, Spark sends
SIGTERM twice in a row, and Python would end at once, without `stop` and without atexit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESS = "pyspark.sql.streaming.python_streaming_source_runner"
_LONGEST = 5.0  # seconds for the call


def call_at_termination(call: Callable[[], None], longest: float = _LONGEST) -> None:
    """Call this when Spark stops the query; do nothing in any process that is not its own.

    The call interrupts whatever the process does, so it must not use what the process uses. The
    process ends after the call, and in any case after `longest` seconds.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != PROCESS:
        return
    unused = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unused or threading.current_thread() is not threading.main_thread():
        return

    def terminate(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, _continue)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even if the call hangs
        signal.setitimer(signal.ITIMER_REAL, longest)
        try:
            call()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)


def _continue(number: int, frame: object) -> None:
    """Handle the second signal, which must not end the call that the first one started."""
