"""The generated pages: docs/book, docs/diagrams and docs/rules.md are well-formed.

`make rules` checks that they are current, because it collects all tests anyway.
"""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from docs.generate import book, dialogue, sequence
from docs.generate.dialogue import CLOSED, HANDSHAKE, RECEIVED, REMARK, SENT, SKIPPED, clock
from docs.generate.observe import machine_of, names_of
from docs.generate.pages import links_to_tests, slug
from docs.generate.states import Diagram, Edge, lanes, order_states
from natsproto.connection import states
from tests.core import ROOT
from tests.rules import Rule, read_rules

SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = book.read_chapters()
SECTIONS = [section for chapter in CHAPTERS for section in chapter.sections]


def test_every_recording_is_in_one_chapter():
    assert sorted(section.number for section in SECTIONS) == sorted(book.recordings())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: str(section.number))
def test_a_section_is_complete(section):
    recording = json.loads(book.recordings()[section.number].read_text())
    remarks = [
        entry
        for entry in recording["frames"]
        if entry["dir"] == "#" and "left out" not in entry["latin1"]
    ]
    assert len(section.remarks) == len(remarks)
    assert all(remark.endswith(".") for remark in section.remarks)
    assert section.text.endswith(".")
    assert set(section.rules) <= set(read_rules())


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.stem)
def test_images_have_a_title_and_a_description(path):
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.get("role") == "img"
    for part in ("title", "desc"):
        assert (root.findtext(SVG + part) or "").strip()
    assert "prefers-color-scheme:dark" in (root.findtext(SVG + "style") or "")


def recording(tmp_path, *entries):
    frames = [
        {"t_ms": number, "conn": conn, "dir": way, "latin1": text, "b64": encoded(text)}
        for number, (conn, way, text) in enumerate(entries)
    ]
    path = tmp_path / "07-example.json"
    path.write_text(json.dumps({"server": "nats-server 9", "frames": frames}))
    return path


def encoded(text):
    import base64

    return base64.b64encode(text.encode("latin-1")).decode()


HELLO = [
    ("A", "<", 'INFO {"version":"9"}\r\n'),
    ("A", ">", 'CONNECT {"headers":true}\r\n'),
    ("A", ">", "PING\r\n"),
    ("A", "<", "PONG\r\n"),
    ("A", "<", 'INFO {"version":"9","connect_info":true}\r\n'),
]


def test_a_usual_handshake_is_one_step(tmp_path):
    path = recording(tmp_path, *HELLO, ("A", ">", "SUB a 1\r\n"))
    read = dialogue.read(path, [], whole=False)
    assert (read.number, read.name, read.server) == (7, "07-example", "nats-server 9")
    assert [step.action for step in read.steps] == [HANDSHAKE, SENT]
    whole = dialogue.read(path, [], whole=True)
    assert [step.label for step in whole.steps] == [
        "INFO",
        "CONNECT",
        "PING",
        "PONG",
        "INFO",
        "SUB a",
    ]


def test_a_handshake_with_credentials_is_shown(tmp_path):
    info, _, *rest = HELLO
    secret = ("A", ">", 'CONNECT {"headers":true,"user":"u","pass":"p"}\r\n')
    read = dialogue.read(recording(tmp_path, info, secret, *rest), [], whole=False)
    assert len(read.steps) == 5


def test_remarks_and_ends(tmp_path):
    path = recording(
        tmp_path,
        ("", "#", "old words"),
        ("", "#", "62 MSG frames of the same shape left out (full capture)"),
        ("A", "!", "server closed the connection (EOF)"),
        ("A", "!", "socket error: ConnectionResetError"),
    )
    steps = dialogue.read(path, ["New words."], whole=False).steps
    assert [(step.action, step.text) for step in steps] == [
        (REMARK, "New words."),
        (SKIPPED, "62 more messages of the same shape."),
        (CLOSED, "The server closes the connection."),
        (CLOSED, "The connection is reset."),
    ]


def test_bytes_that_are_not_frames(tmp_path):
    path = recording(
        tmp_path, ("A", ">", "FOO\r\n"), ("A", ">", "bar\r\n"), ("B", ">", "PUB a 9\r\n")
    )
    steps = dialogue.read(path, [], whole=False).steps
    assert [step.text for step in steps] == [
        "This is not a valid frame: unknown operation.",
        "More bytes follow. They belong to the mistake.",
        "The frame is not complete.",
    ]
    assert [step.wire for step in steps] == ["FOO", "bar", "PUB a 9"]


@pytest.mark.parametrize(
    ("count", "left", "skipped"), [(4, 4, ""), (5, 4, "2 more"), (100, 4, "97 more")]
)
def test_long_runs_lose_their_middle(tmp_path, count, left, skipped):
    path = recording(tmp_path, *[("A", "<", "MSG a 1 1\r\nx\r\n")] * count)
    steps = dialogue.read(path, [], whole=False).steps
    assert len(steps) == left
    assert [step.label for step in steps if step.action == SKIPPED] == (
        [f"{skipped} of the same shape"] if skipped else []
    )


def test_runs_of_pairs(tmp_path):
    pair = [("A", ">", "PUB a 1\r\nx\r\n"), ("A", "<", "MSG a 1 1\r\nx\r\n")]
    steps = dialogue.read(recording(tmp_path, *pair * 10), [], whole=False).steps
    assert [step.action for step in steps] == [SENT, RECEIVED] * 2 + [SKIPPED] + [SENT, RECEIVED]
    assert steps[4].label == "7 more pairs of the same shape"


@pytest.mark.parametrize(
    ("time", "text"), [(0.0003, "0.3 ms"), (0.0431, "43 ms"), (1.0442, "1.04 s"), (61, "61.00 s")]
)
def test_times(time, text):
    assert clock(time) == text


def test_a_chart_of_two_clients(tmp_path):
    path = recording(tmp_path, ("A", ">", "PING\r\n"), ("B", "<", "+OK\r\n"), ("B", "!", "EOF"))
    chart = sequence.render(dialogue.read(path, [], whole=True), "A title & more")
    root = ElementTree.fromstring(chart)
    assert root.findtext(SVG + "title") == "A title & more"
    assert root.findtext(SVG + "desc") == (
        "client A to server: PING; server to client B: +OK; client B: connection closed."
    )


def test_recordings_that_a_rule_cites():
    rule = Rule("A-1", "a.md", 1, "", "Text.", "[60] to [62]; [90, 92]")
    assert book.cited(rule) == {60, 61, 62, 90, 92}


def test_fragments_match_github():
    assert slug("Headers (natsproto/wire/headers.py)") == "headers-natsprotowireheaderspy"


def test_unit_tests_come_first():
    tests = ["tests/conformance/test_a.py::test_a", "tests/wire/test_b.py::TestB::test_b"]
    text = links_to_tests(tests, ROOT / "docs" / "rules.md")
    assert text.startswith("[`tests/wire/test_b.py`](../tests/wire/test_b.py) `TestB.test_b`, ")


EDGES = [
    Edge("NEW", "open", "BUSY"),
    Edge("BUSY", "data", "BUSY"),
    Edge("BUSY", "done", "IDLE"),
    Edge("IDLE", "open", "BUSY"),
    Edge("IDLE", "close", "OVER"),
    Edge("BUSY", "close", "OVER"),
    Edge("NEW", "close", "OVER"),
]


def test_states_precede_their_successors():
    assert order_states(EDGES, ["NEW"]) == ["NEW", "BUSY", "IDLE", "OVER"]


def test_transitions_with_the_same_names_share_a_lane():
    found = lanes(EDGES, ["NEW", "BUSY", "IDLE", "OVER"])
    assert [(lane.target, lane.sources, lane.labels) for lane in found] == [
        ("BUSY", ("IDLE",), ("open",)),
        ("OVER", ("BUSY", "NEW"), ("close",)),
    ]


def test_a_diagram_names_every_transition():
    root = ElementTree.fromstring(Diagram(EDGES, ["NEW"]).render("Title"))
    texts = {element.text for element in root.iter(SVG + "text")}
    assert {"NEW", "BUSY", "IDLE", "OVER", "open", "done", "close", "↺ data"} <= texts


def test_the_diagram_of_the_connection_is_its_table():
    page = ElementTree.parse(ROOT / "docs" / "diagrams" / "connection.svg")
    described = (page.findtext(SVG + "desc") or "").rstrip(".").split("; ")
    assert described == [f"{a}, {what}: {b}" for (a, what), b in states.TRANSITIONS.items()]


def test_the_machine_of_a_module_is_the_class_with_a_state():
    from jetstream.objects import sweep

    assert machine_of(sweep) is sweep.Sweep
    assert names_of(sweep)["looking"] == "LOOKING"
