"""Offsets of a streaming query, and the detection of streams that no longer match them.

    {"v": 1, "streams": {"ORDERS": {"next": 42, "created": "2026-01-01T00:00:00Z"}}, "plan": {...}}

`v` is the version of this format: 3 if there are floors, 2 if the plan has cuts, and otherwise 1.
Offsets of a later one are rejected, those without one are older. `next` is the first sequence that
was not read, `created` identifies the stream among others of the same name. `plan` describes how
the batch that ends here is split: plan.py.

Spark requests the initial offset again if it restarts before the first batch has finished. By then
"latest" is another position, and the messages in between would be lost. So the initial offset is
marked (`"initial": true`), the end of a batch that starts there contains it (`"init"`), and a batch
that starts at a marked offset is read from the one that its end contains.

If subjects start at different sequences, `next` begins with the lowest of them, and `floors` has
those that are higher, until all messages before them are read:

    "floors": {"ORDERS": {"orders.eu.>": 42}}
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from jetstream.errors import JetStreamError
from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

from .plan import Plan, read_plan

if TYPE_CHECKING:
    from .queries import StreamSnapshot

LOG = logging.getLogger("jetstream.spark")
VERSION = 1
# Of offsets with something that earlier versions of this package ignore.
_WITH_CUTS = 2
_WITH_FLOORS = 3

Places = dict[str, "Place"]
Floors = dict[str, dict[str, int]]  # the first sequence of subjects, by stream


class DataLost(JetStreamError):
    """Messages were removed before they were read; failOnDataLoss=false continues without them."""


class Place:
    """A position in a stream."""

    __slots__ = ("created", "next")

    def __init__(self, next: int, created: str) -> None:
        self.next: int = next
        self.created: str = created

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Place):
            return (self.next, self.created) == (other.next, other.created)
        return NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Place(%d, %r)" % (self.next, self.created)


_ODD = (KeyError, TypeError, ValueError, AttributeError)


def read_places(offset: Any, key: str = "streams") -> Places:
    """Return the places in an offset; raise InvalidValue if this reader did not write it."""
    check_version(offset, _WITH_FLOORS)
    try:
        return {
            name: Place(_sequence(place["next"]), str(place["created"]))
            for name, place in offset[key].items()
        }
    except _ODD:
        raise _not_ours(offset) from None


def planned(offset: dict[str, Any]) -> Plan | None:
    """Return the plan of the batch that ends here; None in an offset of an older version."""
    if "plan" not in offset:
        return None
    try:
        return read_plan(offset["plan"])
    except _ODD:
        raise _not_ours(offset) from None


def check_version(offset: Any, newest: int) -> None:
    """Reject an offset that a later version of this package wrote: it may mean something else."""
    try:
        version: Any = offset.get("v", 0)
    except AttributeError:
        return  # not a valid offset, as its reader will find out
    if type(version) is not int or version > newest:
        raise InvalidValue(
            "offset in the checkpoint has version %s, and this package reads up to %d: run the"
            " query with the version of natsproto that wrote it, or a later one"
            % (shorten(version), newest)
        )


def _not_ours(offset: Any) -> InvalidValue:
    return InvalidValue(
        "offset %s in the checkpoint is not one of mode=sequence: another mode or source wrote it,"
        " or it was changed; use another checkpoint" % shorten(offset)
    )


def _sequence(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError
    return value


def write_places(places: Places) -> dict[str, dict[str, Any]]:
    """Return the places as JSON fields."""
    return {name: {"next": place.next, "created": place.created} for name, place in places.items()}


def read_floors(offset: Any, created: dict[str, str]) -> Floors:
    """Return the subjects that start after this offset; raise InvalidValue if it is not ours.

    created  when each stream was created: floors do not apply to one that was recreated
    """
    try:
        return {
            name: {str(subject): _sequence(first) for subject, first in floors.items()}
            for name, floors in offset.get("floors", {}).items()
            if offset["streams"][name]["created"] == created.get(name)
        }
    except _ODD:
        raise _not_ours(offset) from None


def _add_floors(offset: dict[str, Any], places: Places, floors: Floors) -> dict[str, Any]:
    """Add the floors that are still ahead."""
    ahead = {
        name: {subject: first for subject, first in known.items() if first > places[name].next}
        for name, known in floors.items()
    }
    ahead = {name: known for name, known in ahead.items() if known}
    if ahead:
        offset.update({"v": _WITH_FLOORS, "floors": ahead})
    return offset


def initial_offset(places: Places, floors: Floors | None = None) -> dict[str, Any]:
    """Return the marked offset of a query that starts here."""
    offset = {"v": VERSION, "streams": write_places(places), "initial": True}
    return _add_floors(offset, places, floors or {})


def is_initial(offset: dict[str, Any]) -> bool:
    """Return whether an offset is marked as initial."""
    return bool(offset.get("initial"))


def end_offset(places: Places, start: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the end of a batch that starts at `start` and is split by this plan."""
    offset: dict[str, Any] = {"v": VERSION, "streams": write_places(places)}
    offset["plan"] = plan.encode()
    if plan.cuts:
        offset["v"] = _WITH_CUTS
    if is_initial(start):
        offset["init"] = start["streams"]
    created = {name: place.created for name, place in places.items()}
    return _add_floors(offset, places, read_floors(start, created))


def start_places(start: dict[str, Any], end: dict[str, Any]) -> Places:
    """Return the start of the batch between these offsets."""
    if is_initial(start) and "init" in end:
        return read_places(end, "init")
    return read_places(start)


def resumed(offset: dict[str, Any], snapshots: dict[str, StreamSnapshot]) -> dict[str, Any]:
    """Return the offset as one of the streams that exist now, with the same sequences."""
    result = dict(offset)
    for key in ("streams", "init"):
        if key in offset:
            places = read_places(offset, key)
            for name in places.keys() & snapshots.keys():
                places[name].created = snapshots[name].created
            result[key] = write_places(places)
    return result


def first_to_read(
    place: Place, snapshot: StreamSnapshot, fail: bool, fail_if_recreated: bool
) -> int:
    """Return the first sequence to read at this place; raise DataLost, or warn, if it is gone."""
    if place.created != snapshot.created:
        report_data_loss(
            "stream %s was recreated at %s; the offset is sequence %d of the stream of %s"
            % (snapshot.name, snapshot.created, place.next, place.created),
            fail_if_recreated,
            "onRecreate=restart reads it from its first message, onRecreate=resume continues at the"
            " same sequence",
        )
        return snapshot.first
    if place.next > snapshot.next:
        report_data_loss(
            "stream %s ends before sequence %d, and was read up to %d"
            % (snapshot.name, snapshot.next, place.next - 1),
            fail,
        )
        return snapshot.next  # its next messages get these sequences again
    if place.next < snapshot.first:
        report_data_loss(describe_gap(place.next, snapshot.first - 1, snapshot.name), fail)
        return snapshot.first
    return place.next


def report_deleted_stream(name: str, fail: bool) -> None:
    """Raise DataLost, or warn, because a stream of the query no longer exists."""
    report_data_loss("stream %s was deleted, or no longer matches streamPattern" % name, fail)


def describe_gap(first: int, last: int, stream: str) -> str:
    """Describe messages that were removed."""
    return "messages %d to %d of stream %s were removed" % (first, last, stream)


def report_data_loss(
    what: str, fail: bool, remedy: str = "failOnDataLoss=false continues without them"
) -> None:
    """Raise DataLost, or log a warning."""
    if fail:
        raise DataLost("%s (option %s)" % (what, remedy))
    LOG.warning("data lost: %s", what)
