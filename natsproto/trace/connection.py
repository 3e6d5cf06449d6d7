"""TracedConnection: a Connection that passes each of its steps to a sink.

It overrides inputs and outputs, and replaces three parts by others that report first. The lifecycle
reports each change of its state, so states that last for less than an input are seen as well. It
never changes an input or an output. Frames are decoded on their way out by a parser of its own,
because the connection encodes them once and for all.
"""

from __future__ import annotations

import time

from natsproto.connection import Connection
from natsproto.connection.lifecycle import Lifecycle
from natsproto.errors import ProtocolError
from natsproto.events import EventQueue
from natsproto.wire.parser import Parser

from .steps import Step, masked

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from natsproto.connection.bus import Bus
    from natsproto.connection.effects import Effect
    from natsproto.connection.servers import Rng
    from natsproto.connection.traffic import Traffic
    from natsproto.connection.waitable import Waitable
    from natsproto.events import Event
    from natsproto.options import Options
    from natsproto.wire.frames import Frame

    Sink: TypeAlias = Callable[[Step], object]


class TracedConnection(Connection):
    """Calls `sink(step)` for each step (D-TRACE-1). The sink must not use the client.

    A sink that raises is not called again, and its exception is printed (D-TRACE-3).
    """

    __slots__ = ("_clock", "_sent", "_sink")

    def __init__(
        self,
        options: Options,
        *,
        rng: Rng,
        sink: Sink,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sink: Sink | None = sink
        self._clock = clock
        self._sent = Parser(peer="client")
        super().__init__(options, rng=rng)
        self.bus.events = _TracedEvents(self._step)

    def _step(self, kind: str, value: object, source: str = "") -> None:
        sink = self._sink
        if sink is None:
            return
        try:
            sink(Step(self._clock(), kind, value, source))
        except Exception:
            self._sink = None
            import traceback

            traceback.print_exc()

    def _make_lifecycle(self, rng: Rng) -> Lifecycle:
        return _TracedLifecycle(self.bus, self.options, rng, self.traffic, self._step)

    # Inputs

    def connect(self, now: float) -> None:
        """Begin to connect (an input)."""
        self._step("input", "connect")
        super().connect(now)

    def transport_opened(self, now: float) -> None:
        """Report that the transport is open (an input)."""
        self._step("input", "transport_opened")
        self._sent = Parser(peer="client")
        super().transport_opened(now)

    def tls_started(self, now: float) -> None:
        """Report that TLS is established (an input)."""
        self._step("input", "tls_started")
        super().tls_started(now)

    def nonce_signed(
        self,
        now: float,
        signature: bytes = b"",
        key: bytes = b"",
        error: BaseException | None = None,
    ) -> None:
        """Report a signature; an input, without its value."""
        reason = "" if error is None else ": %s" % type(error).__name__
        self._step("input", "nonce_signed%s" % reason)
        super().nonce_signed(now, signature, key, error)

    def receive_data(self, data: bytes, now: float) -> None:
        """Report received bytes; each frame in them is a step."""
        transport = self.transport
        if transport is not None and not isinstance(transport.parser, _TracedParser):
            transport.parser = _TracedParser(transport.parser, self._step)
        super().receive_data(data, now)

    def transport_closed(self, now: float, error: BaseException | None = None) -> None:
        """Report that the transport is lost (an input)."""
        reason = "" if error is None else ": %s" % (str(error) or type(error).__name__)
        self._step("input", "transport_closed%s" % reason)
        super().transport_closed(now, error)

    def handle_timer(self, now: float) -> None:
        """Report the time (an input, if anything is due)."""
        due = self.next_deadline()
        if due is not None and due <= now:
            self._step("input", "handle_timer")
        super().handle_timer(now)

    # Outputs

    def take_effects(self) -> list[Effect]:
        """Take the effects for the adapter; each is a step."""
        effects = super().take_effects()
        for effect in effects:
            self._step("effect", effect)
        return effects

    def data_to_send(self) -> list[bytes]:
        """Take the bytes to write; each frame in them is a step."""
        data = b"".join(self.outbound.frames)  # before a WebSocket wraps them
        if data and self._sink is not None:
            try:
                frames = self._sent.feed(data)
            except ProtocolError as error:
                frames = error.frames
            for frame in frames:
                self._step("out", masked(frame))
        return super().data_to_send()

    def take_ready(self) -> list[Waitable]:
        """Take the waitables that became ready; new events of consumers are steps."""
        ready = super().take_ready()
        for waitable in ready:
            reports = waitable.reports
            if reports is not None and waitable is not self.events:
                for event in reports.events:
                    self._step("event", event, reports.source)
        return ready


class _TracedLifecycle(Lifecycle):
    """Reports changes of the state."""

    __slots__ = ("_step",)

    def __init__(
        self,
        bus: Bus,
        options: Options,
        rng: Rng,
        traffic: Traffic,
        step: Callable[[str, object], None],
    ) -> None:
        super().__init__(bus, options, rng, traffic)
        self._step = step

    def enter(self, what: str) -> None:
        """Change the state; a change is a step."""
        before = self.state
        super().enter(what)
        if self.state != before:
            self._step("state", "%s -> %s" % (before, self.state))


class _TracedParser(Parser):
    """Reports the frames of the parser that it replaces."""

    def __init__(self, parser: Parser, step: Callable[[str, object], None]) -> None:
        self._parser = parser
        self._step = step

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete."""
        try:
            frames = self._parser.feed(data)
        except ProtocolError as error:
            self._report(error.frames)
            raise
        self._report(frames)
        return frames

    def _report(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._step("in", frame)


class _TracedEvents(EventQueue):
    """Reports events when they occur."""

    __slots__ = ("_step",)

    def __init__(self, step: Callable[[str, object], None]) -> None:
        super().__init__()
        self._step = step

    def add(self, event: Event) -> None:
        """Add an event for all readers, and for the log."""
        self._step("event", event)
        super().add(event)
