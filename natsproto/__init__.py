"""A NATS client in pure Python, without dependencies.

    from natsproto.adapters.asyncio import connect

    async with connect("nats://127.0.0.1:4222") as client:
        await client.publish("greetings", b"hello")

`natsproto.adapters` has a `connect` for each runtime: asyncio, trio, anyio, threads, blocking and
others. It returns a Client. `natsproto.errors` has the errors, and `natsproto.events` the events of
a connection. `Parser` and `encode` are the wire protocol alone, without I/O. JetStream is in the
package `jetstream`.
"""

from __future__ import annotations

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
    PayloadTooLarge,
    PendingBufferFull,
    PermissionDenied,
    ProtocolError,
    RemoteError,
    ServerFailed,
    TimeoutExpired,
    TlsFailed,
    TooManyReplies,
)
from .lazy import lazy_names as _lazy_names
from .version import VERSION as __version__
from .wire import encode
from .wire.frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from .wire.headers import Headers
from .wire.parser import Parser

# The classes of a client are imported on first use: the parser works without them.
TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from . import adapters as adapters
    from . import auth as auth
    from . import blocking as blocking
    from . import connection as connection
    from . import errors as errors
    from . import events as events
    from . import paths as paths
    from .choice import KnownServer as KnownServer
    from .client import Client as Client
    from .connection.outbound import Stats as Stats
    from .health import Health as Health
    from .paths.path import MessagePath as MessagePath
    from .replies import Replies as Replies
    from .subscription import Subscription as Subscription
else:
    _HOMES = """
        choice: KnownServer
        client: Client
        connection.outbound: Stats
        errors: OutBufferFull
        health: Health
        paths.path: MessagePath
        replies: Replies
        subscription: Subscription
    """
    __getattr__ = _lazy_names("natsproto", _HOMES, globals())

_MODULES = ["adapters", "auth", "blocking", "connection", "errors", "events", "paths"]
__all__ = [
    "AuthorizationFailed",
    "Client",
    "Connect",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionLost",
    "Err",
    "HeaderError",
    "Headers",
    "Health",
    "Info",
    "InvalidHeader",
    "InvalidName",
    "InvalidState",
    "InvalidSubject",
    "InvalidValue",
    "KnownServer",
    "LocalError",
    "MessagePath",
    "MissingExtra",
    "Msg",
    "NatsError",
    "NoResponders",
    "NotSupported",
    "Ok",
    "Parser",
    "PayloadTooLarge",
    "PendingBufferFull",
    "PermissionDenied",
    "Ping",
    "Pong",
    "ProtocolError",
    "Pub",
    "RemoteError",
    "Replies",
    "ServerFailed",
    "Stats",
    "Sub",
    "Subscription",
    "TimeoutExpired",
    "TlsFailed",
    "TooManyReplies",
    "Unsub",
    "__version__",
    "encode",
]


def __dir__() -> list[str]:
    return sorted(__all__ + _MODULES)
