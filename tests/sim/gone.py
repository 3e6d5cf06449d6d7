"""consume() of a consumer that is deleted while no pull is open, or without a status.

    full    it is deleted when the server has no pull: the buffer is full, or a pause is on
    away    it is deleted while the connection is down
    lost    it is deleted, and the pulls that are open get no status

Later pulls are answered with 503, or by servers before 2.11 not at all; so are those before it is
gone, while there is no leader. The iteration must end with ConsumerNotFound, soon, after all that
arrived, and by nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors.api import ConsumerNotFound
from jetstream.testing.sim.releases import find_release
from tests.sim.scenarios import Consuming, require

if TYPE_CHECKING:
    from jetstream.pull.consume import Consume

# Until the last of three growing intervals between lookups, and the lookup itself.
LONGEST = 40.0


class ConsumingGone(Consuming):
    deletes = 0.0
    patience = 60.0
    gone_at: float | None = None

    def make_model(self, **config: Any) -> Any:
        model = super().make_model(**config)
        if self.rng.random() < 0.3:
            model.release = find_release("2.10")
        return model

    def set_up(self) -> None:
        super().set_up()
        self.stop_after = None
        self.handling = self.rng.choice((self.handling, 1.0))
        self.way = self.rng.choice(("full", "away", "lost"))
        self.at(self.rng.uniform(0.0, 4.0), self._go)

    def _go(self) -> None:
        if self.way == "full" and (self.model.waiting or self.model.limbo or self.in_flight):
            self.at(self.now + 0.02, self._go)
            if self.now > 8.0:
                self.way = "lost"
            return
        if self.way == "away":
            self.fault_cut(0.3)
        self.note(f"the consumer is gone: {self.way}")
        self.gone_at = self.last_fault = self.now
        self.left_to_add = 0
        self.silent = self.silent or self.way == "lost" or not self.model.release.answers_absent
        self.model.vanish()

    @property
    def complete(self) -> bool:
        return False  # it ends by the error alone

    def check(self) -> None:
        super().check()
        if self.gone_at is not None and not self.iterating.done and not self.sick:
            since = max(self.gone_at, self.last_fault)
            limit = LONGEST + self.count * self.handling
            require(self.now - since < limit, lambda: f"I4: gone, and no error after {limit} s")

    def _check_server(self, buffered: int) -> None:
        if self.gone_at is None:
            super()._check_server(buffered)

    def _check_end(self, machine: Consume) -> None:
        if not self.iterating.done:
            return
        error = self.iterating.error
        require(isinstance(error, ConsumerNotFound), lambda: f"I10: {error!r}")
        require(self.gone_at is not None, "I10: it is there, and was said to be gone")
        require(not machine.pending(), "I8: the error came before the messages")
        self.connection.close(self.now)
        self.carry_out()
        self.finished = True


class ConsumingGoneBytes(ConsumingGone):
    by_bytes = True
