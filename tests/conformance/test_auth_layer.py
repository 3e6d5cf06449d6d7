"""A real nats-server accepts the CONNECT fields of Auth."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from pathlib import Path

import pytest

from natsproto import Err, Info, Parser, Pong, encode
from natsproto.auth import choose_auth, nkeys
from natsproto.options import ServerUrl
from natsproto.testing import Server

pytest.importorskip("cryptography")

OPERATOR, ACCOUNT, USER, OTHER = (
    nkeys.encode_seed(kind, bytes([number]) * 32)
    for number, kind in enumerate(["O", "A", "U", "U"], 1)
)


def encode_jwt(claims: dict[str, object], signer: str) -> str:
    """Return a JWT as nats-server reads them, signed with this seed."""

    def pack(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    claims = {**claims, "iss": nkeys.public_key(signer), "iat": 1700000000, "jti": ""}
    digest = hashlib.sha256(json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    body = pack(b'{"typ":"JWT","alg":"ed25519-nkey"}') + "." + pack(json.dumps(claims).encode())
    return body + "." + pack(nkeys.sign(signer, body.encode()))


def claims(kind: str, seed: str, **limits: object) -> dict[str, object]:
    public = nkeys.public_key(seed)
    return {"sub": public, "name": kind, "nats": {"type": kind, "version": 2, **limits}}


def user_jwt(seed: str) -> str:
    return encode_jwt(claims("user", seed, subs=-1, data=-1, payload=-1), ACCOUNT)


def creds(jwt: str, seed: str) -> str:
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def connect(server: Server, options: dict[str, object], userinfo: str = "") -> object:
    """Return the server's answer to CONNECT and PING: Pong or Err."""
    url = ServerUrl.parse(f"nats://{userinfo}{server.host}:{server.port}")
    parser = Parser()
    with socket.create_connection((server.host, server.port), timeout=5) as sock:
        frames = parser.feed(sock.recv(65536))
        while not frames:
            frames = parser.feed(sock.recv(65536))
        [info] = frames
        assert isinstance(info, Info)
        fields = choose_auth(**options).connect_fields(info.nonce, url)
        sock.sendall(encode.connect({"verbose": False, **fields}) + encode.ping())
        while True:
            for frame in parser.feed(sock.recv(65536)):
                if isinstance(frame, (Pong, Err)):
                    return frame


REFUSED = Err("Authorization Violation")


@pytest.fixture(scope="module")
def users():
    """Yield a server with a user and an nkey."""
    listed = [{"user": "u", "password": "p%:@"}, {"nkey": nkeys.public_key(USER)}]
    with Server(config={"authorization": {"users": listed}}) as server:
        yield server


@pytest.mark.rule("AUTH-4", "AUTH-5", "AUTH-8")
@pytest.mark.parametrize(
    ("options", "userinfo", "answer"),
    [
        ({}, "", REFUSED),
        ({"user": "u", "password": "p%:@"}, "", Pong()),
        ({"user": "u", "password": lambda: "p%:@"}, "", Pong()),
        ({"user": "u", "password": "q"}, "", REFUSED),
        ({"user": "u", "password": "q"}, "u:p%25%3A%40@", Pong()),
        ({"user": "u", "password": "p%:@"}, "u:q@", REFUSED),
        ({"nkey_seed": USER}, "", Pong()),
        ({"nkey_seed": lambda: USER}, "", Pong()),
        ({"nkey_seed": OTHER}, "", REFUSED),
        ({"nkey_seed": USER}, "u:q@", REFUSED),
        (
            {"nkey": nkeys.public_key(USER), "sign": lambda nonce: nkeys.sign(USER, nonce)},
            "",
            Pong(),
        ),
        (
            {"nkey": nkeys.public_key(USER), "sign": lambda nonce: nkeys.sign(OTHER, nonce)},
            "",
            REFUSED,
        ),
    ],
)
def test_users(users, options, userinfo, answer):
    assert connect(users, options, userinfo) == answer


@pytest.fixture(scope="module")
def token_server():
    with Server(config={"authorization": {"token": "t@/:"}}) as server:
        yield server


@pytest.mark.rule("AUTH-4", "AUTH-8")
@pytest.mark.parametrize(
    ("options", "userinfo", "answer"),
    [
        ({"token": "t@/:"}, "", Pong()),
        ({}, "t%40%2F%3A@", Pong()),
        ({"token": "x"}, "t%40%2F%3A@", Pong()),
        ({"token": "x"}, "", REFUSED),
    ],
)
def test_token(token_server, options, userinfo, answer):
    assert connect(token_server, options, userinfo) == answer


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """Yield a server with JWTs: an operator and one account."""
    path: Path = tmp_path_factory.mktemp("jwt") / "operator.jwt"
    path.write_text(encode_jwt(claims("operator", OPERATOR), OPERATOR))
    limits = {"subs": -1, "data": -1, "payload": -1, "conn": -1, "imports": -1, "exports": -1}
    account = encode_jwt(claims("account", ACCOUNT, limits=limits), OPERATOR)
    config = {
        "operator": str(path),
        "resolver": "MEMORY",
        "resolver_preload": {nkeys.public_key(ACCOUNT): account},
    }
    with Server(config=config) as server:
        yield server


JWT = user_jwt(USER)


@pytest.mark.rule("AUTH-6", "AUTH-9")
@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"creds": creds(JWT, USER)}, Pong()),
        ({"creds": lambda: creds(JWT, USER).replace("\n", "\r\n")}, Pong()),
        ({"jwt": JWT, "nkey_seed": USER}, Pong()),
        ({"jwt": JWT, "sign": lambda nonce: nkeys.sign(USER, nonce)}, Pong()),
        ({"creds": creds(JWT, USER), "user": "u", "password": "p"}, Pong()),
        ({"creds": creds(JWT, OTHER)}, REFUSED),
        ({"user": "u", "password": "p"}, REFUSED),
    ],
)
def test_jwts(operator, options, answer):
    assert connect(operator, options) == answer
