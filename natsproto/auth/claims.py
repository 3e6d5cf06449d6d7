"""The claims of users, and the part that all claims share (ADR-14).

    operator   O   signs accounts; servers know its JWT          operator_claims.py
    account    A   signs users; servers look its JWT up          account_claims.py
    user       U   proves with its seed that it owns the JWT     here

Claims are checked when they are made, and again before they are signed (JWT-5). Time is an
argument, in seconds since 1970: `user.encode(account_seed, now=time.time())`.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

from . import claim_checks as checks
from . import nkeys
from .jwt import Issuer, read_jwt, write_jwt
from .limits import SCOPED, UserLimits

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Self

    from natsproto.secret import SecretLike

    from .nkeys import Signer

_VERSION = 2


class Claims:
    """The part that all claims share. `encode` signs them, `decode` reads and verifies a JWT."""

    TYPE: str = ""
    SUBJECT: str = ""
    ISSUERS: str = ""

    def __init__(
        self,
        subject: str,
        name: str,
        audience: str,
        expires: float,
        not_before: float,
        tags: Sequence[str],
    ) -> None:
        #: The public key that the JWT is about.
        self.subject: str = subject
        self.name: str = name
        self.audience: str = audience
        #: When the JWT ends, in seconds since 1970; 0: never.
        self.expires: float = expires
        #: When the JWT begins, in seconds since 1970; 0: at once.
        self.not_before: float = not_before
        self.tags: Sequence[str] = tags
        #: Fields of the JWT that this class has no attribute for.
        self.extra: dict[str, Any] = {}
        #: The key that signed the JWT, and when; "" and 0 before that.
        self.issuer: str = ""
        self.issued_at: int = 0

    def body(self) -> dict[str, Any]:
        """Return the fields of this kind of claims, checked."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the claims, without issuer and time; raise InvalidValue or InvalidSubject."""
        subject = checks.check_nkey("subject", self.subject, self.SUBJECT)
        claims: dict[str, Any] = {"sub": subject}
        claims["name"] = checks.check_text("name", self.name) or subject
        for name, theirs in (("expires", "exp"), ("not_before", "nbf")):
            seconds = checks.check_time(name, getattr(self, name))
            if seconds:
                claims[theirs] = seconds
        if checks.check_text("audience", self.audience):
            claims["aud"] = self.audience
        body = dict(self.extra)
        body.update(self.body())
        tags = checks.check_tags("tags", self.tags)
        if tags:
            body["tags"] = tags
        body["type"] = self.TYPE
        body["version"] = _VERSION
        claims["nats"] = body
        return claims

    def encode(
        self, seed: SecretLike = "", *, now: float, nkey: str = "", sign: Signer | None = None
    ) -> str:
        """Return the JWT, signed with a seed; or with `sign`, by the owner of the key `nkey`.

        now  the time, in seconds since 1970: time.time()

        Invalid claims raise InvalidValue or InvalidSubject, and nothing is signed.
        """
        return self.sign_with(Issuer(seed, nkey, sign), now)

    def sign_with(self, issuer: Issuer, now: float) -> str:
        """Return the JWT, signed by this issuer."""
        checks.check_nkey("issuer", issuer.key, self.ISSUERS)  # JWT-6
        claims = self.to_json()
        issued = claims["iat"] = checks.check_time("now", now)
        if 0 < claims.get("exp", 0) <= issued:
            text = "expires is not after now: %d is %d s earlier"
            raise InvalidValue(text % (claims["exp"], issued - claims["exp"]), "JWT-7")
        self.adapt(claims["nats"], issuer.key)
        return write_jwt(claims, issuer)

    def adapt(self, body: dict[str, Any], issuer: str) -> None:
        """Change the fields of a JWT as this issuer requires."""

    @classmethod
    def decode(cls, token: str, *, now: float | None = None, issuers: Sequence[str] = ()) -> Self:
        """Return the claims of a JWT that is signed by its issuer; raise InvalidValue.

        now      the time, in seconds since 1970: also raise if the JWT is expired or not valid yet
        issuers  the public keys that you trust: also raise if another key signed it
        """
        claims = read_jwt(token)
        body = checks.check_map("nats of a JWT", claims.get("nats"))
        if body.get("type") != cls.TYPE or body.get("version") != _VERSION:
            text = "JWT is not of type %s, version 2: %s"
            raise InvalidValue(text % (cls.TYPE, shorten(body.get("type"))), "JWT-8")
        checks.check_nkey("issuer", claims["iss"], cls.ISSUERS)
        if issuers and claims["iss"] not in issuers:
            raise InvalidValue("JWT is not signed by a given issuer: %s" % claims["iss"], "JWT-8")
        if now is not None:
            _check_period(claims, now)
        return cls.of(claims, body)

    @classmethod
    def of(cls, claims: dict[str, Any], body: dict[str, Any]) -> Self:
        """Return the claims with these fields."""
        common: dict[str, Any] = {
            "name": claims.get("name", ""),
            "audience": claims.get("aud", ""),
            "expires": claims.get("exp", 0),
            "not_before": claims.get("nbf", 0),
            "tags": checks.list_in(body, "tags"),
        }
        fields = cls.fields_of(body)
        for name in ("tags", "type", "version"):
            body.pop(name, None)
        found = cls(claims.get("sub", ""), **fields, **common)
        found.extra = body
        found.issuer = claims["iss"]
        found.issued_at = claims.get("iat", 0)
        return found

    @classmethod
    def fields_of(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of this kind of claims from those of a JWT, and return them."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "<%s %s %s>" % (type(self).__name__, self.subject, shorten(self.name))


def _check_period(claims: dict[str, Any], now: float) -> None:
    expires, begins = claims.get("exp", 0), claims.get("nbf", 0)
    if expires and expires <= now:
        raise InvalidValue("JWT has expired %d s ago" % (now - expires), "JWT-7")
    if begins > now:
        raise InvalidValue("JWT is not valid for another %d s" % (begins - now), "JWT-7")


class UserClaims(Claims):
    """The claims of a user, which an account signs.

    subject         the public key of the user
    limits          what the user may do; by default everything in its account
    issuer_account  the account, if one of its signing keys signs and not the account's own key
    scoped          the signing key has a scope, which has the limits (SigningScope)
    audience        for auth callouts: the name of the account
    expires         when the JWT ends, in seconds since 1970; 0: never
    """

    TYPE: str = "user"
    SUBJECT: str = nkeys.USER
    ISSUERS: str = nkeys.ACCOUNT

    def __init__(
        self,
        subject: str,
        limits: UserLimits | None = None,
        *,
        name: str = "",
        issuer_account: str = "",
        scoped: bool = False,
        audience: str = "",
        expires: float = 0,
        not_before: float = 0,
        tags: Sequence[str] = (),
    ) -> None:
        super().__init__(subject, name, audience, expires, not_before, tags)
        self.scoped: bool = scoped
        self.limits: UserLimits | None = limits or (None if scoped else UserLimits())
        self.issuer_account: str = issuer_account
        self.to_json()

    def body(self) -> dict[str, Any]:
        """Return the fields of a user; raise InvalidValue."""
        body: dict[str, Any] = {}
        if checks.check_text("issuer_account", self.issuer_account):
            account = checks.check_nkey("issuer_account", self.issuer_account, nkeys.ACCOUNT)
            body["issuer_account"] = account
        if checks.check_flag("scoped", self.scoped):  # JWT-10
            if self.limits is not None:
                raise InvalidValue("limits conflict with scoped: the scope has them", "JWT-10")
            if not body:
                raise InvalidValue("scoped requires an issuer_account", "JWT-10")
        elif isinstance(self.limits, UserLimits):
            body.update(self.limits.to_json())
        else:
            text = "limits is not a UserLimits: %s"
            raise InvalidValue(text % shorten(self.limits), checks.RULE)
        return body

    def adapt(self, body: dict[str, Any], issuer: str) -> None:
        """Omit the account if its own key signs; otherwise servers would look for a signing key."""
        if body.get("issuer_account") == issuer:  # JWT-9
            if self.scoped:
                raise InvalidValue("scoped requires a signing key, not the account's", "JWT-10")
            del body["issuer_account"]

    @classmethod
    def fields_of(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of a user from those of a JWT, and return them."""
        account = body.pop("issuer_account", "")
        scoped = bool(account) and not [name for name in body if name in SCOPED and body[name]]
        limits = None if scoped else UserLimits.from_json(body)
        for name in SCOPED:
            body.pop(name, None)
        return {"issuer_account": account, "scoped": scoped, "limits": limits}
