"""NATS: the wire protocol and a sans-IO connection, in pure Python without dependencies."""

from __future__ import annotations

from . import encode
from .errors import (
    AuthorizationFailed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    HeaderError,
    InvalidHeader,
    InvalidName,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    LocalError,
    MissingExtra,
    NatsError,
    NoResponders,
    NotSupported,
    OutBufferFull,
    PayloadTooLarge,
    PermissionDenied,
    ProtocolError,
    RemoteError,
    ServerFailed,
    TimeoutExpired,
    TlsFailed,
)
from .frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from .headers import Headers
from .parser import Parser
from .version import VERSION as __version__

__all__ = [
    "AuthorizationFailed",
    "Connect",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionLost",
    "Err",
    "HeaderError",
    "Headers",
    "Info",
    "InvalidHeader",
    "InvalidName",
    "InvalidState",
    "InvalidSubject",
    "InvalidValue",
    "LocalError",
    "MissingExtra",
    "Msg",
    "NatsError",
    "NoResponders",
    "NotSupported",
    "Ok",
    "OutBufferFull",
    "Parser",
    "PayloadTooLarge",
    "PermissionDenied",
    "Ping",
    "Pong",
    "ProtocolError",
    "Pub",
    "RemoteError",
    "ServerFailed",
    "Sub",
    "TimeoutExpired",
    "TlsFailed",
    "Unsub",
    "__version__",
    "encode",
]
