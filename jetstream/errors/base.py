"""JetStreamError: in a module of its own, because jetstream.errors imports others on demand."""

from __future__ import annotations

from natsproto.errors import RemoteError


class JetStreamError(RemoteError):
    """Base class of all errors of JetStream."""
