"""Ordered consumers of a stream that is deleted and created again at any time.

O1 as in ordered.py, for each life of the stream: once a message of the next life came, none of the
one before comes any more, and the messages of the last life all come, from the first one on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.ordered import OrderedConsuming, OrderedFetching, Ordering
from tests.sim.scenarios import require

if TYPE_CHECKING:
    from jetstream.message import JsMsg
    from jetstream.ordered.api import OrderedConsumer

# Without those in which the API does not answer: twice in a row it is not asked any more.
FAULTS = ["cut", "stall", "crowd", "lost_pull", "deleted", "vanished", "recount", "lost_message"]


class Recreating(Ordering):
    """The part that both modes share."""

    most_consumers = 10  # two more for each time that the stream is recreated

    def begin(self) -> None:
        super().begin()
        self.server.created = 0.0
        self.life = -1  # the one that is being read
        for _ in range(self.rng.choice((1, 1, 2))):
            self.at_best(self.rng.uniform(0.3, 4.0), self._recreate)

    def plan(self, faults: list[str], count: int, span: float) -> None:
        super().plan(FAULTS, count, span)

    def _recreate(self) -> None:
        if not self.server.stream_there or self.finished:
            return
        self.note("the stream is recreated")
        self.last_fault = self.now
        self.server.recreate(self.rng.choice(("409 Consumer Deleted", "")))
        for _ in range(self.rng.randrange(1, 12)):
            self.server.add(b"of life %d" % self.server.life)

    async def _open(self) -> OrderedConsumer:
        ordered = await super()._open()
        self.life = self.server.lives[ordered.name]
        return ordered

    async def handle(self, msg: JsMsg) -> None:
        if msg.data.startswith(b"of life"):
            life = int(msg.data.rpartition(b" ")[2])
            require(life >= self.life, lambda: f"O1: life {life} after {self.life}")
            if life > self.life:
                self.life = life
                self.first = 1
                self.seen = []
        await super().handle(msg)

    @property
    def complete(self) -> bool:
        return self.life == self.server.life and super().complete


class RecreatedConsuming(Recreating, OrderedConsuming):
    """consume(), which is stopped and begun again now and then."""


class RecreatedFetching(Recreating, OrderedFetching):
    """fetch() in a loop, by a caller that is cancelled now and then."""
