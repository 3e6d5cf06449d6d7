"""The public constants and types of nats-py's `nats.aio.client`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Union

from natsproto.compat.nats.nuid import NUID as NUID

from .errors import ErrInvalidUserCredentials as ErrInvalidUserCredentials
from .errors import ErrStaleConnection as ErrStaleConnection

#: The version of nats-py whose names and behavior this layer has.
__version__ = "2.16.0"
__lang__ = "python3"

PROTOCOL = 1
EMPTY = ""
DEFAULT_BUFFER_SIZE = 32768
DEFAULT_MAX_PAYLOAD_SIZE = 1048576
MAX_CONTROL_LINE_SIZE = 1024
NATS_HDR_LINE = bytearray(b"NATS/1.0")
NATS_HDR_LINE_SIZE = len(NATS_HDR_LINE)
NO_RESPONDERS_STATUS = "503"
CTRL_STATUS = "100"
STATUS_MSG_LEN = 3

INFO_OP = b"INFO"
CONNECT_OP = b"CONNECT"
PING_OP = b"PING"
PONG_OP = b"PONG"
OK_OP = b"+OK"
ERR_OP = b"-ERR"
PING_PROTO = b"PING\r\n"
PONG_PROTO = PONG = b"PONG\r\n"
AUTHORIZATION_VIOLATION = "authorization violation"
PERMISSIONS_ERR = "permissions violation"
STALE_CONNECTION = "stale connection"

Callback = Callable[[], Awaitable[None]]
ErrorCallback = Callable[[Exception], Awaitable[None]]
JWTCallback = Callable[[], Union[bytearray, bytes]]
SignatureCallback = Callable[[str], bytes]
TokenCallback = Callable[[], str]
CredentialCallback = Callable[[], str]
