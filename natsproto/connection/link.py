"""Link: the life of an open transport, from PONG to its loss.

Frames go to those they concern: messages to their subscriptions, PONGs to whoever waits for one,
-ERR to what it is about. A server that is about to stop (a lame duck) is left in good time:

    INFO ldm -> a random pause -> PING, and publishes are held back -> PONG -> hang up, dial another
"""

from __future__ import annotations

from natsproto.errors import ConnectionLost, NatsError, PermissionDenied, ProtocolError
from natsproto.events import Connected, Disconnected, Discovered, LameDuck, ServerError
from natsproto.wire import encode
from natsproto.wire.frames import Err, Info, Msg, Ping, Pong

from . import server_errors as complaints
from .handshake import Handshake
from .states import ACCEPTED, CONNECTED, GREETING, HANG_UP, OPENING, SECURING
from .waitable import Fence, Request, Waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.options import Options
    from natsproto.wire.frames import Frame
    from natsproto.wire.parser import Parser

    from .drain import Drain
    from .servers import Rng
    from .waitable import Receiver

# A connection that did not last that long is no reason to start counting attempts anew: a server
# that accepts us and throws us out at once would be dialled without any pause (RECON-2).
_STABLE = 1.0
# Clients of a lame duck leave within this time, each at a random moment of it.
_LAME_DUCK_SPREAD = 1.0
# Bytes of PONGs that may wait. More than that means: PINGs come, and nobody reads the answers.
_MAX_OWED = 1024 * 1024


class Link(Handshake):
    """What a connected client does; `Connection` adds its inputs and outputs."""

    def __init__(self, options: Options, *, rng: Rng) -> None:
        super().__init__(options, rng=rng)
        self._connected_at = 0.0
        self._short_lives = 0  # connections in a row that did not last
        self._lame = False  # this server has said so
        self._mover = Waitable()  # when to leave a lame duck
        self._leaving: Request | None = None  # the fence before leaving it
        self._drain: Drain | None = None
        self._closing: Drain | None = None  # the graceful close

    def _begin(self, now: float) -> None:
        """Connected. Not before the whole read is looked at: a refusal may come right behind PONG.

        That is CONN-8: to a JWT that has expired the server says PONG, INFO and -ERR in one breath.
        """
        self._enter(ACCEPTED)
        self._set_alarm(now + self.options.ping_interval)
        self._connected_at = now
        self._lame = False
        self._errors = []
        self.pool.connected(self._dialled)
        self._tell(Connected(str(self._dialled.url), self.stats.connects > 0))
        self.stats.connects += 1
        if self.opened.finish():
            self._ready.append(self.opened)
        self._discover(now)
        self._go_online(now)

    # Frames

    def _route(self, frames: list[Frame], parser: Parser, now: float) -> None:
        subs = self._subs
        connected = self.state == CONNECTED
        # What follows a message for the same subscription is delivered together: 0.25 us each with
        # the queue's part, not 0.55.
        run: list[Msg] = []
        sid = -1
        count = 0
        for frame in frames:
            if isinstance(frame, Msg) and connected:
                count += 1
                if frame.sid == sid:
                    run.append(frame)
                    continue
                if run:
                    self._deliver_run(run, now)
                    run = []
                sid = frame.sid
                receiver = subs.get(sid)
                if receiver is not None:  # None: it was on its way when we unsubscribed
                    receiver.received += 1
                    self._delivered(receiver, receiver.receive(frame, now))
            else:
                if run:
                    self._deliver_run(run, now)
                    run = []
                self._handle(frame, now)
                if self._parser is not parser:
                    break  # hung up
        if run:
            self._deliver_run(run, now)
        self.stats.in_msgs += count

    def _deliver_run(self, msgs: list[Msg], now: float) -> None:
        receiver = self._subs.get(msgs[0].sid)
        if receiver is not None:
            if receiver.after:
                msgs = msgs[: receiver.after - receiver.received]
            receiver.received += len(msgs)
            self._delivered(receiver, receiver.receive_all(msgs, now))

    def _delivered(self, receiver: Receiver, new: bool) -> None:
        if new:
            self._ready.append(receiver)
        if receiver.deadline is not None:
            self._timers.arm(receiver)
        if receiver.received == receiver.after:
            self._end(receiver)

    def _unwrap(self, data: bytes) -> bytes:
        """The NATS bytes in what came over a WebSocket."""
        assert self._websocket is not None
        data = self._websocket.receive(data)
        answer = self._websocket.take_output()
        if answer:
            self._websocket_bytes.append(answer)
            self._owed += len(answer)
        return data

    def _handle(self, frame: Frame, now: float) -> None:
        if self.state in (OPENING, SECURING):
            self._early(frame, now)
        elif isinstance(frame, Ping):
            self._outbox.add(encode.pong())
            self._owed += len(encode.pong())
        elif isinstance(frame, Pong):
            self._pong()
        elif isinstance(frame, Err):
            self._complained(frame.text, now)
        elif isinstance(frame, Info):
            self._learn(frame)
            if self.state == CONNECTED:
                self._discover(now)
        elif isinstance(frame, Msg):
            # CONN-3: on this transport nothing is subscribed yet.
            self._fail(ProtocolError("a message before PONG", 0, frame.raw_subject[:64]), now)

    def _pong(self) -> None:
        if self.state == GREETING:
            self._welcomed = True
        elif self._pings:
            request, self._confirmed = self._pings.pop(0)
            if request is None:
                return  # it was to keep alive
            if isinstance(request, Fence):
                self._end_all(request.receivers)
            if request is self._leaving and any(isinstance(each, Fence) for each, _ in self._pings):
                self._send_ping(request)  # LDM-5: behind the drains that began meanwhile
            elif request.finish():
                self._ready.append(request)

    def _complained(self, text: str, now: float) -> None:
        text = complaints.short(text)
        error = complaints.as_error(text)
        kind = complaints.meaning(text)
        if kind == complaints.REFUSED:
            self._refusal = text
        if kind in (complaints.ENDS, complaints.REFUSED):
            self._break(error, now)
            return
        self._tell(ServerError(error))
        if self.state == GREETING:
            self._complaint = error  # ERR-4: should the transport be closed now, this is why
        if isinstance(error, PermissionDenied):
            if complaints.denies_publish(text):
                self._deny_request(error)
            else:
                self._deny(error, complaints.denied_sid(text))

    def _overdue(self) -> NatsError | None:
        """Why to hang up though nothing was wrong with what came."""
        if self._websocket is not None and self._websocket.closed:
            return ConnectionLost("server closed the WebSocket")
        if self._owed > _MAX_OWED:  # PING-5
            return ConnectionLost("server sends PINGs and reads no PONG")
        return None

    # Lame ducks, and other members of the cluster

    def _discover(self, now: float) -> None:
        assert self.info is not None
        websocket = self._dialled.url.is_websocket
        # To a WebSocket a server tells the addresses of WebSockets, as connect_urls.
        urls = (websocket and self.info.ws_connect_urls) or self.info.connect_urls
        new = self.pool.discover(urls, self._dialled)
        if new:
            self._tell(Discovered([str(url) for url in new]))
        if not self.info.ldm:
            return
        if not self._lame:
            self._lame = True
            self._tell(LameDuck(str(self._dialled.url)))
        if self._mover.deadline is None and self._leaving is None and self._may_leave():
            # LDM-2: not all clients at the same moment.
            self._mover.deadline = now + self._rng.random() * _LAME_DUCK_SPREAD
            self._timers.arm(self._mover)

    def _may_leave(self) -> bool:
        staying = self._drain is not None or self._closing is not None
        return self.pool.others() and self.options.max_reconnects != 0 and not staying

    def _leave(self, now: float) -> None:
        """Leave a lame duck: hold publishes back, hang up when it has seen the rest."""
        self._mover.deadline = None
        if self.state == CONNECTED and self._may_leave():
            self._leaving = Request("move", now + self.options.connect_timeout)
            self._timers.arm(self._leaving)
            self._send_ping(self._leaving)
            self._holding = True

    # The end of it

    def _break(self, error: NatsError, now: float) -> None:
        if self.state == CONNECTED:
            self._lose(error, now)
        else:
            self._fail(error, now)

    def _lose(self, error: NatsError | None, now: float, *, hangup: bool = True) -> None:
        """The connection is gone; None: on purpose."""
        server = self._dialled
        self._drop_transport(hangup)
        if hangup:
            self._enter(HANG_UP)
        self._mover.deadline = None
        self._leaving = None
        self._go_offline(now)
        self._lose_sent(closing=self._drain is not None or self._closing is not None)
        self._tell(Disconnected(str(server.url), error))
        if now - self._connected_at >= _STABLE:
            self._short_lives = 0
            server.auth_error = ""
        self._attempts = self._short_lives
        self._short_lives += 1
        if error is not None:
            self._errors = [(str(server.url), error)]
        self._go_on(error, now)
