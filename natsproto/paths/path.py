"""MessagePath: the hops of one message, assembled from the reports.

Reports arrive in any order: a server often reports before the one that it received the message
from. The id of a hop names its parent: "1.2" is the second hop after "1", and "1" is the first one
after the origin, whose id is "".
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.record import Record

from .draw import draw
from .hop import decode_hop
from .steps import error_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .hop import Hop
    from .steps import Egress


class MessagePath(Record):
    """The path of a message through the servers: a tree of hops. str() draws it.

    origin: the hop of the server that the message was sent to; None until it has reported
    hops: all hops, in the order of their reports
    unreadable: payloads that arrived in the place of reports and are not JSON objects
    """

    __slots__ = ("hops", "origin", "unreadable")

    def __init__(self) -> None:
        self.origin: Hop | None = None
        self.hops: list[Hop] = []
        self.unreadable: list[bytes] = []

    @property
    def missing(self) -> list[str]:
        """The ids of the hops that have not reported, although a server announced them."""
        known = {hop.id for hop in self.hops}
        announced = [each for hop in self.hops for each in hop.announced()]
        return sorted({each for each in announced if each not in known})

    @property
    def complete(self) -> bool:
        """Whether the origin and all announced hops have reported (HOP-5)."""
        return self.origin is not None and not self.missing

    @property
    def deliveries(self) -> list[Egress]:
        """The clients that received the message, or would have; see `error` of each."""
        steps = [step for hop in self.hops for step in hop.egresses]
        return [step for step in steps if step.kind == "client"]

    @property
    def errors(self) -> list[str]:
        """The reasons for which the message was rejected, not delivered or not stored."""
        steps = [step for hop in self.hops for step in hop.steps]
        return [error for error in [error_of(step) for step in steps] if error]

    def add(self, payload: bytes) -> Hop | None:
        """Add the payload of a report; return its hop, or None if it cannot be read."""
        try:
            hop = decode_hop(payload)
        except InvalidValue:
            self.unreadable.append(payload)
            return None
        self.hops.append(hop)
        if not hop.id:
            self.origin = hop
        for other in self.hops:  # HOP-4
            if _parent(hop) == other.id and other is not hop:
                other.next.append(hop)
                other.next.sort(key=_place)
            elif _parent(other) == hop.id and other is not hop:
                hop.next.append(other)
        hop.next.sort(key=_place)
        return hop

    def __str__(self) -> str:
        if self.origin is None:
            return "no report of the first server"
        lines = draw(self.origin)
        lines += ["no report of hop %s" % each for each in self.missing]
        return "\n".join(lines)


def _parent(hop: Hop) -> str | None:
    """Return the id of the previous hop; None for the origin."""
    return hop.id.rpartition(".")[0] if hop.id else None


def _place(hop: Hop) -> list[tuple[int, str]]:
    """Return the sort key of an id: numbers by value, anything else after them as text."""
    return [(int(part) if part.isdigit() else 1 << 30, part) for part in hop.id.split(".")]
