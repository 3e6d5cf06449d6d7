"""Orders to the adapter, in the order in which they are to be carried out.

Dial       open a transport to this host and port; then transport_opened, or transport_closed
StartTls   upgrade it, checking the certificate against hostname; then tls_started, or
           transport_closed
Hangup     drop the transport, or the attempt at one, at once: nothing is reported about it
           any more
"""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Effect: TypeAlias = "Dial | StartTls | Hangup"


class Dial(Record):
    """Open a transport; with `shuffle`, try the addresses of the name in random order."""

    __slots__ = ("host", "port", "shuffle")

    def __init__(self, host: str, port: int, shuffle: bool) -> None:
        self.host: str = host
        self.port: int = port
        self.shuffle: bool = shuffle


class StartTls(Record):
    """Upgrade the transport to TLS. The name never comes from the server."""

    __slots__ = ("hostname",)

    def __init__(self, hostname: str) -> None:
        self.hostname: str = hostname


class Hangup(Record):
    """Drop the transport now."""

    __slots__ = ()


class Publish(Record):
    """From a machine to its connection: publish this. All of it was checked before."""

    __slots__ = ("block", "data", "reply", "subject")

    def __init__(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> None:
        self.subject: bytes = subject
        self.data: bytes = data
        self.reply: bytes = reply
        self.block: bytes | None = block
