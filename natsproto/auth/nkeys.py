"""Nkeys: Ed25519 keys as text, their seeds and their signatures.

A key is base32 text of a prefix, 32 bytes and a CRC-16; the prefix is chosen so that the first
letter is the type of the key. A seed, which is the secret, starts with S, and its second letter is
the type. No error message contains any part of a seed.

Only signing needs a library: `cryptography` or PyNaCl, imported on use.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue, MissingExtra

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Signer: TypeAlias = Callable[[bytes], bytes]

OPERATOR = "O"
ACCOUNT = "A"
USER = "U"
SERVER = "N"
CURVE = "X"
#: What the letters of the types mean, for errors.
KINDS = {
    OPERATOR: "operator",
    ACCOUNT: "account",
    USER: "user",
    SERVER: "server",
    CURVE: "curve",
    "C": "cluster",
}
_SEED = "S"
_PREFIXES = "ACNOUX"  # account, cluster, server (node), operator, user, curve
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_RAW = 32
_SEED_LENGTH = 58  # characters of 2 + 32 + 2 bytes
_KEY_LENGTH = 56  # characters of 1 + 32 + 2 bytes


def decode_seed(seed: str) -> tuple[str, bytes]:
    """Return the type of a seed, as its letter, and its 32 secret bytes.

    Raises InvalidValue if the text is not a seed.
    """
    data = _decode("nkey seed", seed, _SEED_LENGTH)
    # NKEY-3: five bits S, five bits prefix, six unused bits.
    letter = _ALPHABET[data[0] >> 3]
    prefix = _ALPHABET[(data[0] & 0b111) << 2 | data[1] >> 6]
    if letter != _SEED or data[1] & 0b111111:
        raise InvalidValue("nkey seed has an invalid prefix: not a seed", "NKEY-3")
    _check_prefix("nkey seed", prefix, "NKEY-3")
    return prefix, data[2:-2]


def encode_seed(prefix: str, raw: bytes) -> str:
    """Return the seed of these 32 secret bytes, which must be random."""
    _check_prefix("nkey seed", prefix, "NKEY-3")
    _check_raw("nkey seed", raw)
    bits = _ALPHABET.index(_SEED) << 11 | _ALPHABET.index(prefix) << 6
    return _encode(bytes([bits >> 8, bits & 0xFF]) + raw)


def decode_public_key(key: str) -> tuple[str, bytes]:
    """Return the type of a public key, as its letter, and its 32 bytes.

    Raises InvalidValue if the text is not a public key.
    """
    data = _decode("public nkey", key, _KEY_LENGTH)
    # NKEY-2: five bits prefix, three unused bits.
    prefix = _ALPHABET[data[0] >> 3]
    if data[0] & 0b111:
        raise InvalidValue("public nkey has an invalid prefix", "NKEY-2")
    _check_prefix("public nkey", prefix, "NKEY-2")
    return prefix, data[1:-2]


def encode_public_key(prefix: str, raw: bytes) -> str:
    """Return the text of a public key."""
    _check_prefix("public nkey", prefix, "NKEY-2")
    _check_raw("public nkey", raw)
    return _encode(bytes([_ALPHABET.index(prefix) << 3]) + raw)


def public_key(seed: str) -> str:
    """Return the public key of a seed; raise MissingExtra without a library for Ed25519."""
    prefix, raw = _decode_signing_seed(seed)
    return encode_public_key(prefix, _load(raw)[0])


def sign(seed: str, nonce: bytes) -> bytes:
    """Return the 64-byte signature; raise MissingExtra without a library for Ed25519."""
    return _load(_decode_signing_seed(seed)[1])[1](nonce)


def verify(key: str, data: bytes, signature: bytes) -> bool:
    """Return whether the owner of a public key signed the data (NKEY-8).

    Raises InvalidValue if the text is not a public key that signs, MissingExtra without a library.
    """
    prefix, raw = decode_public_key(key)
    if prefix == CURVE:
        raise InvalidValue("public nkey belongs to a curve key (X), which cannot sign", "NKEY-5")
    return _verifier(raw)(signature, data)


def _verifier(raw: bytes) -> Callable[[bytes, bytes], bool]:
    """Return a function that checks a signature of data."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return _nacl_verifier(raw)

    def check(signature: bytes, data: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
        except InvalidSignature:
            return False
        return True

    return check


def _nacl_verifier(raw: bytes) -> Callable[[bytes, bytes], bool]:
    try:
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey
    except ImportError:
        raise _missing() from None

    def check(signature: bytes, data: bytes) -> bool:
        try:
            VerifyKey(raw).verify(data, signature)
        except (BadSignatureError, ValueError):  # of a wrong length
            return False
        return True

    return check


def _decode_signing_seed(seed: str) -> tuple[str, bytes]:
    prefix, raw = decode_seed(seed)
    if prefix == CURVE:
        raise InvalidValue("nkey seed belongs to a curve key (X), which cannot sign", "NKEY-5")
    return prefix, raw


def _load(raw: bytes) -> tuple[bytes, Signer]:
    """Return the 32 bytes of the public key, and a function that signs."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        return _load_nacl(raw)
    key = Ed25519PrivateKey.from_private_bytes(raw)
    return key.public_key().public_bytes_raw(), key.sign


def _load_nacl(raw: bytes) -> tuple[bytes, Signer]:
    try:
        from nacl.signing import SigningKey
    except ImportError:
        raise _missing() from None
    key = SigningKey(raw)
    return bytes(key.verify_key), lambda nonce: key.sign(nonce).signature


def _missing() -> MissingExtra:
    text = "nkeys need a library for Ed25519: pip install 'natsproto[nkeys]' or PyNaCl"
    return MissingExtra(text, "D-NKEY-6")


def _check_prefix(what: str, prefix: str, rule: str) -> None:
    if len(prefix) != 1 or prefix not in _PREFIXES:
        raise InvalidValue("%s has an invalid prefix: not one of %s" % (what, _PREFIXES), rule)


def _check_raw(what: str, raw: bytes) -> None:
    if len(raw) != _RAW:
        raise InvalidValue("%s has %d raw bytes, not %d" % (what, len(raw), _RAW), "NKEY-1")


def _decode(what: str, text: str, length: int) -> bytes:  # D-NKEY-7
    """Return the bytes, including their checksum, after verifying it; ignore whitespace around."""
    if not isinstance(text, str):
        raise InvalidValue("%s is %s, not a str" % (what, type(text).__name__), "NKEY-1")
    text = text.strip()
    if len(text) != length:
        raise InvalidValue("%s has %d characters, not %d" % (what, len(text), length), "NKEY-1")
    data = _decode_base32(what, text)
    if _crc16(data[:-2]) != data[-2] | data[-1] << 8:
        raise InvalidValue("%s has an invalid checksum: a character is wrong" % what, "NKEY-4")
    return data


def _encode(data: bytes) -> str:
    crc = _crc16(data)
    return encode_base32(data + bytes([crc & 0xFF, crc >> 8]))


# Base32 by hand, because MicroPython has none.
def encode_base32(data: bytes) -> str:
    """Return the base32 text of any bytes, without padding."""
    chars: list[str] = []
    value = bits = 0
    for byte in data:
        value = value << 8 | byte
        bits += 8
        while bits >= 5:
            bits -= 5
            chars.append(_ALPHABET[value >> bits])
            value &= (1 << bits) - 1
    if bits:
        chars.append(_ALPHABET[value << (5 - bits)])
    return "".join(chars)


def _decode_base32(what: str, text: str) -> bytes:
    data = bytearray()
    value = bits = 0
    for char in text:
        digit = _ALPHABET.find(char)
        if digit < 0:
            raise InvalidValue("%s has a character that is not base32" % what, "NKEY-1")
        value = value << 5 | digit
        bits += 5
        if bits >= 8:
            bits -= 8
            data.append(value >> bits)
            value &= (1 << bits) - 1
    if value:  # bits after the last byte: no encoder sets them, and no checksum covers them
        raise InvalidValue("%s has an invalid last character" % what, "NKEY-4")
    return bytes(data)


def _crc16(data: bytes) -> int:
    """Return the CRC-16/XMODEM: polynomial 0x1021, initial value 0."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x1021 if crc & 0x8000 else 0)
        crc &= 0xFFFF
    return crc
