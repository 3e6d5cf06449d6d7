"""The checks, grouped by subject. Importing this package puts all of them on the list."""

from . import (
    auth,
    cluster,
    drain,
    errors,
    faults,
    headers,
    lifecycle,
    limits,
    poison,
    pubsub,
    reconnect,
    requests,
    tls,
    websocket,
)

__all__ = [
    "auth",
    "cluster",
    "drain",
    "errors",
    "faults",
    "headers",
    "lifecycle",
    "limits",
    "poison",
    "pubsub",
    "reconnect",
    "requests",
    "tls",
    "websocket",
]
