"""Reading stored JSON."""

from __future__ import annotations

import pytest

from jetstream.errors import InvalidResponse
from jetstream.pull.groups.stored import number, numbers, objects, read_object, text, texts


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"7", b"{"])
def test_a_value_that_is_not_an_object(data):
    with pytest.raises(InvalidResponse, match="not a JSON object"):
        read_object(data)


def test_fields_may_be_absent_or_null():
    for raw in ({}, {"a": None}):
        found = [read(raw, "a") for read in (text, number, texts, numbers, objects)]
        assert found == ["", 0, [], [], []]
    raw = read_object(b'{"a": "x", "b": 2, "c": ["y"], "d": [3], "e": [{}]}')
    assert (text(raw, "a"), number(raw, "b")) == ("x", 2)
    assert (texts(raw, "c"), numbers(raw, "d"), objects(raw, "e")) == (["y"], [3], [{}])


@pytest.mark.parametrize(
    ("read", "value"),
    [(text, 1), (number, "1"), (number, True), (texts, "x"), (texts, [1]), (objects, [[]])],
)
def test_fields_of_another_type(read, value):
    with pytest.raises(InvalidResponse, match="a of a group is not"):
        read({"a": value}, "a")
