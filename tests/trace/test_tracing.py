"""Traces: what a traced connection reports, and that it does what any other does."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from jetstream.events import PullWarning
from jetstream.tools.explain import Explainer
from natsproto.adapters.driver import make_connection
from natsproto.connection import Connection
from natsproto.connection.effects import Dial
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Reports
from natsproto.errors import ConnectionLost, InvalidValue
from natsproto.events import Closed, Connected, Disconnected
from natsproto.options import Options
from natsproto.trace import FlightRecorder, JsonSink, Step, TextSink, TracedConnection, sink_of
from natsproto.trace.steps import masked
from natsproto.wire.frames import Connect, Msg, Pub
from tests.connection.support import PONG, Script, Wire, err, info, msg
from tests.core import ROOT


class Traced(Wire):
    """A wire whose connection is traced; times are those of the wire."""

    def __init__(self, **options):
        super().__init__(**options)
        self.steps = []
        options.setdefault("servers", "nats://a:4222")
        options.setdefault("shuffle", False)
        self.connection = TracedConnection(
            Options(**options), rng=Script(), sink=self.steps.append, clock=lambda: self.now
        )

    def lines(self):
        steps, self.steps[:] = list(self.steps), []
        return ["%s %s" % (step.kind, step.text) for step in steps]


SECRETS = {"user": "me", "password": "hush-hush"}


@pytest.mark.rule("D-TRACE-1")
def test_the_trace_of_a_handshake_and_a_loss():
    wire = Traced()
    wire.connect().opened().data(info()).data(PONG)
    connect = wire.lines()
    assert [line.split(" {")[0] for line in connect] == [
        "input connect",
        "state NEW -> WAITING",
        "state WAITING -> DIALING",
        "effect Dial(host='a', port=4222, shuffle=False)",
        "input transport_opened",
        "state DIALING -> OPENING",
        "in INFO",
        "state OPENING -> GREETING",
        "out CONNECT",
        "out PING",
        "in PONG",
        "state GREETING -> CONNECTED",
        "event Connected: connected to nats://a:4222",
    ]
    wire.subscribe("a")
    wire.connection.publish("a", b"hello")
    wire.look().data(msg("a", 1, b"x\n"))
    assert wire.lines() == ["out SUB a 1", "out PUB a 5 | hello", "in MSG a 1 2 | x\\n"]
    wire.lost(OSError("reset"))
    assert wire.lines()[:2] == [
        "input transport_closed: reset",
        "state CONNECTED -> WAITING",
    ]
    wire.timer(at=0.0)
    assert wire.lines() == []  # nothing was due
    wire.timer(at=100.0)
    assert wire.lines()[0] == "input handle_timer"


@pytest.mark.rule("D-TRACE-1", "D-AUTH-1")
@pytest.mark.parametrize(
    ("error", "text"), [(None, "nonce_signed"), (OSError("hush"), "nonce_signed: OSError")]
)
def test_the_trace_of_a_signature(error, text):
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    wire = Traced(nkey=key, sign=print, host_signing=True).connect().greet(nonce="n")
    assert wire.lines()[-2:] == [
        "state OPENING -> SIGNING",
        "effect Sign(challenge=Challenge(***))",
    ]
    wire.tell_signed(bytes(64), error=error)
    assert wire.lines()[0] == "input " + text


@pytest.mark.rule("D-TRACE-1")
@pytest.mark.parametrize("broken", [b"MSG a 1 x\r\n", b"PING\r\nHUH\r\n"])
def test_frames_before_a_violation_are_traced(broken):
    wire = Traced().up()
    wire.lines()
    wire.data(broken)
    assert [line for line in wire.lines() if line.startswith("in")] == ["in PING"] * (
        broken.startswith(b"PING")
    )


@pytest.mark.rule("D-TRACE-1")
def test_events_of_consumers_are_traced_with_their_source():
    wire = Traced().up()

    class Reporting(Receiver):
        reports = Reports("consumer 'w'")

        def receive(self, message, now):
            self.reports.add(PullWarning(ConnectionLost("x")))
            return True

    wire.subscribe("a")
    wire.connection.subscribe("b", Reporting())
    wire.lines()
    wire.data(msg("b", 2))
    assert wire.lines()[-1] == "event PullWarning: pull ended: x (consumer 'w')"


@pytest.mark.rule("D-TRACE-2")
def test_secrets_are_masked():
    wire = Traced(servers="nats://me:hush-hush@a:4222").up()
    text = "".join(wire.lines() + [repr(step) for step in wire.steps])
    assert "CONNECT" in text
    assert "hush" not in text
    fields = dict.fromkeys(("pass", "auth_token", "sig", "jwt", "nkey"), "secret")
    assert masked(Connect({**fields, "name": "n"})) == Connect(
        {**dict.fromkeys(fields, "***"), "name": "n"}
    )
    assert masked(Connect({"pass": ""})) == Connect({"pass": ""})
    step = Step(0.0, "input", "transport_closed: nats://u:p@a is gone")
    assert step.text == "transport_closed: nats://***@a is gone"


@pytest.mark.rule("D-TRACE-1")
def test_a_traced_connection_does_what_any_other_does():
    def run(wire):
        wire.connect().opened().data(info())
        wire.data(PONG + err('Permissions Violation for Publish to "x"')).subscribe("a")
        wire.connection.publish("a", b"1")
        wire.look().data(msg("a", 1, b"x") * 3).lost(at=1.0).ring()
        outputs = (wire.effects(), wire.sent(), wire.events(), wire.state, wire.deadline)
        return repr(outputs)

    assert run(Traced()) == run(Wire())


@pytest.mark.rule("D-TRACE-3")
def test_a_sink_that_raises_is_called_once(capsys):
    calls = []

    def broken(step):
        calls.append(step)
        raise ValueError("broken sink")

    made = TracedConnection(Options(), rng=Script(), sink=broken)
    made.connect(0.0)
    assert made.take_effects() == [Dial("127.0.0.1", 4222, True)]
    made.transport_opened(0.0)
    made.receive_data(info(), 0.0)
    assert made.data_to_send() != []
    assert len(calls) == 1
    assert capsys.readouterr().err.count("ValueError: broken sink") == 1


FRAME = Msg(b"s", 7, b"r", b"abc", b"NATS/1.0 503\r\n\r\n")
DICTS = [  # step, dict without time, kind and text
    (Step(1.5, "in", FRAME), {"name": "MSG", "subject": "s", "sid": 7, "reply": "r", "size": 3}),
    (Step(1.5, "out", Pub(b"s", b"", b"abc")), {"name": "PUB", "subject": "s", "size": 3}),
    (Step(1.5, "state", "NEW -> DIALING"), {}),
    (Step(1.5, "effect", Dial("a", 1, True)), {"name": "Dial"}),
    (Step(1.5, "event", Closed(None), "w"), {"name": "Closed", "source": "w"}),
]


@pytest.mark.rule("D-TRACE-1")
@pytest.mark.parametrize(("step", "found"), DICTS)
def test_json(step, found):
    stream = io.StringIO()
    JsonSink(stream)(step)
    written = json.loads(stream.getvalue())
    if step.value is FRAME:
        found = {**found, "status": 503}
    assert written == {"time": 1.5, "kind": step.kind, "text": step.text, **found}


def test_lines_of_text():
    stream = io.StringIO()
    sink = TextSink(stream, explainer=Explainer())
    for step in [Step(1.25, "out", Pub(b"s", b"", b"abc")), Step(1.0, "in", FRAME)]:
        sink(step)
    sink(Step(2.0, "state", "NEW -> DIALING"))
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith(".250 ->     PUB s 3 | abc")
    assert lines[1].strip() == "# The client publishes a message of 3 bytes to `s`."
    assert lines[2].endswith(".000 <-     HMSG s 7 r 16 19 | NATS/1.0 503 | abc")
    assert lines[-1].endswith(".000 state  NEW -> DIALING")


@pytest.mark.rule("D-TRACE-4")
@pytest.mark.parametrize(
    ("variable", "trace", "kind"),
    [
        ("", None, None),
        ("0", None, None),
        ("1", None, TextSink),
        ("TEXT", None, TextSink),
        ("json", None, JsonSink),
        ("1", False, None),
        ("", True, TextSink),
        ("json", FlightRecorder(), FlightRecorder),
    ],
)
def test_the_option_and_the_variable(monkeypatch, variable, trace, kind):
    monkeypatch.setenv("NATSPROTO_TRACE", variable)
    found = sink_of(trace)
    assert (found if found is None else type(found)) is kind
    options = {} if trace is None else {"trace": trace}
    made = make_connection("nats://a", options, rng=Script())
    assert type(made) is (Connection if kind is None else TracedConnection)


@pytest.mark.rule("D-TRACE-4")
def test_a_wrong_sink_is_rejected(monkeypatch):
    with pytest.raises(InvalidValue, match=r"trace cannot be called: 5 \(D-TRACE-4\)"):
        make_connection("nats://a", {"trace": 5})
    monkeypatch.setenv("NATSPROTO_TRACE", "loud")
    with pytest.raises(InvalidValue, match="NATSPROTO_TRACE is not 0, 1, text or json: 'loud'"):
        make_connection("nats://a", {})


@pytest.mark.rule("D-TRACE-5")
def test_the_flight_recorder_keeps_the_last_steps():
    stream = io.StringIO()
    recorder = FlightRecorder(3, stream=stream)
    for number in range(5):
        recorder(Step(float(number), "state", "state %d" % number))
    assert [step.time for step in recorder.steps] == [2.0, 3.0, 4.0]
    recorder(Step(5.0, "event", Connected("a", False)))
    recorder(Step(5.0, "event", Disconnected("a", None)))
    assert stream.getvalue() == ""
    recorder(Step(6.0, "event", Disconnected("a", ConnectionLost("reset"))))
    written = stream.getvalue().splitlines()
    assert written[0] == "--- 3 steps before Disconnected: reset ---"
    assert (len(written), written[-1], list(recorder.steps)) == (5, "--- end ---", [])
    with pytest.raises(InvalidValue):
        FlightRecorder(0)


@pytest.mark.rule("D-TRACE-5")
def test_the_flight_recorder_in_a_block(capsys):
    recorder = FlightRecorder()
    for error, count in [(ConnectionLost("x"), 1), (ValueError("y"), 0)]:
        recorder(Step(1.0, "state", "NEW -> DIALING"))
        with pytest.raises(type(error)), recorder:
            raise error
        assert capsys.readouterr().err.count("1 steps before ConnectionLost: x") == count
    with recorder:
        pass
    recorder.dump()
    assert "--- 1 steps before now ---" in capsys.readouterr().err


@pytest.mark.rule("D-TRACE-4")
def test_without_a_trace_its_modules_are_not_imported():
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from natsproto.adapters.driver import make_connection
make_connection("nats://a", {{}})
print("natsproto.trace" in sys.modules)
"""
    run = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("False\n", "")
