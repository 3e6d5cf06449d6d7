"""Subscriptions: the receivers of messages by subscription id, across reconnects.

A subscription survives the transport: it is sent again after each handshake (RECON-3). It ends by
`unsubscribe`, at its message limit, when the server denies it, by a drain, or with the connection.

    input         active                              draining (UNSUB is sent, a fence follows)
    deliver       to the receiver; ends at the limit  to the receiver
    unsubscribe   UNSUB; ends now or at the limit     UNSUB; ends
    connected     SUB, and UNSUB with the rest of     -
                  the limit
    disconnected  waits for the next connection       ends
    end           ends                                ends

Delivery is the hot path: consecutive messages of one subscription are delivered together.
"""

from __future__ import annotations

from natsproto.errors import NatsError, PermissionDenied
from natsproto.events import SlowConsumer
from natsproto.wire import encode, subjects
from natsproto.wire import text as _text
from natsproto.wire.frames import Msg

from .effects import Drop, Poke, Publish, Resubscribe, Wake

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsproto.wire.frames import Frame

    from .bus import Bus
    from .effects import MachineEffect
    from .outbound import Outbound
    from .receiver import Receiver
    from .tokens import Tokens


class Subscriptions:
    """The subscriptions of one connection."""

    __slots__ = ("_bus", "_last_sid", "_outbound", "busy", "by_sid", "dropping", "slow", "tokens")

    def __init__(self, bus: Bus, outbound: Outbound, tokens: Tokens) -> None:
        self._bus = bus
        self._outbound = outbound
        self._last_sid = 0
        self.tokens: Tokens = tokens
        self.by_sid: dict[int, Receiver] = {}
        #: Receivers with effects, which are applied at the end of the input.
        self.busy: list[Receiver] = []
        #: Receivers that dropped a message since the last report, once for each message.
        self.dropping: list[Receiver] = []
        #: The ids of subscriptions that have dropped a message, until they end.
        self.slow: set[int] = set()

    def receivers(self) -> list[Receiver]:
        """Return all of them by ascending id; a dict has no order on MicroPython."""
        return [self.by_sid[sid] for sid in sorted(self.by_sid)]

    # Commands

    def subscribe(self, subject: str, receiver: Receiver, *, queue: str = "") -> int:
        """Deliver the messages of the subject to the receiver; return the subscription's id."""
        receiver.subject = subjects.check_subscribe(subject)  # D-SUB-8
        receiver.queue = subjects.check_queue(queue) if queue else b""
        self._bus.check_open()
        return self.add(receiver)

    def add(self, receiver: Receiver) -> int:
        """Subscribe a receiver whose subject and queue are set and checked."""
        self._last_sid += 1  # D-SUB-1
        receiver.sid = self._last_sid
        receiver.tokens = self.tokens
        self.by_sid[receiver.sid] = receiver
        if self._bus.online:
            self._outbound.add(self._sub(receiver))
        return receiver.sid

    def unsubscribe(self, sid: int, *, after: int = 0) -> None:
        """End the subscription now, or after `after` messages in total, unless it has ended."""
        encode.unsub(sid, after=after)  # rejects a value that could never be sent
        receiver = self.by_sid.get(sid)
        if receiver is None:
            return
        online = self._bus.online
        if after > receiver.received:
            receiver.max_received = after
            if online:
                self._outbound.add(encode.unsub(sid, after=after - receiver.received_before))
            return
        if online:
            self._outbound.add(encode.unsub(sid))
        self.end(receiver)

    def apply(self, receiver: Receiver) -> None:
        """Apply the effects of a receiver, and arm its deadline."""
        while receiver.effects:  # an effect that cannot be sent, or the end, may cause others
            for effect in receiver.take_effects():
                if isinstance(effect, Publish):
                    self._publish(effect, receiver)
                else:
                    self._apply(effect, receiver)
        self._bus.timers.arm(receiver)

    def _publish(self, effect: Publish, receiver: Receiver) -> None:
        # Without a connection nothing is sent; the machine repeats it when it is connected.
        if not self._outbound.holding:
            try:
                self._outbound.send(effect.subject, effect.data, effect.reply, effect.block)
            except NatsError as error:
                receiver.unsent(effect, error)

    def _apply(self, effect: MachineEffect, receiver: Receiver) -> None:
        if isinstance(effect, Wake):
            self._bus.ready += effect.waitables
        elif isinstance(effect, Poke):
            self.apply(effect.receiver)
        elif isinstance(effect, Drop):
            self.dropping.append(receiver)
        elif receiver.sid in self.by_sid:
            if not isinstance(effect, Resubscribe):
                self.unsubscribe(receiver.sid)
            elif self._bus.online:  # D-SUB-9
                self._outbound.add(encode.unsub(receiver.sid) + self._sub(receiver))

    def collect(self, receiver: Receiver) -> None:
        """Have the effects of a receiver applied at the end of the input, if it has any."""
        if receiver.effects:
            self.busy.append(receiver)

    def apply_all(self) -> None:
        """Apply the effects of every receiver that has any."""
        while self.busy:
            self.apply(self.busy.pop())

    def drain(self, receivers: list[Receiver]) -> None:
        """Unsubscribe these, but keep delivering to them: they end at the fence that follows."""
        for receiver in receivers:
            if receiver.sid in self.by_sid:
                receiver.draining = True
                self._outbound.add(encode.unsub(receiver.sid))

    def end(self, receiver: Receiver, error: NatsError | None = None) -> None:
        """End a subscription without notifying the server."""
        self.by_sid.pop(receiver.sid, None)
        self.slow.discard(receiver.sid)
        if receiver.end(error):
            self._bus.ready.append(receiver)
        self.collect(receiver)

    def end_all(self, receivers: list[Receiver], error: NatsError | None = None) -> None:
        """End all of these."""
        for receiver in receivers:
            self.end(receiver, error)

    # Messages

    def deliver(self, frames: Iterator[Frame], now: float) -> Frame | None:
        """Deliver messages; return the first frame that is not a message, None at the end."""
        by_sid = self.by_sid
        ready = self._bus.ready
        # Messages that follow one for the same subscription are delivered together: 0.25 us each
        # with the queue's part, not 0.55.
        run: list[Msg] = []
        sid = -1
        count = 0
        other: Frame | None = None
        for frame in frames:
            if not isinstance(frame, Msg):
                other = frame
                break
            if frame.sid == sid:
                run.append(frame)
                continue
            if run:
                count += len(run)
                self._deliver_run(run, now)
                run = []
            count += 1
            sid = frame.sid
            receiver = by_sid.get(sid)
            if receiver is None:
                continue  # it was on its way when we unsubscribed (SUB-4)
            receiver.received += 1
            new = receiver.receive(frame, now)
            if (
                receiver.effects
                or receiver.max_received
                or (
                    receiver.deadline is not None
                    and (receiver.armed is None or receiver.armed > receiver.deadline)
                )
            ):
                self._delivered(receiver, new)
            elif new:
                ready.append(receiver)  # as _delivered, without two calls: 0.1 us less
        if run:
            count += len(run)
            self._deliver_run(run, now)
        self._outbound.stats.in_msgs += count
        return other

    def _deliver_run(self, msgs: list[Msg], now: float) -> None:
        receiver = self.by_sid.get(msgs[0].sid)
        if receiver is not None:
            if receiver.max_received:
                msgs = msgs[: receiver.max_received - receiver.received]
            receiver.received += len(msgs)
            self._delivered(receiver, receiver.receive_all(msgs, now))

    def _delivered(self, receiver: Receiver, new: bool) -> None:
        if new:
            self._bus.ready.append(receiver)
        if receiver.deadline is not None:
            self._bus.timers.arm(receiver)
        if receiver.effects:
            self.busy.append(receiver)
        if receiver.received == receiver.max_received:  # SUB-3
            self.end(receiver)

    def report_drops(self) -> None:
        """Emit a SlowConsumer for each subscription that dropped messages since the last call."""
        drops: dict[int, int] = {}
        for receiver in self.dropping:
            drops[receiver.sid] = drops.get(receiver.sid, 0) + 1
        for receiver in self.dropping:
            dropped = drops.pop(receiver.sid, 0)
            if dropped:
                self._outbound.stats.dropped += dropped
                if receiver.sid in self.by_sid:
                    self.slow.add(receiver.sid)
                subject = _text.decode(receiver.subject)
                self._bus.emit(SlowConsumer(subject, receiver.sid, dropped))  # D-SUB-6
        self.dropping.clear()

    # Inputs about the connection

    def connected(self, now: float) -> None:  # RECON-4
        """Subscribe again on a new transport."""
        receivers = self.receivers()
        frames: list[bytes] = []
        for receiver in receivers:
            frames.append(self._sub(receiver))
            if receiver.max_received:
                left = receiver.max_received - receiver.received  # SUB-2
                frames.append(encode.unsub(receiver.sid, after=left))
        if frames:
            self._outbound.add(b"".join(frames))
        for receiver in receivers:
            receiver.connected(now)
            if receiver.deadline is not None:
                self._bus.timers.arm(receiver)
            if receiver.effects:
                self.busy.append(receiver)

    def _sub(self, receiver: Receiver) -> bytes:
        """Return the SUB of a receiver, which is about to be sent."""
        # The server counts from this SUB on; so does the maximum of UNSUB.
        receiver.received_before = receiver.received
        group = b" " + receiver.queue if receiver.queue else b""
        return b"SUB %s%s %d\r\n" % (receiver.subject, group, receiver.sid)

    def disconnected(self, now: float) -> None:
        """End those that were draining, and notify the others: the transport is lost."""
        self.end_all([each for each in self.receivers() if each.draining])  # D-DRAIN-5
        for receiver in self.receivers():
            receiver.disconnected(now)
            if receiver.effects:
                self.busy.append(receiver)

    def deny(self, error: PermissionDenied, sid: int) -> None:
        """End the subscription that the server denied, found by id or subject and queue (ERR-5)."""
        name = (_text.encode(error.subject), _text.encode(error.queue))
        for receiver in self.receivers():
            if receiver.sid == sid or (not sid and (receiver.subject, receiver.queue) == name):
                self.end(receiver, error)
                break
