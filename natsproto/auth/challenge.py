"""Challenge: the fields of CONNECT for one attempt, and the nonce to sign for them.

A connection mostly signs by itself, with `answer`. Where only the adapter's host can sign, and does
so in its own time, the adapter signs and the connection calls `fields` with the result.
"""

from __future__ import annotations

from natsproto.errors import AuthorizationFailed, NatsError
from natsproto.secret import Secret
from natsproto.wire import base64url

from . import nkeys

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .nkeys import Signer

_SIGNATURE = 64


class Challenge:
    """The remaining work for CONNECT; the repr shows none of it.

    nonce       the bytes to sign
    seed        the seed that signs, unless there is `sign`
    sign        the user's function, or None
    """

    __slots__ = ("_fields", "_names_key", "nonce", "seed", "sign")

    def __init__(
        self,
        fields: dict[str, str],
        nonce: bytes,
        seed: str = "",
        sign: Signer | None = None,
        names_key: bool = False,
    ) -> None:
        self._fields = fields
        self._names_key = names_key  # CONNECT has the public key of the seed
        self.nonce: bytes = nonce
        self.seed: Secret = Secret(seed)
        self.sign: Signer | None = sign

    def __repr__(self) -> str:
        return "Challenge(***)"  # D-AUTH-1

    def answer(self) -> dict[str, str]:
        """Return the fields, signed here; raise AuthorizationFailed or MissingExtra."""
        if self.sign is None:
            seed = self.seed.reveal()
            key = nkeys.decode_public_key(nkeys.public_key(seed))[1] if self._names_key else b""
            return self.fields(nkeys.sign(seed, self.nonce), key)
        try:
            signature = self.sign(self.nonce)
        except Exception as error:
            raise callback_failed("sign", error) from error
        return self.fields(signature)

    def fields(
        self, signature: bytes, key: bytes = b"", error: BaseException | None = None
    ) -> dict[str, str]:
        """Return the fields with a signature; `key` is the public key of the seed, 32 bytes.

        Raises AuthorizationFailed if signing has failed or the signature is unusable. An error that
        is a NatsError is raised as it is.
        """
        if isinstance(error, NatsError):
            raise error
        if error is not None:
            raise callback_failed("sign", error) from error
        if not isinstance(signature, bytes) or len(signature) != _SIGNATURE:
            text = "credentials callback sign did not return %d bytes" % _SIGNATURE
            raise AuthorizationFailed(text)
        if self._names_key:
            self._fields["nkey"] = nkeys.encode_public_key(nkeys.USER, key)
        self._fields["sig"] = base64url.encode(signature)  # AUTH-5
        return self._fields


def callback_failed(name: str, error: BaseException) -> AuthorizationFailed:
    """Return the error for a callback of the user that raised."""
    # D-AUTH-10: without the text of the error, which may quote a secret.
    return AuthorizationFailed("credentials callback %s failed: %s" % (name, type(error).__name__))
