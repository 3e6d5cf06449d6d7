"""Types of the commands of Connection that take keywords. There is nothing here at run time.

Connection binds such a command to the method of a part; Callable cannot express its keywords.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Protocol

    from natsproto.wire.encode import BytesLike
    from natsproto.wire.headers import HeadersLike

    from .receiver import Receiver
    from .waitable import MultiRequest, Request

    class PublishCall(Protocol):
        """The type of Connection.publish."""

        def __call__(
            self,
            subject: str,
            data: BytesLike = b"",
            reply: str = "",
            headers: HeadersLike | None = None,
        ) -> bool: ...

    class SubscribeCall(Protocol):
        """The type of Connection.subscribe."""

        def __call__(self, subject: str, receiver: Receiver, *, queue: str = "") -> int: ...

    class UnsubscribeCall(Protocol):
        """The type of Connection.unsubscribe."""

        def __call__(self, sid: int, *, after: int = 0) -> None: ...

    class RequestCall(Protocol):
        """The type of Connection.start_request."""

        def __call__(
            self,
            subject: str,
            data: BytesLike = b"",
            *,
            deadline: float,
            headers: HeadersLike | None = None,
            wildcards: bool = False,
        ) -> Request: ...

    class GatherCall(Protocol):
        """The type of Connection.start_gather."""

        def __call__(
            self,
            subject: str,
            data: BytesLike = b"",
            *,
            deadline: float | None,
            headers: HeadersLike | None = None,
            max_msgs: int = 0,
            stall: float = 0.0,
            max_bytes: int = 0,
        ) -> MultiRequest: ...
