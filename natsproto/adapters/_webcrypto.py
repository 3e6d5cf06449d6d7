"""Signatures by WebCrypto, the cryptography of a browser or of Node.

Ed25519 is there in all current browsers, but only on pages from https or from the same machine.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import js
from pyodide.ffi import JsException, JsProxy, to_js

from natsproto.auth import nkeys
from natsproto.errors import MissingExtra
from natsproto.wire import base64url

if TYPE_CHECKING:
    from natsproto.auth.challenge import Challenge

# PKCS #8 around the 32 bytes of a private key (RFC 8410, 7).
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
_ED25519 = "Ed25519"


async def sign_nonce(challenge: Challenge) -> tuple[bytes, bytes]:
    """Return the signature and, if the seed has signed, the 32 bytes of its public key.

    The function of the user may return the signature or an awaitable, such as a promise.
    """
    if challenge.sign is None:
        return await _sign_with_seed(challenge.seed.reveal(), challenge.nonce)
    found: Any = challenge.sign(challenge.nonce)
    if isawaitable(found):
        found = await found
    return found.to_bytes() if isinstance(found, JsProxy) else found, b""


async def _sign_with_seed(seed: str, nonce: bytes) -> tuple[bytes, bytes]:
    private = _PKCS8 + nkeys.decode_seed(seed)[1]
    subtle: Any = getattr(getattr(js, "crypto", None), "subtle", None)
    try:
        if subtle is None:
            raise MissingExtra("the page is not from https", "D-NKEY-6")
        usages = to_js(["sign"])
        key = await subtle.importKey("pkcs8", to_js(private), _ED25519, True, usages)
    except (MissingExtra, JsException) as error:
        return _sign_with_library(seed, nonce, error)
    signature: bytes = (await subtle.sign(_ED25519, key, to_js(nonce))).to_bytes()
    public = (await subtle.exportKey("jwk", key)).x
    return signature, base64url.decode(public)


def _sign_with_library(seed: str, nonce: bytes, error: Exception) -> tuple[bytes, bytes]:
    try:
        public = nkeys.public_key(seed)
    except MissingExtra:
        text = "nkeys need Ed25519, which WebCrypto does not offer: %s; load cryptography or PyNaCl"
        raise MissingExtra(text % error, "D-NKEY-6") from None
    return nkeys.sign(seed, nonce), nkeys.decode_public_key(public)[1]
