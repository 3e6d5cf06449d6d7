"""The second pane: a connection that a visitor drives by hand, input by input."""

from __future__ import annotations

import json

from natsproto.connection import states
from natsproto.errors import NatsError
from natsproto.options import Options
from natsproto.testing.sim.rng import Rng
from natsproto.trace.connection import TracedConnection

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.connection.waitable import Request
    from natsproto.trace.steps import Step

#: What the server sends: the text of the button, and the bytes.
SERVER = [
    ("INFO", b'INFO {"server_id":"S","version":"2.15.1","headers":true,"max_payload":1048576}\r\n'),
    ("INFO tls", b'INFO {"server_id":"S","tls_required":true,"max_payload":1048576}\r\n'),
    ("INFO ldm", b'INFO {"server_id":"S","ldm":true,"max_payload":1048576}\r\n'),
    ("PONG", b"PONG\r\n"),
    ("PING", b"PING\r\n"),
    ("MSG", b"MSG greet.ada 1 5\r\nhello\r\n"),
    ("-ERR", b"-ERR 'Stale Connection'\r\n"),
    ("garbage", b"GARBAGE\r\n"),
]
_NAMES = [name for name, _ in SERVER]
_INPUTS = ("connect", "transport_opened", "tls_started", "nonce_signed", "transport_closed")


class Lifecycle:
    """One connection, its clock, and the steps since the last action."""

    def __init__(self) -> None:
        self.now: float = 0.0
        self._steps: list[Step] = []
        options = Options(
            servers=["nats://a:4222", "nats://b:4222"],
            user="ada",
            password="secret",
            shuffle=False,
            max_reconnects=-1,
            reconnect_wait=1.0,
            reconnect_jitter=0.0,
            ping_interval=10.0,
        )
        self.connection: TracedConnection = TracedConnection(
            options, rng=Rng(1), sink=self._steps.append, clock=self._clock
        )
        self._mailbox = self.connection.mailbox(10, 10_000)
        self._requests: list[Request] = []

    def _clock(self) -> float:
        return self.now

    def do(self, action: str) -> str:
        """Perform an action, and return everything that it led to."""
        before = self.connection.state
        self._steps.clear()
        error = ""
        try:
            self._perform(action)
        except NatsError as problem:
            error = "%s: %s" % (type(problem).__name__, problem)
        self.connection.take_effects()
        self.connection.data_to_send()
        self.connection.take_ready()
        deadline = self.connection.next_deadline()
        result: dict[str, Any] = {
            "now": self.now,
            "before": before,
            "state": self.connection.state,
            "error": error,
            "deadline": None if deadline is None else max(0.0, deadline - self.now),
            "steps": [{"kind": step.kind, "text": step.text} for step in self._steps],
            "legal": self._legal(),
            "mailbox": self._mailbox.pending(),
            "requests": [_outcome(request) for request in self._requests],
        }
        return json.dumps(result)

    def _perform(self, action: str) -> None:
        connection, now = self.connection, self.now
        if action.startswith("+"):
            self.now += float(action[1:])
            connection.handle_timer(self.now)
        elif action in _NAMES:
            connection.receive_data(SERVER[_NAMES.index(action)][1], now)
        elif action in _INPUTS:
            getattr(connection, action)(now)
        elif action == "subscribe":
            connection.subscribe("greet.*", self._mailbox)
        elif action == "publish":
            connection.publish("greet.bob", b"hi")
        elif action == "request":
            self._requests.append(connection.start_request("time", b"?", deadline=now + 2.0))
        elif action == "close":
            connection.close(now)

    def _legal(self) -> list[str]:
        state = self.connection.state
        return [each for each in states.INPUTS if (state, each) in states.TRANSITIONS]


def _outcome(request: Request) -> str:
    if not request.done:
        return "open"
    return "answered" if request.error is None else str(request.error)


def table() -> str:
    """Return the states, and the rows of the table that runs."""
    rows = [[state, what, to] for (state, what), to in states.TRANSITIONS.items()]
    return json.dumps({"states": list(states.STATES), "rows": sorted(rows), "server": _NAMES})
