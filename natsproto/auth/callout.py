"""AuthCallout: reads requests of servers to authorize a client, and writes responses (ADR-26).

A server that is configured for auth callouts asks a service on `$SYS.REQ.USER.AUTH` whether a
client may connect. Request and response are JWTs: the server signs what it knows of the client,
and the service signs the JWT of a user, whose public key the server has chosen, or an error. Both
may be sealed with xkeys.

This module does no I/O: jetstream.add_auth_callout runs a service that uses it.
"""

from __future__ import annotations

from natsproto.errors import HeaderError, InvalidValue, UserRejected
from natsproto.secret import as_secret
from natsproto.wire.text import decode, encode, shorten

from . import claim_checks as checks
from . import nkeys, xkeys
from .auth_request import AuthRequest
from .claims import Claims, UserClaims
from .jwt import Issuer, read_jwt

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from natsproto.secret import SecretLike
    from natsproto.wire.headers import Headers

    from .nkeys import Signer

SUBJECT = "$SYS.REQ.USER.AUTH"
XKEY_HEADER = "Nats-Server-Xkey"
_AUDIENCE = "nats-authorization-request"
_REQUEST = "authorization_request"
# What a server receives about an error in the service itself: no details.
_FAILED = "authorization failed"


class AuthResponse(Claims):
    """The response to a server: the JWT of a user, or the error for its log.

    subject         the user's public key in the request
    audience        the id of the server
    issuer_account  the account of the callout, if one of its signing keys signs
    """

    TYPE: str = "authorization_response"
    SUBJECT: str = nkeys.USER
    ISSUERS: str = nkeys.ACCOUNT

    def __init__(
        self,
        subject: str,
        *,
        jwt: str = "",
        error: str = "",
        issuer_account: str = "",
        name: str = "",
        audience: str = "",
        expires: float = 0,
        not_before: float = 0,
        tags: Sequence[str] = (),
    ) -> None:
        super().__init__(subject, name, audience, expires, not_before, tags)
        self.jwt: str = jwt
        self.error: str = error
        self.issuer_account: str = issuer_account
        self.to_json()

    def body(self) -> dict[str, Any]:
        """Return the fields of a response; raise InvalidValue."""
        jwt, error = (
            checks.check_text("jwt", self.jwt),
            checks.check_text("error", self.error),
        )  # CALLOUT-4
        if bool(jwt) == bool(error):
            raise InvalidValue("response does not have either a jwt or an error", "CALLOUT-4")
        checks.check_nkey("audience", self.audience, nkeys.SERVER)
        body = {"jwt": jwt} if jwt else {"error": error}
        if checks.check_text("issuer_account", self.issuer_account):
            account = checks.check_nkey("issuer_account", self.issuer_account, nkeys.ACCOUNT)
            body["issuer_account"] = account
        return body

    @classmethod
    def fields_of(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of a response from those of a JWT, and return them."""
        return {name: body.pop(name, "") for name in ("jwt", "error", "issuer_account")}


class AuthCallout:
    """Read requests, and write responses that are signed by an account.

    seed            the seed of the account that the server's configuration names as `issuer`, or
                    of a signing key; or `nkey` and `sign` as for connections
    issuer_account  the account of the callout, if a signing key signs
    xkey_seed       the seed of the curve key whose public key the server's configuration has; then
                    requests and responses are encrypted
    """

    def __init__(
        self,
        seed: SecretLike = "",
        *,
        nkey: str = "",
        sign: Signer | None = None,
        issuer_account: str = "",
        xkey_seed: SecretLike = "",
    ) -> None:
        self._issuer = Issuer(seed, nkey, sign)
        checks.check_nkey("issuer", self._issuer.key, nkeys.ACCOUNT)
        if checks.check_text("issuer_account", issuer_account):
            checks.check_nkey("issuer_account", issuer_account, nkeys.ACCOUNT)
        self._account = issuer_account
        self._xkey = as_secret(xkey_seed)
        #: The public curve key, for the configuration of the server; "" without encryption.
        self.xkey: str = xkeys.public_xkey(self._xkey.reveal()) if self._xkey else ""

    def read(self, data: bytes, headers: Headers | None = None) -> AuthRequest:
        """Return the request in a message; raise InvalidValue unless a server has written it."""
        sealed = bytes(data[:4]) == b"xkv1"
        if sealed != bool(self._xkey):  # CALLOUT-6
            text = "request is %sencrypted, and this service has %s xkey"
            words = ("", "no") if sealed else ("not ", "an")
            raise InvalidValue(text % words, "CALLOUT-6")
        sender = ""
        if sealed:
            sender = _sender(headers)
            data = xkeys.unseal(self._xkey.reveal(), sender, data)
        claims = read_jwt(decode(data))
        body = checks.check_map("nats of a JWT", claims.get("nats"))
        request = AuthRequest.from_json(body)
        checks.check_nkey("issuer", claims["iss"], nkeys.SERVER)  # CALLOUT-2
        known = claims["iss"] == request.server.id and claims.get("aud") == _AUDIENCE
        if body.get("type") != _REQUEST or not known or (sealed and request.server.xkey != sender):
            text = "JWT is not an authorization request of server %s"
            raise InvalidValue(text % shorten(request.server.id), "CALLOUT-2")
        checks.check_nkey("user_nkey", request.user_nkey, nkeys.USER)
        return request

    def accept(self, request: AuthRequest, user: object, now: float) -> bytes:
        """Return the response that accepts a client as this user; raise InvalidValue.

        user  UserClaims, which are signed here, or the JWT of a user
        now   the time, in seconds since 1970
        """
        if isinstance(user, str):
            claims, jwt = UserClaims.decode(user), user
        elif isinstance(user, UserClaims):
            claims, jwt = user, user.sign_with(self._issuer, now)
        else:
            text = "user is not a UserClaims or a JWT: %s"
            raise InvalidValue(text % type(user).__name__, "CALLOUT-3")
        if claims.subject != request.user_nkey:  # CALLOUT-3
            text = "user has a different key than the request: %s"
            raise InvalidValue(text % claims.subject, "CALLOUT-3")
        return self._write(request, jwt, "", now)

    def reject(self, request: AuthRequest, reason: str, now: float) -> bytes:
        """Return the response that rejects a client; the server logs the reason."""
        return self._write(request, "", reason or _FAILED, now)

    def settle(self, request: AuthRequest, error: Exception, now: float) -> bytes:
        """Return the response for an error raised by the authorization function (D-CALLOUT-5)."""
        reason = error.reason if isinstance(error, UserRejected) else _FAILED
        return self.reject(request, reason, now)

    def _write(self, request: AuthRequest, jwt: str, error: str, now: float) -> bytes:
        response = AuthResponse(
            request.user_nkey,
            jwt=jwt,
            error=error,
            issuer_account="" if self._account == self._issuer.key else self._account,
            audience=request.server.id,
        )
        data = encode(response.sign_with(self._issuer, now))
        if self._xkey:
            data = xkeys.seal(self._xkey.reveal(), request.server.xkey, data)
        return data

    def __repr__(self) -> str:
        return "<AuthCallout %s>" % self._issuer.key


def _sender(headers: Headers | None) -> str:
    try:
        sender = headers.get(XKEY_HEADER) if headers is not None else ""
    except HeaderError:
        sender = ""
    if not sender:
        raise InvalidValue("encrypted request has no header %s" % XKEY_HEADER, "CALLOUT-6")
    return sender
