"""Authentication: users, tokens, nkeys, JWTs and .creds files as fields of CONNECT.

    argument                field of CONNECT         proof
    user, password          user, pass
    token                   auth_token
    nkey_seed               nkey, sig                the seed signs the server's nonce
    nkey, sign              nkey, sig                sign(nonce) returns the signature
    jwt, nkey_seed or sign  jwt, sig                 as above; the JWT names the public key
    creds                   jwt, sig                 the text of a .creds file has JWT and seed

A JWT or creds can be combined with a user or a token: auth callouts read both.

JWTs are issued by the classes of claims.py, account_claims.py and operator_claims.py, whose names
are here, too, and imported on first use.
"""

from __future__ import annotations

from natsproto.errors import AuthorizationFailed, InvalidValue
from natsproto.lazy import lazy_names
from natsproto.wire import base64url
from natsproto.wire import text as _text

from . import nkeys
from .creds import format_creds as format_creds
from .creds import parse_creds as parse_creds
from .secret import Secret, as_secret

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from .account_claims import AccountClaims as AccountClaims
    from .account_claims import AccountLimits as AccountLimits
    from .account_claims import SigningScope as SigningScope
    from .auth_request import AuthClient as AuthClient
    from .auth_request import AuthOptions as AuthOptions
    from .auth_request import AuthRequest as AuthRequest
    from .auth_request import AuthServer as AuthServer
    from .auth_request import AuthTls as AuthTls
    from .callout import AuthCallout as AuthCallout
    from .callout import AuthResponse as AuthResponse
    from .claims import UserClaims as UserClaims
    from .limits import Permissions as Permissions
    from .limits import UserLimits as UserLimits
    from .nkeys import Signer
    from .operator_claims import OperatorClaims as OperatorClaims
    from .secret import SecretLike

    class UrlCredentials(Protocol):
        """The credentials in a server's URL; "" where there are none."""

        @property
        def user(self) -> str | Secret:
            """The user name."""
            ...

        @property
        def password(self) -> str | Secret:
            """The password."""
            ...

        @property
        def token(self) -> str | Secret:
            """The token."""
            ...

else:
    __getattr__ = lazy_names(
        "natsproto.auth",
        {
            "AccountClaims": "account_claims",
            "AccountLimits": "account_claims",
            "AuthCallout": "callout",
            "AuthClient": "auth_request",
            "AuthOptions": "auth_request",
            "AuthRequest": "auth_request",
            "AuthResponse": "callout",
            "AuthServer": "auth_request",
            "AuthTls": "auth_request",
            "OperatorClaims": "operator_claims",
            "Permissions": "limits",
            "SigningScope": "account_claims",
            "UserClaims": "claims",
            "UserLimits": "limits",
        },
        globals(),
    )

_SIGNATURE = 64
_APART = [  # AUTH-3: arguments that exclude each other, and the reason
    ("token", "user", "the server uses only one of them"),
    ("token", "password", "the server uses only one of them"),
    ("creds", "jwt", "creds contain a JWT"),
    ("creds", "nkey_seed", "creds contain a seed"),
    ("creds", "nkey", "creds contain a seed"),
    ("creds", "sign", "creds contain a seed, which signs"),
    ("nkey_seed", "nkey", "the public key is derived from the seed"),
    ("nkey_seed", "sign", "the seed signs"),
    ("jwt", "nkey", "the JWT names the public key"),
]
_NEEDS = [  # AUTH-3: arguments that require one of the others
    ("password", ["user"]),
    ("jwt", ["nkey_seed", "sign"]),
    ("sign", ["nkey", "jwt"]),
    ("nkey", ["sign"]),
]
_FIELDS = [("user", "user"), ("password", "pass"), ("token", "auth_token")]  # AUTH-4


def choose_auth(
    *,
    user: SecretLike = "",
    password: SecretLike = "",
    token: SecretLike = "",
    nkey_seed: SecretLike = "",
    jwt: SecretLike = "",
    creds: SecretLike = "",
    nkey: str = "",
    sign: Signer | None = None,
) -> Auth:
    """Return an Auth; raise InvalidValue for arguments that exclude each other.

    Except for `nkey`, each text may be a callable without arguments, which is called at each
    connection attempt. `creds` is the text of the file, not its path. `sign` takes the nonce and
    returns the 64 bytes of the signature.
    """
    texts = [
        ("user", user),
        ("password", password),
        ("token", token),
        ("nkey_seed", nkey_seed),
        ("jwt", jwt),
        ("creds", creds),
    ]
    secrets = {name: _check_secret(name, value) for name, value in texts if value}
    given = list(secrets) + ["nkey"] * bool(nkey) + ["sign"] * (sign is not None)
    _check_combination(given)
    if nkey:
        _check_user("public nkey", nkeys.decode_public_key(nkey)[0])
    if sign is not None and not callable(sign):
        raise InvalidValue("sign is %s, not a callable" % type(sign).__name__, "AUTH-3")
    _check_fixed(secrets)
    return Auth(secrets, nkey, sign)


class Auth:
    """The credentials of a client, as choose_auth returns them. The repr omits their values."""

    __slots__ = ("_nkey", "_secrets", "_sign")

    def __init__(self, secrets: dict[str, Secret], nkey: str, sign: Signer | None) -> None:
        self._secrets = secrets
        self._nkey = nkey
        self._sign = None if sign is None else _hide(sign)

    def connect_fields(self, nonce: str, url: UrlCredentials) -> dict[str, str]:
        """Return the fields to add to CONNECT; `nonce` is "" if the server sent none.

        Raises AuthorizationFailed if a callback fails or returns an unusable value, or if there is
        an nkey and no nonce; MissingExtra if the library that signs is missing.
        """
        fields = _url_fields(url)
        try:
            proof = self._jwt_fields(nonce)
            if not fields:  # AUTH-8
                fields = self._plain_fields()
                proof = proof or self._nkey_fields(nonce)
        except InvalidValue as error:  # from a callback; choose_auth has already checked the others
            raise AuthorizationFailed("credentials cannot be used: %s" % error) from None
        fields.update(proof)
        return fields

    def __repr__(self) -> str:
        names = sorted(self._secrets) + ["nkey"] * bool(self._nkey)
        return "Auth(%s)" % ", ".join(names + ["sign"] * (self._sign is not None))  # D-AUTH-1

    def __reduce__(self) -> tuple[Callable[[], Auth], tuple[()]]:
        if self._secrets or self._sign is not None:
            raise TypeError("an Auth cannot be pickled or copied: that would expose its secrets")
        return choose_auth, ()

    def _plain_fields(self) -> dict[str, str]:
        return {field: self._reveal(name) for name, field in _FIELDS if name in self._secrets}

    def _jwt_fields(self, nonce: str) -> dict[str, str]:
        if "creds" in self._secrets:
            jwt, seed = parse_creds(self._reveal("creds"))
        elif "jwt" in self._secrets:
            jwt = self._reveal("jwt").strip()
            seed = "" if self._sign else self._reveal("nkey_seed")
        else:
            return {}
        # AUTH-7: a bearer JWT needs no signature; only the server knows whether this is one.
        # AUTH-6
        return {"jwt": jwt, "sig": self._signature(nonce, seed)} if nonce else {"jwt": jwt}

    def _nkey_fields(self, nonce: str) -> dict[str, str]:
        if not self._nkey and "nkey_seed" not in self._secrets:
            return {}
        if not nonce:
            raise AuthorizationFailed("server does not support nkeys: it sent no nonce")
        seed = "" if self._nkey else self._reveal("nkey_seed")
        return {
            "nkey": self._nkey or nkeys.public_key(_check_seed(seed)),
            "sig": self._signature(nonce, seed),
        }

    def _signature(self, nonce: str, seed: str) -> str:
        try:
            data = _text.encode(nonce)
        except UnicodeError:
            raise AuthorizationFailed("nonce of the server is not text") from None
        if self._sign is None:
            signature = nkeys.sign(_check_seed(seed), data)
        else:
            signature = _call_sign(self._sign, data)
        return base64url.encode(signature)  # AUTH-5

    def _reveal(self, name: str) -> str:
        try:
            value = self._secrets[name].reveal()
        except Exception as error:
            raise _callback_failed(name, error) from error
        if not isinstance(value, str):
            raise AuthorizationFailed(
                "credentials callback %s returned %s, not str" % (name, type(value).__name__)
            )
        return value


def _call_sign(sign: Signer, nonce: bytes) -> bytes:
    try:
        signature = sign(nonce)
    except Exception as error:
        raise _callback_failed("sign", error) from error
    if not isinstance(signature, bytes) or len(signature) != _SIGNATURE:
        raise AuthorizationFailed("credentials callback sign did not return %d bytes" % _SIGNATURE)
    return signature


def _callback_failed(name: str, error: Exception) -> AuthorizationFailed:
    # D-AUTH-10: without the text of the error, which may quote a secret.
    return AuthorizationFailed("credentials callback %s failed: %s" % (name, type(error).__name__))


def _url_fields(url: UrlCredentials) -> dict[str, str]:
    values = [("user", url.user), ("pass", url.password), ("auth_token", url.token)]
    return {field: as_secret(value).reveal() for field, value in values if value}


def _check_secret(name: str, value: SecretLike) -> Secret:
    if isinstance(value, (str, Secret)) or callable(value):
        return as_secret(value)
    given = type(value).__name__
    raise InvalidValue("%s is %s, not a str or a callable" % (name, given), "AUTH-3")


def _check_combination(given: list[str]) -> None:
    for one, other, why in _APART:
        if one in given and other in given:
            raise InvalidValue("%s conflicts with %s: %s" % (one, other, why), "AUTH-3")
    for name, others in _NEEDS:
        if name in given and not [other for other in others if other in given]:
            raise InvalidValue("%s requires %s" % (name, " or ".join(others)), "AUTH-3")


def _check_fixed(secrets: dict[str, Secret]) -> None:
    """Validate credentials that are already known, before a server is reached (D-AUTH-11)."""
    creds = secrets.get("creds")
    if creds is not None and creds.fixed:
        nkeys.public_key(_check_seed(parse_creds(creds.reveal())[1]))
    seed = secrets.get("nkey_seed")
    if seed is not None and seed.fixed:
        nkeys.public_key(_check_seed(seed.reveal()))


def _check_seed(seed: str) -> str:
    _check_user("nkey seed", nkeys.decode_seed(seed)[0])
    return seed


def _check_user(what: str, prefix: str) -> None:
    if prefix != nkeys.USER:
        raise InvalidValue("%s has type %s; a client needs a user (U)" % (what, prefix), "AUTH-12")


def _hide(sign: Signer) -> Signer:
    # As in Secret: the repr of a functools.partial or a bound method may expose its arguments.
    return lambda nonce: sign(nonce)
