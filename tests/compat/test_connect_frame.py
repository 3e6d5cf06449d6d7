"""CONNECT has the same credentials and options on nats-py and on the layer."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
from typing import Any

import pytest

SIGNATURE = bytes(range(64))
OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"user": "u", "password": "p"}, {"user": "u", "pass": "p"}),
    ({"user": lambda: "u", "password": lambda: "p"}, {"user": "u", "pass": "p"}),
    ({"token": "t"}, {"auth_token": "t"}),
    ({"token": lambda: "t"}, {"auth_token": "t"}),
    (  # auth callouts read the token as well
        {
            "user_jwt_cb": lambda: bytearray(b"jwt"),
            "signature_cb": lambda nonce: base64.b64encode(SIGNATURE),
            "token": "t",
        },
        {"jwt": "jwt", "auth_token": "t"},
    ),
    ({"name": "n", "no_echo": True}, {"name": "n", "echo": False}),
    ({"verbose": True, "pedantic": True}, {"verbose": True, "pedantic": True}),
    ({}, {"echo": True, "verbose": False, "pedantic": False, "protocol": 1, "headers": True}),
]
CREDENTIALS = {"user", "pass", "auth_token", "jwt", "nkey", "sig"}


async def connect_fields(nats: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of CONNECT that a client sends to a server of the test."""
    fields: dict[str, Any] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "s", "version": "2.15.1", "nonce": "n", "headers": True}
        writer.write(b"INFO %s\r\n" % json.dumps({**info, "max_payload": 1024}).encode())
        while line := await reader.readline():
            if line.startswith(b"CONNECT "):
                fields.update(json.loads(line[len(b"CONNECT ") :]))
                writer.write(b"+OK\r\n" if fields["verbose"] else b"")
            elif line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        nc = await nats.connect(f"nats://127.0.0.1:{port}", allow_reconnect=False, **options)
        await nc.close()
    return fields


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
@pytest.mark.parametrize("client", ["nats", "natsproto.compat.nats"])
@pytest.mark.parametrize(("options", "expected"), OPTIONS)
def test_the_fields_of_connect(client, options, expected):
    pytest.importorskip(client)
    program = connect_fields(importlib.import_module(client), options)
    fields = asyncio.run(asyncio.wait_for(program, 10))
    assert {name: fields[name] for name in expected} == expected
    others = CREDENTIALS & set(fields) - set(expected)
    assert others == ({"sig"} if "jwt" in expected else set())
    if others:
        text = fields["sig"].replace("-", "+").replace("_", "/")
        assert base64.b64decode(text + "=" * (-len(text) % 4)) == SIGNATURE
