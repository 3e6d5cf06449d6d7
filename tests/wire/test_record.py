from __future__ import annotations

import pytest

from natsproto.wire.record import Record


class Point(Record):
    __slots__ = ("x", "y")

    def __init__(self, x: object, y: object) -> None:
        self.x = x
        self.y = y


class Other(Record):
    __slots__ = ("x", "y")

    def __init__(self, x: object, y: object) -> None:
        self.x = x
        self.y = y


class Empty(Record):
    __slots__ = ()


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (Point(1, "a"), "Point(x=1, y='a')"),
        (Point((1, 2), None), "Point(x=(1, 2), y=None)"),  # a tuple is one value, not two
        (Empty(), "Empty()"),
    ],
)
def test_repr_names_the_fields_in_the_order_of_slots(record, text):
    assert repr(record) == text


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (Point(1, [2]), Point(1, [2]), True),
        (Point(1, 2), Point(1, 3), False),
        (Point(1, 2), Other(1, 2), False),
        (Point(1, 2), (1, 2), False),
        (Empty(), Empty(), True),
        (Empty(), None, False),
    ],
)
def test_equality_is_that_of_class_and_fields(one, two, equal):
    assert (one == two) is equal
    assert (one != two) is not equal


def test_a_record_leaves_comparison_with_strangers_to_them():
    assert Point(1, 2).__eq__((1, 2)) is NotImplemented


def test_a_record_is_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1, 2))


def test_slots_leave_no_room_for_a_misspelt_field():
    with pytest.raises(AttributeError):
        Point(1, 2).z = 3
