"""The names of nats-py's `nats.js`."""

from __future__ import annotations

from . import api
from .client import JetStreamContext
from .manager import JetStreamManager

__all__ = ["JetStreamContext", "JetStreamManager", "api"]
