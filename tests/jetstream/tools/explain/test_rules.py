from __future__ import annotations

import pytest

from jetstream.tools.explain.rules import RULES, rule_of
from natsproto.explain import Note
from tests.rules import read_rules

NOTES = [
    # kind,        label,               rule
    ("info", "INFO ldm", "CONN-5"),
    ("info", "INFO", "CONN-1"),
    ("status", "423 Nats-Pin-Id mismatch", "PULL-12"),
    ("status", "408 Request Timeout", "PULL-9"),
    ("ack", "-NAK", "ACK-5"),
    ("ack", "+ACK", "ACK-2"),
    ("advisory", "max deliveries", ""),
]


@pytest.mark.parametrize(("kind", "label", "rule"), NOTES)
def test_the_first_row_that_fits_wins(kind, label, rule):
    assert rule_of(Note(kind, label, "")) == rule


def test_the_rules_exist():
    assert {rule for _, _, rule in RULES} <= set(read_rules())
