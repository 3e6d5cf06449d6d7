"""Effects: the actions that a machine requests, in order.

From the connection to its adapter:

    Dial         open a transport to this host and port; then transport_opened, or transport_closed
    StartTls     upgrade it, checking the certificate against hostname; then tls_started, or
                 transport_closed
    Sign         sign the nonce of the server; then nonce_signed. Only with host_signing
    Hangup       drop the transport, or the attempt at one, at once: nothing more is reported
                 about it

From the receiver of a subscription to the connection (subscriptions.py):

    Publish      send a message; without a connection it is dropped
    Wake         wake callers
    Poke         apply the effects of another receiver, too
    Drop         report that a message was dropped
    Resubscribe  move the subscription to another subject
    Unsubscribe  end the subscription
"""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from natsproto.auth.challenge import Challenge

    from .receiver import Receiver
    from .waitable import Waitable

    Effect: TypeAlias = "Dial | StartTls | Sign | Hangup"
    MachineEffect: TypeAlias = "Publish | Wake | Poke | Drop | Resubscribe | Unsubscribe"


class Dial(Record):
    """Open a transport; with `shuffle`, try the addresses of the name in random order.

    With host_websocket, `url` is the URL of the WebSocket to open; otherwise it is "".
    """

    __slots__ = ("host", "port", "shuffle", "url")

    def __init__(self, host: str, port: int, shuffle: bool, url: str = "") -> None:
        self.host: str = host
        self.port: int = port
        self.shuffle: bool = shuffle
        self.url: str = url

    def _fields(self) -> list[tuple[str, object]]:
        fields = super()._fields()
        return fields if self.url else fields[:-1]


class StartTls(Record):
    """Upgrade the transport to TLS. The name never comes from the server."""

    __slots__ = ("hostname",)

    def __init__(self, hostname: str) -> None:
        self.hostname: str = hostname


class Sign(Record):
    """Sign the nonce of a challenge, with its function or its seed."""

    __slots__ = ("challenge",)

    def __init__(self, challenge: Challenge) -> None:
        self.challenge: Challenge = challenge


class Hangup(Record):
    """Drop the transport now."""

    __slots__ = ()


class Publish(Record):
    """Publish this message, which has already been checked."""

    __slots__ = ("block", "data", "reply", "subject")

    def __init__(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> None:
        self.subject: bytes = subject
        self.data: bytes = data
        self.reply: bytes = reply
        self.block: bytes | None = block


class Wake(Record):
    """Wake the callers that wait for these."""

    __slots__ = ("waitables",)

    def __init__(self, waitables: list[Waitable]) -> None:
        self.waitables: list[Waitable] = waitables


class Poke(Record):
    """Apply the effects of this receiver as well: the machine has called it."""

    __slots__ = ("receiver",)

    def __init__(self, receiver: Receiver) -> None:
        self.receiver: Receiver = receiver


class Drop(Record):
    """Report that there was no room for a message."""

    __slots__ = ()


class Resubscribe(Record):
    """Replace the subscription by one to the receiver's new subject."""

    __slots__ = ()


class Unsubscribe(Record):
    """End the subscription."""

    __slots__ = ()
