from __future__ import annotations

import pytest

from jetstream.pull.groups.names import PRIORITY_GROUP, elastic_stream, key_of, static_consumer
from natsproto.errors import NatsError


@pytest.mark.rule("GROUP-1", "GROUP-6", "GROUP-7", "GROUP-8")
def test_the_names_of_orbit_go():
    assert key_of("S", "cg") == "S.cg"
    assert static_consumer("cg", "m1") == "cg-m1"
    assert elastic_stream("S", "cg") == "S-cg"
    assert PRIORITY_GROUP == "PCG"


@pytest.mark.parametrize("name", ["", "a.b", "a b", ">"])
def test_names_that_cannot_be_used(name):
    for call in (lambda: key_of("S", name), lambda: key_of(name, "g")):
        with pytest.raises(NatsError):
            call()
    with pytest.raises(NatsError):
        static_consumer("g", name)
