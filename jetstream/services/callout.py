"""add_auth_callout: an endpoint that authorizes clients for servers (ADR-26)."""

from __future__ import annotations

from natsproto.auth.callout import SUBJECT, AuthCallout
from natsproto.errors import InvalidValue, UserRejected
from natsproto.wire.text import shorten
from natsproto.workers import check_callback

from .runner import call_async

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from natsproto.auth.auth_request import AuthRequest
    from natsproto.auth.claims import UserClaims

    from .endpoint import Endpoint
    from .request import ServiceRequest
    from .service import Service

    #: What a function that authorizes returns: claims, which are signed for it, or a JWT.
    User: TypeAlias = UserClaims | str

NAME = "auth"
_SECOND = 1_000_000_000


def add_auth_callout(
    service: Service,
    callout: AuthCallout,
    authorize: Callable[[AuthRequest], User | Awaitable[User]],
    *,
    concurrency: int = 1,
) -> Endpoint:
    """Add an endpoint that decides for servers whether a client may connect (ADR-26).

    callout      signs the responses
    authorize    called with each request; it returns the user, as `request.user(...)` or a JWT. If
                 it raises UserRejected, the client is rejected and the server logs the reason; so
                 is the client after any other exception, which `events` of the service reports. It
                 may be a coroutine function.
    concurrency  how many requests may be processed at once

    The client of the service must be one of the `auth_users` in the server's configuration. Answer
    within the server's `authorization` timeout: later answers are ignored.
    """
    handler = CalloutHandler(callout, authorize, service.hub.session.port.utc_ns)
    return service.add_endpoint(NAME, handler.handle, subject=SUBJECT, concurrency=concurrency)


class CalloutHandler:
    """Answers the requests of servers, by a function of the user."""

    def __init__(
        self,
        callout: AuthCallout,
        authorize: Callable[[AuthRequest], object],
        utc_ns: Callable[[], int],
    ) -> None:
        if not isinstance(callout, AuthCallout):
            raise InvalidValue("callout is not an AuthCallout: %s" % shorten(callout))
        check_callback(authorize, "D-CALLOUT-5", "authorize")
        self.callout: AuthCallout = callout
        self.authorize: Callable[[AuthRequest], object] = authorize
        self._utc_ns = utc_ns

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._utc_ns() / _SECOND

    async def handle(self, request: ServiceRequest) -> None:
        """Answer a request; raise the error of `authorize`, so that it is reported."""
        asked = self.callout.read(request.data, request.headers)
        try:
            user = await call_async(self.authorize, asked)
            answer = self.callout.accept(asked, user, self.now())
        except Exception as error:
            await request.respond(self.callout.settle(asked, error, self.now()))
            if isinstance(error, UserRejected):
                return
            raise  # D-CALLOUT-5
        await request.respond(answer)
