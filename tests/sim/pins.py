"""A model of a consumer that pins clients (ADR-42), and consume() in its priority group.

P1   what pulls name as their pin is one that the server gave, and the last one that the client saw
P2   being pinned and being pinned no more are told in turn
and I1 to I14 of scenarios.py. Somebody else may be pinned for a while, or nobody; then the pulls of
this client wait, or are refused with 423.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.events import Pinned, Unpinned
from jetstream.testing.sim.pull_model import Model, Request, Stored
from natsproto.testing.sim.peer import Peer
from tests.sim.scenarios import Consuming, require

if TYPE_CHECKING:
    from jetstream.testing.sim.pull_model import Clock

RIVAL = "R" * 22


class PinningModel(Model):
    """A model whose `pin` is the id of the pinned client; "": no client is pinned."""

    def __init__(self, clock: Clock, name: str = "S", **config: Any) -> None:
        super().__init__(clock, name, **config)
        self.pin = ""
        self.priority_timeout: float = config.get("priority_timeout", 120.0)
        self.issued: list[str] = []
        self._names: list[str] = config.get("pins", [])
        self._silent_at = 0.0
        self._ids: dict[bytes, str] = {}  # what waiting pulls name, by their reply subjects

    def pull(self, peer: Peer | None, reply: bytes, data: bytes) -> None:
        name = self._ids[reply] = json.loads(data).get("id", "")
        if name and name == self.pin:
            self._used()
        super().pull(peer, reply, data)

    def _refusal(self, request: Request, body: dict[str, Any]) -> str | None:
        if "group" not in body:
            return "400 Bad Request - Priority Group missing"
        if self.pin and body.get("id", self.pin) != self.pin:
            return "423 Nats-Pin-Id mismatch"
        return super()._refusal(request, body)

    def pump(self) -> None:
        while self.waiting and self.leader and not self.frozen:
            message = self._deliverable()
            request = None if message is None else self._chosen()
            if message is None or request is None:
                return
            self._serve(request, message)

    def _chosen(self) -> Request | None:
        """The first waiting pull of the pinned client; without one, the first that names none."""
        for request in list(self.waiting):
            name = self._ids[request.reply]
            if not self._interest(request):
                self.waiting.remove(request)
            elif name and name != self.pin:
                self.waiting.remove(request)
                self._end(request, "423 Nats-Wrong-Pin-Id", pending=True)
            elif name or not self.pin:
                self.waiting.remove(request)
                return request
        return None

    def _serve(self, request: Request, message: Stored) -> None:
        brought = request.brought
        before = self.pin
        if not before:
            self.pin = self._names[0] if self._names else f"P{len(self.issued):021d}"
        super()._serve(request, message)
        if request.brought == brought:
            self.pin = before  # it did not fit: nobody is pinned by that
            return
        self._ids[request.reply] = self.pin
        if not before:
            self.issued.append(self.pin)
            self._names = self._names[1:]
        self._used()

    def _used(self) -> None:
        """Note that the client with the pin is active, and restart its timeout."""
        self._silent_at = self._clock.now + self.priority_timeout
        self._clock.at(self._silent_at, self._look_for_it)

    def _look_for_it(self) -> None:
        if self.pin != RIVAL and self._clock.now >= self._silent_at:
            self.unpin()

    def _delivered_block(self, message: Stored) -> bytes | None:
        # Measured: it is the last line, and was not there yet when the bytes were counted.
        before = b"NATS/1.0\r\n" if message.block is None else message.block[:-2]
        return b"%sNats-Pin-Id: %s\r\n\r\n" % (before, self.pin.encode())

    def unpin(self) -> None:
        self.pin = ""
        self.pump()


class ConsumingPinned(Consuming):
    """consume() of the group A."""

    pinned = True
    faults = ("rival", "unpin")
    model: PinningModel

    def make_model(self, **config: Any) -> Model:
        self.by_bytes = self.rng.random() < 0.3
        self.priority = {"group": "A"}
        self.last_told: type | None = None
        return PinningModel(self, priority_timeout=5.0, **config)

    def fault_rival(self, seconds: float) -> None:
        """Another client is pinned for a while, and takes nothing."""
        if self.model.pin != RIVAL:
            self.model.pin = RIVAL
            self._sick(seconds, self._leave)

    def fault_unpin(self, seconds: float) -> None:
        if self.model.pin != RIVAL:
            self.model.unpin()

    def _leave(self) -> None:
        self.model.unpin()

    def sent(self, data: bytes) -> None:
        super().sent(data)
        at = data.find(b'"id":"')
        if at >= 0:
            name = data[at + 6 : data.find(b'"', at + 6)].decode()
            require(name in self.model.issued, lambda: f"P1: {name} was never given")

    def check(self) -> None:
        if self.messages is not None:
            for event in self.machine.events.items[self.told :]:
                if isinstance(event, (Pinned, Unpinned)):
                    turn = type(event) is not self.last_told or isinstance(event, Pinned)
                    require(turn, "P2: unpinned twice")
                    self.last_told = type(event)
        super().check()
