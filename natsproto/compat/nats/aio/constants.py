"""The public constants and types of nats-py's `nats.aio.client`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Union

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

Callback = Callable[[], Awaitable[None]]
ErrorCallback = Callable[[Exception], Awaitable[None]]
JWTCallback = Callable[[], Union[bytearray, bytes]]
SignatureCallback = Callable[[str], bytes]
TokenCallback = Callable[[], str]
CredentialCallback = Callable[[], str]
