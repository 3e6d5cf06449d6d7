from __future__ import annotations

import itertools
import random
import string

import pytest

from natsproto.connection import Connection
from natsproto.connection.receiver import Receiver
from natsproto.connection.tokens import Numbers, Tokens
from natsproto.errors import NatsError
from natsproto.options import Options
from tests.connection.support import Wire


@pytest.mark.rule("D-REQ-9")
def test_tokens_are_64_random_bits_each():
    tokens = Tokens(random.Random(1).randrange)
    made = [tokens.next() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {len(token) for token in made} == {16}
    assert set(b"".join(made).decode()) == set(string.digits + "ABCDEF")
    for place in range(16):  # no position is constant, counts up, or follows from another
        assert len({token[place] for token in made}) == 16
        steps = {(b[place] - a[place]) for a, b in itertools.pairwise(made)}
        assert len(steps) > 16


@pytest.mark.rule("D-REQ-9")
def test_the_next_token_depends_only_on_the_randomness():
    """Knowing every token of one connection does not help to predict those of another."""
    one, same, other = (Tokens(random.Random(seed).randrange) for seed in (1, 1, 2))
    first = [one.next() for _ in range(200)]
    assert first == [same.next() for _ in range(200)]
    assert not set(first) & {other.next() for _ in range(200)}


def test_small_numbers_are_tokens_of_full_length():
    assert Tokens(lambda limit: 0).next() == b"0" * 16
    assert Tokens(lambda limit: limit - 1).next() == b"F" * 15 + b"E"


def test_random_bytes_are_requested_in_large_pieces():
    asked = []

    def randrange(limit):
        asked.append(limit)
        return 5

    tokens = Tokens(randrange)
    for _ in range(128):
        tokens.next()
    assert len(asked) == 2
    assert tokens.pool == []


def test_numbers_count():
    numbers = Numbers()
    assert [numbers.next() for _ in range(3)] == [b"1", b"2", b"3"]
    assert numbers.pool == []


@pytest.mark.rule("D-REQ-9")
def test_a_connection_makes_its_tokens_from_its_randomness():
    wire = Wire(tokens=Tokens(random.Random(8).randrange)).up()
    expected = Tokens(random.Random(8).randrange)
    connection = Connection(Options(shuffle=False), rng=random.Random(8))
    assert connection.tokens.next() == Tokens(random.Random(8).randrange).next()
    for _ in range(3):
        request = wire.connection.start_request("a", deadline=5.0)
        token = expected.next()
        assert request.token == token
        assert wire.sent().endswith(b"." + token + b" 0\r\n\r\n")


@pytest.mark.rule("D-REQ-9")
def test_every_receiver_gets_the_tokens_of_its_connection():
    class Anything(Receiver):
        def receive(self, msg, now):
            raise NatsError("nothing is sent here")

    wire = Wire(tokens=Tokens(random.Random(1).randrange)).up()
    receiver = Anything()
    wire.connection.subscribe("a", receiver)
    assert receiver.tokens is wire.connection.tokens
