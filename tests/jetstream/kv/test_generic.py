"""Generic: at run time a base class like any other."""

from __future__ import annotations

from jetstream.kv.generic import Generic


def test_a_generic_class_is_a_plain_one():
    class Box(Generic[None, None]):
        pass

    assert Box.__mro__ == (Box, object)
