"""The trace of a connection: every frame, input, effect, state and event, in order.

    connect(trace=TextSink())           lines on standard error
    connect(trace=JsonSink(file))       JSON, one object a line
    connect(trace=FlightRecorder())     the last thousand steps, written when something goes wrong
    connect(trace=function)             function(step), for each Step
    NATSPROTO_TRACE=1 python ...        a TextSink for every client, without changing the program

A trace contains payloads, but no secrets: passwords, tokens, signatures, JWTs, nkeys and the
credentials of URLs are masked. Tracing costs an untraced client nothing, because a
TracedConnection is a separate class.
"""

from __future__ import annotations

from .connection import TracedConnection
from .recorder import FlightRecorder
from .sinks import JsonSink, TextSink, sink_of
from .steps import Step

__all__ = ["FlightRecorder", "JsonSink", "Step", "TextSink", "TracedConnection", "sink_of"]
