from __future__ import annotations

import base64
import binascii
import json
import sys
from pathlib import Path

import pytest

from natsproto.auth import nkeys
from natsproto.errors import InvalidValue, MissingExtra

VECTORS = Path(__file__).parent.parent / "vectors"
MODULES = {
    "cryptography": "cryptography.hazmat.primitives.asymmetric.ed25519",
    "nacl": "nacl.signing",
}
RFC_8032 = [  # 7.1: secret key, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da0"
        "85ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac1"
        "8ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
# The pair of the nats-server manual.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
RAW = bytes(range(100, 132))


@pytest.fixture(params=MODULES)
def library(request, monkeypatch):
    """Provide each library in turn, without the other."""
    pytest.importorskip(MODULES[request.param])
    for name, module in MODULES.items():
        if name != request.param:
            monkeypatch.setitem(sys.modules, module, None)


def encode(data: bytes, *, spoil: int = 0) -> str:
    """Encode like nkeys, but with the tools of the standard library."""
    crc = binascii.crc_hqx(data, 0) ^ spoil
    return base64.b32encode(data + crc.to_bytes(2, "little")).decode().rstrip("=")


@pytest.mark.rule("NKEY-5")
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_rfc_8032(secret, public, message, signature):
    seed = nkeys.encode_seed("U", bytes.fromhex(secret))
    assert nkeys.sign(seed, bytes.fromhex(message)) == bytes.fromhex(signature)
    assert nkeys.decode_public_key(nkeys.public_key(seed)) == ("U", bytes.fromhex(public))


@pytest.mark.rule("NKEY-2", "NKEY-3", "NKEY-5")
@pytest.mark.usefixtures("library")
def test_the_pair_of_the_manual():
    assert nkeys.public_key(SEED) == PUBLIC


@pytest.mark.rule("NKEY-1", "NKEY-2", "NKEY-3", "NKEY-4")
@pytest.mark.parametrize("raw", [RAW, bytes(32), b"\xff" * 32])
@pytest.mark.parametrize("kind", "ACNOUX")
def test_round_trip(kind, raw):
    prefix = ord(kind) - ord("A") << 3
    seed_prefix = bytes([(ord("S") - ord("A")) << 3 | prefix >> 5, (prefix & 31) << 3])
    seed = nkeys.encode_seed(kind, raw)
    assert seed == encode(seed_prefix + raw)
    assert (len(seed), seed[:2]) == (58, "S" + kind)
    assert nkeys.decode_seed(seed) == (kind, raw)
    key = nkeys.encode_public_key(kind, raw)
    assert key == encode(bytes([prefix]) + raw)
    assert (len(key), key[0]) == (56, kind)
    assert nkeys.decode_public_key(key) == (kind, raw)


@pytest.mark.rule("NKEY-1")
def test_whitespace_around_a_key_is_dropped():
    assert nkeys.decode_seed("\t%s\r\n" % SEED) == nkeys.decode_seed(SEED)
    assert nkeys.decode_public_key(PUBLIC + "\n") == nkeys.decode_public_key(PUBLIC)


S = (ord("S") - ord("A")) << 3
BAD_SEEDS = [  # case, seed, error
    ("no text", SEED.encode(), "nkey seed is bytes, not a str (NKEY-1)"),
    ("empty", "", "nkey seed has 0 characters, not 58 (NKEY-1)"),
    ("too short", SEED[:-1], "nkey seed has 57 characters, not 58 (NKEY-1)"),
    ("too long", SEED + "A", "nkey seed has 59 characters, not 58 (NKEY-1)"),
    ("a public key", PUBLIC, "nkey seed has 56 characters, not 58 (NKEY-1)"),
    ("lower case", SEED.lower(), "nkey seed has a character that is not base32 (NKEY-1)"),
    ("not base32", "S1" + SEED[2:], "nkey seed has a character that is not base32 (NKEY-1)"),
    ("not ASCII", SEED[:-1] + "é", "nkey seed has a character that is not base32 (NKEY-1)"),
    (
        "mistyped",
        SEED[:20] + "A" + SEED[21:],
        "nkey seed has an invalid checksum: a character is wrong (NKEY-4)",
    ),
    (
        "checksum spoiled",
        encode(bytes([S | 5, 0]) + RAW, spoil=1),
        "nkey seed has an invalid checksum: a character is wrong (NKEY-4)",
    ),
    ("last bits", SEED[:-1] + "Z", "nkey seed has an invalid last character (NKEY-4)"),
    ("no S", encode(b"\0\0" + RAW), "nkey seed has an invalid prefix: not a seed (NKEY-3)"),
    (
        "more bits",
        encode(bytes([S | 5, 1]) + RAW),
        "nkey seed has an invalid prefix: not a seed (NKEY-3)",
    ),
    (
        "unknown kind",
        encode(bytes([S, 0b01000000]) + RAW),
        "nkey seed has an invalid prefix: not one of ACNOUX (NKEY-3)",
    ),
]


@pytest.mark.rule("NKEY-1", "NKEY-3", "NKEY-4", "D-NKEY-7")
@pytest.mark.parametrize(("name", "seed", "complaint"), BAD_SEEDS)
@pytest.mark.parametrize(
    "function", [nkeys.decode_seed, nkeys.public_key, lambda seed: nkeys.sign(seed, b"")]
)
def test_bad_seeds_are_rejected_without_being_shown(function, name, seed, complaint):
    with pytest.raises(InvalidValue) as caught:
        function(seed)
    assert str(caught.value) == complaint
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


BAD_KEYS = [
    ("no text", None, "public nkey is NoneType, not a str (NKEY-1)"),
    ("a seed", SEED, "public nkey has 58 characters, not 56 (NKEY-1)"),
    (
        "mistyped",
        PUBLIC[:-1] + "A",
        "public nkey has an invalid checksum: a character is wrong (NKEY-4)",
    ),
    ("more bits", encode(bytes([20 << 3 | 1]) + RAW), "public nkey has an invalid prefix (NKEY-2)"),
    (
        "unknown kind",
        encode(bytes([1 << 3]) + RAW),
        "public nkey has an invalid prefix: not one of ACNOUX (NKEY-2)",
    ),
]


@pytest.mark.rule("NKEY-1", "NKEY-2", "NKEY-4")
@pytest.mark.parametrize(("name", "key", "complaint"), BAD_KEYS)
def test_bad_public_keys_are_refused(name, key, complaint):
    with pytest.raises(InvalidValue) as caught:
        nkeys.decode_public_key(key)
    assert str(caught.value) == complaint


@pytest.mark.rule("NKEY-4")
@pytest.mark.parametrize("place", range(58))
def test_no_mistyped_character_goes_unnoticed(place):
    for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".replace(SEED[place], ""):
        with pytest.raises(InvalidValue):
            nkeys.decode_seed(SEED[:place] + char + SEED[place + 1 :])


@pytest.mark.rule("NKEY-1", "NKEY-2", "NKEY-3")
@pytest.mark.parametrize("function", [nkeys.encode_seed, nkeys.encode_public_key])
@pytest.mark.parametrize(
    ("kind", "raw", "complaint"),
    [
        ("S", RAW, "has an invalid prefix: not one of ACNOUX"),
        ("", RAW, "has an invalid prefix"),
        ("OU", RAW, "has an invalid prefix"),
        ("U", RAW[1:], "has 31 raw bytes, not 32"),
    ],
)
def test_invalid_keys_are_not_encoded(function, kind, raw, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        function(kind, raw)


@pytest.mark.rule("NKEY-5")
@pytest.mark.parametrize("function", [nkeys.public_key, lambda seed: nkeys.sign(seed, b"nonce")])
def test_a_curve_key_does_not_sign(function):
    with pytest.raises(InvalidValue, match="curve key"):
        function(nkeys.encode_seed("X", RAW))


@pytest.mark.rule("NKEY-8")
@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_signatures_are_verified(library, secret, public, message, signature):
    key = nkeys.encode_public_key("A", bytes.fromhex(public))
    data, signed = bytes.fromhex(message), bytes.fromhex(signature)
    assert nkeys.verify(key, data, signed)
    for wrong in (signed[:-1], b"", bytes([signed[0] ^ 1]) + signed[1:]):
        assert not nkeys.verify(key, data, wrong)
    assert not nkeys.verify(key, data + b"x", signed)


@pytest.mark.rule("NKEY-5", "NKEY-8")
def test_curve_keys_verify_nothing():
    with pytest.raises(InvalidValue, match="cannot sign"):
        nkeys.verify(nkeys.encode_public_key("X", RAW), b"", b"")


@pytest.mark.rule("D-NKEY-6")
@pytest.mark.parametrize("function", [nkeys.public_key, lambda seed: nkeys.sign(seed, b"nonce")])
def test_without_a_library(function, monkeypatch):
    for module in MODULES.values():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'natsproto\[nkeys\]'") as caught:
        function(SEED)
    assert SEED not in str(caught.value)


def connects(name: str) -> dict[str, dict[str, str]]:
    """Return the fields of CONNECT of each connection of a transcript, with the nonce before it."""
    found: dict[str, dict[str, str]] = {}
    transcript = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    for frame in transcript["frames"]:
        operation, _, rest = frame["latin1"].partition(" ")
        if operation in ("INFO", "CONNECT"):
            fields = json.loads(rest)
            found.setdefault(frame["conn"], {}).update(
                {key: fields[key] for key in ("nonce", "nkey", "jwt", "sig") if key in fields}
            )
    return found


@pytest.mark.rule("NKEY-2", "AUTH-5", "AUTH-6")
@pytest.mark.parametrize(
    ("transcript", "connection", "valid"),
    [
        ("91-nkey-auth.json", "A", True),
        ("91-nkey-auth.json", "B", False),  # a replay
        ("90-err-user-auth-expired.json", "A", True),
        ("90-err-user-auth-expired.json", "B", True),
        ("90-err-user-auth-expired.json", "C", False),  # of another nonce
    ],
)
def test_a_signature_that_a_real_server_accepted(transcript, connection, valid):
    ed25519 = pytest.importorskip(MODULES["cryptography"])
    from cryptography.exceptions import InvalidSignature

    fields = connects(transcript)[connection]
    if "jwt" in fields:
        claims = fields["jwt"].split(".")[1]
        fields["nkey"] = json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"]
    kind, raw = nkeys.decode_public_key(fields["nkey"])
    assert kind == "U"
    key = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    signature = base64.urlsafe_b64decode(fields["sig"] + "==")
    try:
        key.verify(signature, fields["nonce"].encode())
    except InvalidSignature:
        assert not valid
    else:
        assert valid


@pytest.mark.rule("D-NKEY-6")
def test_verifying_needs_a_library(monkeypatch):
    for module in MODULES.values():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'natsproto\[nkeys\]'"):
        nkeys.verify(PUBLIC, b"", bytes(64))
