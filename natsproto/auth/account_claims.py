"""The claims of accounts, which operators sign.

The fields that few programs write (exports, imports, mappings) are those of the JWT, in `extra`.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

from . import claim_checks as checks
from . import nkeys
from .claims import Claims
from .limits import Permissions, UserLimits

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_ANY = "*"
_LIMITS = (
    ("max_subscriptions", "subs"),
    ("max_data", "data"),
    ("max_payload", "payload"),
    ("max_imports", "imports"),
    ("max_exports", "exports"),
    ("max_connections", "conn"),
    ("max_leafnodes", "leaf"),
    ("memory_storage", "mem_storage"),
    ("disk_storage", "disk_storage"),
    ("max_streams", "streams"),
    ("max_consumers", "consumer"),
)
_FLAGS = (("wildcard_exports", "wildcards"), ("disallow_bearer", "disallow_bearer"))


class AccountLimits:
    """The limits of an account; -1: no limit.

    JetStream is disabled unless `memory_storage` or `disk_storage`, in bytes, is set; then set
    `max_streams` and `max_consumers`, too.
    """

    def __init__(
        self,
        *,
        max_subscriptions: int = -1,
        max_data: int = -1,
        max_payload: int = -1,
        max_imports: int = -1,
        max_exports: int = -1,
        max_connections: int = -1,
        max_leafnodes: int = -1,
        memory_storage: int = 0,
        disk_storage: int = 0,
        max_streams: int = 0,
        max_consumers: int = 0,
        wildcard_exports: bool = True,
        disallow_bearer: bool = False,
    ) -> None:
        self.max_subscriptions: int = max_subscriptions
        self.max_data: int = max_data
        self.max_payload: int = max_payload
        self.max_imports: int = max_imports
        self.max_exports: int = max_exports
        self.max_connections: int = max_connections
        self.max_leafnodes: int = max_leafnodes
        self.memory_storage: int = memory_storage
        self.disk_storage: int = disk_storage
        self.max_streams: int = max_streams
        self.max_consumers: int = max_consumers
        self.wildcard_exports: bool = wildcard_exports
        self.disallow_bearer: bool = disallow_bearer
        #: Limits of the JWT that this class has no attribute for, such as tiered_limits.
        self.extra: dict[str, Any] = {}
        self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JWT; raise InvalidValue."""
        body = dict(self.extra)
        for name, theirs in _LIMITS:
            body[theirs] = checks.check_limit(name, getattr(self, name))
        for name, theirs in _FLAGS:
            body[theirs] = checks.check_flag(name, getattr(self, name))
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AccountLimits:
        """Return the limits in the fields of a JWT."""
        rest = dict(body)
        given: dict[str, Any] = {name: rest.pop(theirs, 0) for name, theirs in _LIMITS}
        given.update({name: rest.pop(theirs, False) for name, theirs in _FLAGS})
        found = cls(**given)
        found.extra = rest
        return found

    def __repr__(self) -> str:
        return "AccountLimits(%s)" % shorten(self.to_json())


class SigningScope:
    """A signing key of an account with the limits of all users that it signs.

    Its users are UserClaims(..., scoped=True). Subjects of permissions may contain templates, such
    as `{{name()}}` and `{{tag(team)}}`.
    """

    def __init__(
        self, key: str, limits: UserLimits, *, role: str = "", description: str = ""
    ) -> None:
        self.key: str = key
        self.limits: UserLimits = limits
        self.role: str = role
        self.description: str = description
        self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JWT; raise InvalidValue."""
        if not isinstance(self.limits, UserLimits):
            raise InvalidValue("limits is not a UserLimits: %s" % shorten(self.limits), checks.RULE)
        return {
            "kind": "user_scope",
            "key": checks.check_nkey("signing key", self.key, nkeys.ACCOUNT),
            "role": checks.check_text("role", self.role),
            "template": self.limits.to_json(),
            "description": checks.check_text("description", self.description),
        }

    def __repr__(self) -> str:
        return "SigningScope(%s, role=%s)" % (self.key, shorten(self.role))


class AccountClaims(Claims):
    """The claims of an account, which an operator signs.

    subject              the public key of the account
    limits               its limits; by default none, and no JetStream
    signing_keys         public keys that may also sign users; a SigningScope limits those users
    default_permissions  for users without permissions of their own
    revocations          a map from public keys of users, or "*", to a time in seconds since 1970;
                         JWTs that were issued at or before it are no longer accepted
    auth_users           public keys of the users of an auth callout; then other users need it
    allowed_accounts     accounts that the auth callout may place users in; ["*"]: all
    xkey                 the public curve key that encrypts requests to the auth callout
    """

    TYPE: str = "account"
    SUBJECT: str = nkeys.ACCOUNT
    ISSUERS: str = nkeys.OPERATOR + nkeys.ACCOUNT

    def __init__(
        self,
        subject: str,
        limits: AccountLimits | None = None,
        *,
        name: str = "",
        signing_keys: Sequence[str | SigningScope] = (),
        default_permissions: Permissions | None = None,
        revocations: Mapping[str, float] | None = None,
        auth_users: Sequence[str] = (),
        allowed_accounts: Sequence[str] = (),
        xkey: str = "",
        description: str = "",
        audience: str = "",
        expires: float = 0,
        not_before: float = 0,
        tags: Sequence[str] = (),
    ) -> None:
        super().__init__(subject, name, audience, expires, not_before, tags)
        self.limits: AccountLimits = limits or AccountLimits()
        self.signing_keys: Sequence[str | SigningScope] = signing_keys
        self.default_permissions: Permissions = default_permissions or Permissions()
        self.revocations: dict[str, float] = dict(revocations or {})
        self.auth_users: Sequence[str] = auth_users
        self.allowed_accounts: Sequence[str] = allowed_accounts
        self.xkey: str = xkey
        self.description: str = description
        self.to_json()

    def body(self) -> dict[str, Any]:
        """Return the fields of an account; raise InvalidValue."""
        if not isinstance(self.limits, AccountLimits):
            raise InvalidValue(
                "limits is not an AccountLimits: %s" % shorten(self.limits), checks.RULE
            )
        if not isinstance(self.default_permissions, Permissions):
            text = "default_permissions is not a Permissions: %s"
            raise InvalidValue(text % shorten(self.default_permissions), checks.RULE)
        body: dict[str, Any] = {
            "limits": self.limits.to_json(),
            "default_permissions": self.default_permissions.to_json(),
            "authorization": self._authorization(),
        }
        keys = [_signing_key(each) for each in checks.check_list("signing_keys", self.signing_keys)]
        if keys:
            body["signing_keys"] = keys
        if self.revocations:
            body["revocations"] = {
                key if key == _ANY else checks.check_nkey("revoked key", key, nkeys.USER): (
                    checks.check_time("revocation", seconds)
                )
                for key, seconds in self.revocations.items()
            }
        if checks.check_text("description", self.description):
            body["description"] = self.description
        return body

    def _authorization(self) -> dict[str, Any]:
        """Return the settings of the auth callout."""
        users = checks.check_nkeys("auth_users", self.auth_users, nkeys.USER)
        accounts = checks.check_list("allowed_accounts", self.allowed_accounts)
        if accounts != [_ANY]:
            accounts = checks.check_nkeys("allowed_accounts", accounts, nkeys.ACCOUNT)
        if (accounts or self.xkey) and not users:
            text = "allowed_accounts and xkey require auth_users: without any, there is no callout"
            raise InvalidValue(text, checks.RULE)
        body: dict[str, Any] = {}
        if users:
            body["auth_users"] = users
        if accounts:
            body["allowed_accounts"] = accounts
        if checks.check_text("xkey", self.xkey):
            body["xkey"] = checks.check_nkey("xkey", self.xkey, nkeys.CURVE)
        return body

    @classmethod
    def fields_of(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of an account from those of a JWT, and return them."""
        callout = checks.map_in(body, "authorization")
        scopes = [_scope_of(each) for each in checks.list_in(body, "signing_keys")]
        found: dict[str, Any] = {
            "limits": AccountLimits.from_json(checks.map_in(body, "limits")),
            "signing_keys": scopes,
            "default_permissions": Permissions.from_json(
                checks.map_in(body, "default_permissions")
            ),
            "revocations": checks.map_in(body, "revocations"),
            "auth_users": checks.list_in(callout, "auth_users"),
            "allowed_accounts": checks.list_in(callout, "allowed_accounts"),
            "xkey": callout.get("xkey", ""),
            "description": body.get("description", ""),
        }
        for name in list(found) + ["authorization"]:
            body.pop(name, None)
        return found


def _signing_key(given: object) -> str | dict[str, Any]:
    if isinstance(given, SigningScope):
        return given.to_json()
    return checks.check_nkey("signing key", given, nkeys.ACCOUNT)


def _scope_of(given: Any) -> str | SigningScope:
    if isinstance(given, str):
        return given
    scope = checks.check_map("signing key", given)
    limits = UserLimits.from_json(checks.map_in(scope, "template"))
    role, description = scope.get("role", ""), scope.get("description", "")
    return SigningScope(scope.get("key", ""), limits, role=role, description=description)
