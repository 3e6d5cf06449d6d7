"""explain: the recordings as golden files, bytes, and the parts of a dialogue."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.tools.cli.trace.dialogue import RECEIVED, SENT, Dialogue
from jetstream.tools.cli.trace.frames import LONGEST_LINE, Cutter
from natsproto.cli import exits
from tests.cli.golden import FOLDER, VECTORS, explained, golden


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_recording_is_explained_as_before(path):
    text = golden(path).read_text(encoding="utf-8", errors="surrogateescape")
    assert explained(path) == text, "see the difference; then run python -m tests.cli.golden"


def test_every_golden_file_has_its_recording():
    assert sorted(FOLDER.iterdir()) == sorted(golden(path) for path in VECTORS)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames_are_cut_the_same_for_any_split(size):
    data = b"PING\r\nPUB a 4\r\n\r\n\r\n\r\nHPUB b 12 13\r\nNATS/1.0\r\n\r\nx\r\nSUB c 1\r\nPI"
    cutter = Cutter()
    frames = [
        frame for at in range(0, len(data), size) for frame in cutter.feed(data[at : at + size])
    ]
    assert frames == [
        b"PING\r\n",
        b"PUB a 4\r\n\r\n\r\n\r\n",
        b"HPUB b 12 13\r\nNATS/1.0\r\n\r\nx\r\n",
        b"SUB c 1\r\n",
    ]
    assert cutter.rest() == b"PI"


HUGE = b"PUB a 99999999999999999999\r\nmore"


@pytest.mark.parametrize("data", [b"PUB a x\r\nmore", b"A" * (LONGEST_LINE + 1), HUGE])
def test_bytes_that_are_not_frames_are_forwarded(data):
    cutter = Cutter()
    assert b"".join(cutter.feed(b"PING\r\n" + data)) == b"PING\r\n" + data
    assert cutter.feed(b"later") == [b"later"]
    assert cutter.rest() == b""


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"PUB a 3\r\nabc\r\n", b"PING\r\n", b"+OK\r\n", b"CONNECT {", b"\r\n", b"MSG a 1"]
    ),
)


@given(pieces=st.lists(PIECES, max_size=12), direction=st.sampled_from([SENT, RECEIVED]))
def test_no_byte_is_lost_and_nothing_is_raised(pieces, direction):
    dialogue = Dialogue()
    steps = [step for piece in pieces for step in dialogue.feed(direction, piece, 0.0)]
    steps += dialogue.end(0.0)
    assert b"".join(step.data for step in steps) == b"".join(pieces)
    for step in steps:
        assert step.lines()
        json.dumps(step.json())


NEXT = b'PUB $JS.API.CONSUMER.MSG.NEXT.S.C _INBOX.1.%s 11\r\n{"batch":%d}\r\n'
MESSAGE = b"MSG s.x 1 $JS.ACK.S.C.1.%d.%d.1700000000000000000.0 2\r\nhi\r\n"
STATUS = b"HMSG _INBOX.1.%s 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n"
PAIRS = [  # case, (direction, bytes), number of the frame that the last one belongs to
    (
        "a response",
        [(SENT, b"PUB a _INBOX.x 0\r\n\r\n"), (RECEIVED, b"MSG _INBOX.x 1 0\r\n\r\n")],
        1,
    ),
    ("no response", [(SENT, b"PUB a 0\r\n\r\n"), (RECEIVED, b"MSG a 1 0\r\n\r\n")], 0),
    ("oldest PING", [(SENT, b"PING\r\n"), (SENT, b"PING\r\n"), (RECEIVED, b"PONG\r\n")], 1),
    ("PING of the server", [(SENT, b"PING\r\n"), (RECEIVED, b"PING\r\n"), (SENT, b"PONG\r\n")], 2),
    ("PONG alone", [(RECEIVED, b"PONG\r\n")], 0),
    (
        "the first pull is full",
        [
            (SENT, b"SUB _INBOX.1.* 1\r\n"),
            (SENT, NEXT % (b"a", 1)),
            (SENT, NEXT % (b"b", 2)),
            (RECEIVED, MESSAGE % (1, 1)),
            (RECEIVED, MESSAGE % (2, 2)),
        ],
        3,
    ),
    (
        "a status ends its pull",
        [
            (SENT, b"SUB _INBOX.1.* 1\r\n"),
            (SENT, NEXT % (b"a", 5)),
            (SENT, NEXT % (b"b", 5)),
            (RECEIVED, STATUS % b"a"),
            (RECEIVED, MESSAGE % (1, 1)),
        ],
        3,
    ),
    ("a status", [(SENT, NEXT % (b"a", 5)), (RECEIVED, STATUS % b"a")], 1),
    (
        "an acknowledgment",
        [
            (RECEIVED, MESSAGE % (7, 7)),
            (SENT, b"PUB $JS.ACK.S.C.1.7.7.1700000000000000000.0 4\r\n+ACK\r\n"),
        ],
        1,
    ),
]


@pytest.mark.rule("D-PROXY-3")
@pytest.mark.parametrize(("case", "entries", "of"), PAIRS, ids=[row[0] for row in PAIRS])
def test_pairs(case, entries, of):
    dialogue = Dialogue()
    steps = [
        step
        for time, (direction, data) in enumerate(entries)
        for step in dialogue.feed(direction, data, float(time))
    ]
    last = steps[-1]
    assert last.of == of
    assert last.after == (last.time - steps[of - 1].time if of else 0)
    assert ("after" in last.json()) == bool(of)


def test_explain_bytes(run):
    done = run("explain", r"PUB a.b _INBOX.1 2\r\nhi\r\nPING")
    assert done.out.splitlines() == [
        "   0.0000 A > #1    PUB a.b _INBOX.1 2",
        "                      hi",
        "                    request: The client sends a message of 2 bytes to `a.b`, with "
        "`_INBOX.1` as the subject for responses. (REQ-1)",
        "   0.0000 A > #2    PING",
        "                    ping: The client asks for a PONG: it proves that the server accepted"
        " CONNECT. (PING-1)",
    ]
    done = run("explain", "-", "--json", stdin=b"-ERR 'Stale Connection'\r\nMSG a 1 3\r\nab")
    assert [each["kind"] for each in done.lines] == ["error", "garbage"]
    assert done.lines[1]["text"] == "The frame is not complete."
    assert run("explain", "PONG", "--sender", "server", "--json").json["direction"] == "<"
    assert "not a valid frame" in run("explain", "HELLO").out
    assert run("explain", r"PING\xzz").code == exits.USAGE


def test_explain_files(run, tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"+OK\r\n")
    assert run("explain", str(path), "--json").json["kind"] == "ok"
    done = run("explain", str(VECTORS[0]))
    assert done.out == golden(VECTORS[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [r'CONNECT {"pass":"s3cret"}', r'CONNECT {"pass":"s3cret"'])
def test_secrets_are_not_printed(run, text):
    for options in ([], ["--json"]):
        done = run("explain", text, *options)
        assert "CONNECT" in done.out
        assert "s3cret" not in done.out
        json.dumps(done.out)
