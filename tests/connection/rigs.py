"""A lifecycle without a connection: its effects stay on the bus until a test takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from natsproto.connection.bus import Bus
from natsproto.connection.lifecycle import Lifecycle
from natsproto.connection.tokens import Numbers
from natsproto.connection.traffic import Traffic
from natsproto.options import Options
from natsproto.wire.frames import Info, Pong
from tests.connection.support import Script

if TYPE_CHECKING:
    from natsproto.connection.effects import Effect


class Rig:
    """A lifecycle with its traffic and its bus, for one server unless others are named."""

    def __init__(self, *servers: str, **options: Any) -> None:
        checked = Options(servers=[*servers] or "nats://a", shuffle=False, **options)
        self.bus = Bus()
        self.traffic = Traffic(self.bus, checked, Numbers(), Script())
        self.lifecycle = Lifecycle(self.bus, checked, Script(), self.traffic)

    def effects(self) -> list[Effect]:
        effects, self.bus.effects = self.bus.effects, []
        return effects

    def opening(self) -> Rig:
        """Dial and open, so that INFO comes next."""
        self.lifecycle.connect(0.0)
        self.effects()
        self.lifecycle.transport_opened(0.0)
        return self

    def up(self) -> Rig:
        """Connect."""
        self.opening()
        assert self.lifecycle.handle(Info({}), 0.0)
        assert self.lifecycle.handle(Pong(), 0.0)
        self.lifecycle.after(0.0)
        assert self.lifecycle.state == "CONNECTED"
        return self
