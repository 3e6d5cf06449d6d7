from __future__ import annotations

from natsproto import connection
from natsproto.connection import effects, machine


def test_the_classes_are_found_in_the_package():
    assert connection.Connection is machine.Connection
    assert connection.Dial is effects.Dial
    assert connection.StartTls is effects.StartTls
    assert connection.Hangup is effects.Hangup
