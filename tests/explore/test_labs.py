"""The Python of the explorer's panes, on CPython; test_page.py runs it in a browser."""

from __future__ import annotations

import json
import re

import pytest

from jetstream.tools.explore import site
from jetstream.tools.explore.labs import consumers, lifecycle, wire
from natsproto.connection import states

INFO = 'INFO {"server_id":"S","max_payload":1048576}\n'

BYTES = [
    # text, bytes
    ("PING\n", b"PING\r\n"),
    (r"PING\r\n", b"PING\r\n"),
    (r"a\x00\xff\t\\", b"a\x00\xff\t\\"),
    (r"\xzz\q", rb"\xzz\q"),
    ("é\r\n", b"\xc3\xa9\r\n"),
]


@pytest.mark.parametrize(("text", "data"), BYTES)
def test_typed_bytes(text, data):
    assert wire.read_bytes(text) == data


@pytest.mark.parametrize("data", [b"PING\r\nA\nB\r", bytes(range(256)), b"\\x41\r\n\r\n"])
def test_shown_bytes_are_read_back(data):
    assert wire.read_bytes(wire.show_bytes(data)) == data


@pytest.mark.parametrize("piece", [0, 1, 7, 1000])
def test_frames_and_their_places(piece):
    text = INFO + "PING\nMSG greet.ada 1 5\nhello\nMSG b 1 9\nhal"
    found = json.loads(wire.parse(text, "server", piece))
    assert [frame["name"] for frame in found["frames"]] == ["Info", "Ping", "Msg"]
    places = [(frame["start"], frame["end"]) for frame in found["frames"]]
    assert places == [(0, 46), (46, 52), (52, 78)]
    assert found["frames"][2]["wire"] == "MSG greet.ada 1 5\nhello"
    assert found["frames"][2]["rule"] == "WIRE-8"
    assert (found["error"], found["inside"], found["size"]) == (None, "payload", 92)


def test_frames_of_a_client():
    found = json.loads(wire.parse("SUB a 1\nPUB a 2\nhi\nP", "client", 3))
    assert [frame["kind"] for frame in found["frames"]] == ["subscribe", "publish"]
    assert found["inside"] == "line"


@pytest.mark.parametrize("piece", [0, 2])
def test_an_error_has_its_offset(piece):
    found = json.loads(wire.parse("PING\nNOPE\n", "server", piece))
    assert [frame["name"] for frame in found["frames"]] == ["Ping"]
    assert found["error"]["offset"] == 6
    assert "unknown operation" in found["error"]["text"]


def test_many_bytes_are_located_by_pieces():
    found = json.loads(wire.parse("PING\n" * 4000, "server", 0))
    assert len(found["frames"]) == 4000
    assert found["frames"][-1]["end"] == 24_000


LIFE = [
    # action,            state,       deadline, kinds of steps
    ("connect", "DIALING", 5.0, ["input", "state", "state", "effect"]),
    ("transport_opened", "OPENING", 5.0, ["input", "state"]),
    ("INFO", "GREETING", 5.0, ["in", "state", "out", "out"]),
    ("PONG", "CONNECTED", 10.0, ["in", "state", "event"]),
    ("subscribe", "CONNECTED", 10.0, ["out"]),
    ("MSG", "CONNECTED", 10.0, ["in"]),
    ("request", "CONNECTED", 2.0, ["out", "out"]),
    ("+2", "CONNECTED", 8.0, ["input"]),
    ("+8", "CONNECTED", 10.0, ["input", "out"]),
    ("close", "CLOSED", None, ["state", "event", "effect"]),
]


def test_a_connection_by_hand():
    life = lifecycle.Lifecycle()
    for action, state, deadline, kinds in LIFE:
        result = json.loads(life.do(action))
        assert (action, result["state"], result["error"]) == (action, state, "")
        assert [step["kind"] for step in result["steps"]] == kinds, action
        assert deadline is None or result["deadline"] <= deadline
        assert (result["deadline"] is None) == (deadline is None)
    assert result["mailbox"] == 1
    assert "time" in result["requests"][0]


def test_secrets_are_not_shown():
    life = lifecycle.Lifecycle()
    results = [life.do(action) for action, *_ in LIFE]
    assert "CONNECT" in results[2]
    assert "secret" not in "".join(results)


def test_an_illegal_input_is_refused():
    life = lifecycle.Lifecycle()
    result = json.loads(life.do("tls_started"))
    assert "tls_started() is not legal in state NEW" in result["error"]
    assert (result["state"], result["legal"]) == ("NEW", ["connect", "handle_timer"])


def test_an_invalid_frame_ends_the_attempt():
    life = lifecycle.Lifecycle()
    for action in ("connect", "transport_opened", "garbage"):
        result = json.loads(life.do(action))
    assert result["before"] == "OPENING"
    assert "OPENING -> WAITING" in [step["text"] for step in result["steps"]]


def test_the_table_is_the_one_that_runs():
    table = json.loads(lifecycle.table())
    rows = {(state, what): to for state, what, to in table["rows"]}
    assert rows == states.TRANSITIONS
    assert tuple(table["states"]) == states.STATES


def experiment(reader, *faults, limit=6, pause=0.2):
    choice = {
        "reader": reader,
        "limit": limit,
        "pause": pause,
        "seconds": 30.0,
        "messages": 40,
        "faults": [{"name": name, "at": at, "seconds": seconds} for name, at, seconds in faults],
    }
    return json.loads(consumers.run(json.dumps(choice)))


@pytest.mark.parametrize("reader", consumers.READERS)
@pytest.mark.parametrize("fault", [None, *consumers.FAULTS])
def test_no_message_is_lost(reader, fault):
    result = experiment(reader, *([(fault, 3.0, 2.0)] if fault else []))
    assert {seq for _, seq, _ in result["taken"]} == set(range(1, result["stored"] + 1))
    assert result["stored"] >= 30
    assert (result["error"], len(result["levels"]) > 5) == ("", True)
    kinds = {step["kind"] for step in result["steps"]}
    assert {"message", "fault"} - (set() if fault else {"fault"}) <= kinds


def test_the_level_stays_below_the_limit():
    result = experiment("consume")
    assert (result["limit"], result["threshold"]) == (6, 3)
    assert max(level for _, level, _ in result["levels"]) == 6
    pull = next(step for step in result["steps"] if step["kind"] == "pull")
    assert "at most 6 messages" in pull["note"]
    assert pull["rule"] == "PULL-2"
    assert pull["wire"].startswith("PUB $JS.API.CONSUMER.MSG.NEXT.ORDERS.worker")


def test_an_unknown_fault():
    with pytest.raises(ValueError, match="fault sabotage is not one of silence"):
        experiment("consume", ("sabotage", 1.0, 1.0))


def test_every_state_and_input_has_its_place_on_the_page():
    page = (site.PAGE / "lifecycle.js").read_text(encoding="utf-8")
    assert all(f"{state}: [" in page for state in states.STATES)
    buttons = [each for each in states.INPUTS if each not in (states.DATA, states.TIMER)]
    assert all(f'["{each}", ' in page for each in buttons)


def test_the_page_offers_every_reader_and_every_fault():
    script = (site.PAGE / "consumers.js").read_text(encoding="utf-8")
    offered = re.search(r"const FAULTS = \[\n(.*?)\n\];", script, re.DOTALL)[1]
    assert set(re.findall(r'\["(\w+)",', offered)) == set(consumers.FAULTS)
    app = (site.PAGE / "app.js").read_text(encoding="utf-8")
    assert f"const READERS = {json.dumps(consumers.READERS)};" in app
