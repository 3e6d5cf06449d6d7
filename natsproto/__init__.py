"""NATS: the wire protocol and a sans-IO connection, in pure Python without dependencies."""

from __future__ import annotations

from . import encode
from .errors import (
    HeaderError,
    InvalidHeader,
    InvalidName,
    InvalidSubject,
    InvalidValue,
    LocalError,
    NatsError,
    ProtocolError,
    RemoteError,
)
from .frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from .headers import Headers
from .parser import Parser

__version__ = "0.1.0"

__all__ = [
    "Connect",
    "Err",
    "HeaderError",
    "Headers",
    "Info",
    "InvalidHeader",
    "InvalidName",
    "InvalidSubject",
    "InvalidValue",
    "LocalError",
    "Msg",
    "NatsError",
    "Ok",
    "Parser",
    "Ping",
    "Pong",
    "ProtocolError",
    "Pub",
    "RemoteError",
    "Sub",
    "Unsub",
    "encode",
]
