"""FlightRecorder: a sink that keeps the last steps, and writes them when something goes wrong."""

from __future__ import annotations

import sys
from collections import deque

from natsproto.errors import NatsError
from natsproto.events import Closed, Disconnected
from natsproto.session import check_count

from .sinks import line_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TextIO

    from .steps import Step


class FlightRecorder:
    """Keeps the last `limit` steps; only writing them takes time (D-TRACE-5).

    They are written to `stream` (None: standard error) when the connection is lost or closed by an
    error, and when a NatsError leaves a `with` block of the recorder; after that, the recorder is
    empty. Steps refer to messages, so a thousand large messages occupy much memory.

        recorder = FlightRecorder()
        async with connect(trace=recorder) as client:
            with recorder:
                await client.request(...)
    """

    def __init__(self, limit: int = 1000, *, stream: TextIO | None = None) -> None:
        self.steps: deque[Step] = deque(maxlen=check_count("limit", limit, 1))
        self._stream = stream

    def __call__(self, step: Step) -> None:
        """Keep one step, and write all of them if a connection ended with an error."""
        self.steps.append(step)
        event = step.value
        if isinstance(event, (Closed, Disconnected)) and event.error is not None:
            self.dump("%s: %s" % (type(event).__name__, event.error))

    def text(self) -> str:
        """Return the steps as lines."""
        return "".join([line_of(step) + "\n" for step in self.steps])

    def dump(self, reason: str = "") -> None:
        """Write the steps, and clear the recorder."""
        stream = sys.stderr if self._stream is None else self._stream
        head = "--- %d steps before %s ---\n" % (len(self.steps), reason or "now")
        stream.write(head + self.text() + "--- end ---\n")
        self.steps.clear()

    def __enter__(self) -> FlightRecorder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NatsError):
            self.dump("%s: %s" % (type(error).__name__, error))
