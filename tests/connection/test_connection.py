from __future__ import annotations

from natsproto import connection
from natsproto.connection import machine


def test_the_class_is_found_in_the_package():
    assert connection.Connection is machine.Connection
