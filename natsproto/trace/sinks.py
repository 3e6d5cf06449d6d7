"""Sinks: where a trace goes. A sink is called with each Step."""

from __future__ import annotations

import json
import os
import sys
import time

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

from .steps import FRAMES

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TextIO

    from natsproto.explain import Explainer

    from .connection import Sink
    from .steps import Step

    class Explains(Protocol):
        """The methods of an Explainer."""

        def sent(self, frame: Any) -> Any: ...
        def received(self, frame: Any) -> Any: ...


VARIABLE = "NATSPROTO_TRACE"
_ARROWS = {"in": "<-", "out": "->"}


class TextSink:
    """Writes a line for each step, as in `12:00:01.250 -> PUB a 5 | hello`.

    stream     where to write; None: standard error
    explainer  explains each frame in words, after it: `natsproto.explain.Explainer()`, or
               `jetstream.tools.explain.Explainer()`, which knows JetStream
    """

    def __init__(
        self, stream: TextIO | None = None, *, explainer: Explainer | Explains | None = None
    ) -> None:
        self._stream = stream
        self._explainer = explainer

    def __call__(self, step: Step) -> None:
        """Write one step."""
        stream = sys.stderr if self._stream is None else self._stream
        stream.write(line_of(step) + "\n")
        if self._explainer is not None and isinstance(step.value, FRAMES):
            explain = self._explainer.sent if step.kind == "out" else self._explainer.received
            stream.write("%s# %s\n" % (" " * 16, explain(step.value).text))


class JsonSink:
    """Writes each step as a JSON object on a line of its own; None: to standard error."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def __call__(self, step: Step) -> None:
        """Write one step."""
        stream = sys.stderr if self._stream is None else self._stream
        stream.write(json.dumps(step.as_dict()) + "\n")


def line_of(step: Step) -> str:
    """Return the line of a step: its time of day, its direction or kind, and its text."""
    seconds = time.strftime("%H:%M:%S", time.localtime(step.time))
    thousandths = int(step.time * 1000) % 1000
    return "%s.%03d %-6s %s" % (seconds, thousandths, _ARROWS.get(step.kind, step.kind), step.text)


def sink_of(trace: Sink | bool | None) -> Sink | None:
    """Return the sink for a `trace` option; None: use the variable NATSPROTO_TRACE (D-TRACE-4).

    It may be "1" or "text" for a TextSink, "json" for a JsonSink, and "" or "0" for none.
    """
    if trace is True:
        return TextSink()
    if trace is not None and trace is not False:
        if not callable(trace):
            raise InvalidValue("trace cannot be called: %s" % shorten(trace), "D-TRACE-4")
        return trace
    wanted = "" if trace is False else os.environ.get(VARIABLE, "").lower()
    if wanted in ("", "0"):
        return None
    if wanted == "json":
        return JsonSink()
    if wanted in ("1", "text"):
        return TextSink()
    raise InvalidValue("%s is not 0, 1, text or json: %s" % (VARIABLE, shorten(wanted)))
