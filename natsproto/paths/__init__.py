"""Message paths (ADR-41): the path of a message through the servers, as they report it.

`Client.trace_message` sends a message whose headers ask every server that handles it for a report,
and returns a MessagePath: a tree of hops, one for each server, with the steps inside it. This is
unrelated to the events of the client itself, which are in `client.events`.
"""

from __future__ import annotations

from .hop import Hop, HopServer, decode_hop
from .path import MessagePath
from .steps import (
    Egress,
    Ingress,
    ServiceImport,
    Step,
    StreamExport,
    StreamStore,
    SubjectMapping,
    UnknownStep,
)

__all__ = [
    "Egress",
    "Hop",
    "HopServer",
    "Ingress",
    "MessagePath",
    "ServiceImport",
    "Step",
    "StreamExport",
    "StreamStore",
    "SubjectMapping",
    "UnknownStep",
    "decode_hop",
]
