"""No secret appears in anything that a user may print or log (D-CONN-19)."""

from __future__ import annotations

import pytest

from natsproto.errors import NatsError
from tests.connection.support import PONG, Wire, err, info

SEED = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"
SECRETS = [
    # options,                                            what must not be seen
    ({"user": "joe", "password": "hush-hush"}, ["hush-hush"]),
    ({"token": "t0ken-t0ken"}, ["t0ken-t0ken"]),
    ({"servers": "nats://joe:hush-hush@a"}, ["hush-hush", "joe:"]),
    ({"servers": "nats://t0ken-t0ken@a"}, ["t0ken-t0ken"]),
    ({"nkey_seed": SEED}, [SEED]),
    ({"token": lambda: "t0ken-t0ken"}, ["t0ken-t0ken"]),
]


def shown(wire):
    """Return all text that the connection reveals, including the attributes of its objects."""
    texts = [wire.connection.closed]
    things = [*wire.events(), *wire.effects(), *wire.ready(), wire.connection.opened]
    things += [wire.connection.options, wire.connection.info, *wire.connection.pool.servers]
    for thing in things:
        texts += [repr(thing), str(thing)]
        for name in getattr(type(thing), "__slots__", ()):
            value = getattr(thing, name, None)
            texts += [repr(value), str(value)]
            if isinstance(value, NatsError):
                texts += [repr(value.args), repr(vars(value))]
    connection = wire.connection
    # Not outbound, whose frames are what is sent, secrets included.
    lifecycle, traffic = connection.lifecycle, connection.traffic
    parts = [lifecycle.attempts, lifecycle.transport, lifecycle.lame_duck]
    parts += [traffic.pings, traffic.requests]
    for part in [connection, lifecycle, traffic, *parts]:
        texts += [repr(getattr(part, name)) for name in getattr(type(part), "__slots__", ())]
    return "\n".join(texts)


@pytest.mark.rule("D-CONN-19")
@pytest.mark.parametrize(("options", "secrets"), SECRETS)
def test_a_whole_lifecycle_shows_no_secret(options, secrets):
    if "nkey_seed" in options:
        pytest.importorskip("cryptography")
    wire = Wire(max_reconnects=2, **options)
    texts = [shown(wire)]
    wire.connect().greet(nonce="n0nce")
    sent = wire.sent()
    assert b"CONNECT" in sent
    texts.append(shown(wire))
    wire.data(PONG + info(connect_urls=["b:1"]))
    texts.append(shown(wire))
    wire.data(err("Authorization Violation"), at=9.0)
    texts.append(shown(wire))
    while wire.state != "CLOSED":
        wire.lost(OSError("refused")) if wire.state == "DIALING" else wire.ring()
        texts.append(shown(wire))
    for secret in secrets:
        assert all(secret not in text for text in texts)


@pytest.mark.rule("D-CONN-19")
def test_a_signature_is_not_shown_either():
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    wire = Wire(nkey=key, sign=lambda nonce: b"s" * 64).connect().greet(nonce="n")
    signature = wire.sent().partition(b'"sig":"')[2].partition(b'"')[0].decode()
    assert len(signature) == 86
    assert signature not in shown(wire.data(err("Authorization Violation")))
