"""Client.trace_message without a server: the headers that it sends, and when it ends."""

from __future__ import annotations

import pytest

from natsproto.errors import ConnectionLost, InvalidValue, NotSupported
from natsproto.paths import send
from tests.connection.reporters import INBOX, PARENT, Servers
from tests.connection.reports import ALONE, IN, S1, S2, S3, report


@pytest.mark.rule("HOP-1")
def test_the_message_asks_for_reports_and_is_not_delivered():
    stage = Servers(ALONE)
    path = stage.run(stage.client.trace_message("a", b"x", headers={"K": "v"}, reply="r"))
    block = f"NATS/1.0\r\nK: v\r\nNats-Trace-Dest: {INBOX}\r\nNats-Trace-Only: true\r\n\r\n"
    frames = stage.wire.sent().decode()
    sizes = f"{len(block)} {len(block) + 1}"
    assert frames == f"SUB {INBOX} 1\r\nHPUB a r {sizes}\r\n{block}x\r\nUNSUB 1\r\n"
    assert path.complete
    assert path.origin is not None
    assert path.origin.server.name == "s1"


@pytest.mark.rule("HOP-1")
def test_deliver_leaves_out_the_second_header():
    stage = Servers(ALONE)
    stage.run(stage.client.trace_message("a", deliver=True))
    sent = stage.wire.sent()
    assert b"Nats-Trace-Dest" in sent
    assert b"Nats-Trace-Only" not in sent


@pytest.mark.rule("D-HOP-9")
def test_it_returns_when_all_announced_hops_have_reported():
    stage = Servers(S3, S1, S2, b"late")
    before = stage.wire.now
    path = stage.run(stage.client.trace_message("k"))
    assert path.complete
    assert len(path.hops) == 3
    assert stage.reports == [b"late"]
    assert stage.wire.now == before


@pytest.mark.rule("D-HOP-9")
def test_at_the_timeout_the_path_may_be_incomplete():
    stage = Servers(S1, b"junk")
    before = stage.wire.now
    path = stage.run(stage.client.trace_message("k", timeout=3.0))
    assert (path.complete, path.missing, path.unreadable) == (False, ["1", "2"], [b"junk"])
    assert stage.wire.now == before + 3.0


@pytest.mark.rule("D-HOP-9")
def test_the_number_of_reports_is_bounded(monkeypatch):
    monkeypatch.setattr(send, "MOST", 3)
    stage = Servers(*[S2] * 9)
    assert len(stage.run(stage.client.trace_message("k")).hops) == 3


@pytest.mark.rule("HOP-6")
def test_a_trace_context():
    request = {"header": {"traceparent": [PARENT]}}
    other = report("s1", [IN], request={"header": {"traceparent": [PARENT.replace("4b", "4c")]}})
    stage = Servers(other, report("s9", [IN], request=request), dest="a.trace")
    path = stage.run(
        stage.client.trace_message("a", deliver=True, traceparent=PARENT, dest="a.trace")
    )
    assert [hop.server.name for hop in path.hops] == ["s9"]
    sent = stage.wire.sent()
    assert sent.startswith(b"SUB a.trace 1\r\n")
    assert f"traceparent: {PARENT}\r\n".encode() in sent
    assert b"Nats-Trace" not in sent


@pytest.mark.rule("HOP-6")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"traceparent": PARENT}, "together"),
        ({"dest": "a"}, "together"),
        ({"dest": "a", "traceparent": PARENT, "deliver": False}, "deliver=True"),
        ({"dest": "a", "traceparent": "00-1-2-01"}, "not valid"),
        ({"dest": "a", "traceparent": PARENT.upper()}, "not valid"),
        ({"dest": "a", "traceparent": PARENT[:-1] + "2"}, "not sampled"),
        ({"deliver": 1}, "neither True nor False"),
    ],
)
def test_options_that_do_not_fit(options, text):
    stage = Servers()
    with pytest.raises(InvalidValue, match=text):
        stage.run(stage.client.trace_message("a", **{"deliver": True, **options}))
    assert stage.wire.sent() == b""


@pytest.mark.rule("D-HOP-7")
def test_an_old_server_would_deliver_the_message():
    stage = Servers(version="2.10.29")
    with pytest.raises(NotSupported, match=r"needs nats-server 2\.11; this is 2\.10\.29"):
        stage.run(stage.client.trace_message("a"))
    assert stage.wire.sent() == b""


@pytest.mark.rule("D-HOP-7")
def test_without_a_connection_the_server_is_not_known():
    stage = Servers()
    stage.wire.lost()
    with pytest.raises(ConnectionLost, match="without a connection"):
        stage.run(stage.client.trace_message("a"))
