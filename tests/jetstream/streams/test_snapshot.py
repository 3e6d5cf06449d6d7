from __future__ import annotations

import io
import json

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import InvalidResponse, SnapshotFailed, StreamNotFound
from jetstream.streams.snapshot import open_snapshot
from natsproto.errors import InvalidName, InvalidState, InvalidValue, TimeoutExpired
from tests.jetstream.support import SILENCE, Stage

REPLY = {"config": {"name": "S", "future": 1}, "state": {"messages": 3}}
SIZES = {"chunk_size": 128 * 1024}
ACK = "$JS.SNAPSHOT.ACK.S.token."


def opening(stage, *, consumers=True, check=False, chunk_size=128 * 1024, window=8 * 1024 * 1024):
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    return open_snapshot(api, "S", consumers, check, chunk_size, window)


def opened(*answers, **options):
    stage = Stage(REPLY, *answers)
    snapshot = stage.run(opening(stage, **options))
    ((_, body),) = stage.asked
    return stage, snapshot, body


def deliver(stage, data, number=0, block=b""):
    reply = f"{ACK}{len(data)}.{number} ".encode() if number else b""
    (sid,) = [sid for sid, subject in stage._subs.items() if not subject.endswith(".*")]
    if block:
        sizes = b"%d %d" % (len(block), len(block) + len(data))
        stage.wire.data(b"HMSG s %d %s%s\r\n%s\r\n" % (sid, reply, sizes, block + data))
    else:
        stage.wire.data(b"MSG s %d %s%d\r\n%s\r\n" % (sid, reply, len(data), data))


async def collect(snapshot):
    return [chunk async for chunk in snapshot]


REQUESTS = [
    ({}, SIZES),
    ({"consumers": False}, {**SIZES, "no_consumers": True}),
    (
        {"check": True, "chunk_size": 1024, "window": 2048},
        {"chunk_size": 1024, "window_size": 2048},
    ),
]


@pytest.mark.parametrize(("options", "body"), REQUESTS)
def test_the_request(options, body):
    _, _, sent = opened(**options)
    assert sent.pop("deliver_subject").startswith("_INBOX.")
    assert sent.pop("jsck", False) == options.get("check", False)
    assert sent == body


@pytest.mark.rule("SNAP-1", "SNAP-2")
def test_iteration():
    stage, snapshot, _ = opened()
    assert (snapshot.config.name, snapshot.state.messages) == ("S", 3)
    deliver(stage, b"aa", 1)
    deliver(stage, b"bb", 2)
    deliver(stage, b"", block=b"NATS/1.0 204\r\n\r\n")
    assert not snapshot.complete
    assert stage.run(collect(snapshot)) == [b"aa", b"bb"]
    assert (snapshot.complete, snapshot.received) == (True, 4)
    assert repr(snapshot) == "<StreamSnapshot of stream S, 4 bytes taken>"


def test_it_acknowledges_and_waits():
    stage, snapshot, _ = opened()
    deliver(stage, b"aa", 1)
    assert stage.run(snapshot.__anext__()) == b"aa"
    assert stage.asked == [(ACK + "2.1", None)]
    stage.serve = lambda: deliver(stage, b"") is None
    assert stage.run(collect(snapshot)) == []


@pytest.mark.rule("D-SNAP-6")
def test_save():
    stage, snapshot, _ = opened()
    deliver(stage, b"aa", 1)
    deliver(stage, b"b")
    deliver(stage, b"")
    file = io.BytesIO()
    seen = []
    size = stage.run(snapshot.save(file, progress=seen.append))
    header, _, data = file.getvalue().partition(b"\n")
    assert json.loads(header) == REPLY  # fields of newer servers included
    assert (data, size, seen) == (b"aab", len(file.getvalue()), [2, 3])


@pytest.mark.rule("D-SNAP-6")
def test_a_path_is_not_a_file():
    stage, snapshot, _ = opened()
    with pytest.raises(InvalidValue, match=r"file 'orders\.snapshot' is not a file: open it"):
        stage.run(snapshot.save("orders.snapshot"))


def test_save_without_progress():
    stage, snapshot, _ = opened()
    deliver(stage, b"aa")
    deliver(stage, b"")
    file = io.BytesIO()
    stage.run(snapshot.save(file))
    assert file.getvalue() == snapshot.header + b"aa"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": {"code": 404, "err_code": 10059, "description": "x"}}, StreamNotFound),
        ({"config": {"name": "S"}}, InvalidResponse),
        ({"state": {}}, InvalidResponse),
        ({"config": {"name": 1}, "state": {}}, InvalidResponse),
        (SILENCE, TimeoutExpired),
    ],
)
def test_requests_that_fail(answer, error):
    stage = Stage(answer)
    with pytest.raises(error):
        stage.run(opening(stage))
    stage.serve()
    assert [subject for subject in stage._subs.values() if not subject.endswith(".*")] == []


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_size": 1023},
        {"chunk_size": 2**20 + 1},
        {"window": 1023},
        {"window": 2**25 + 1},
        {"consumers": 1},
        {"check": 1},
    ],
)
def test_wrong_options(options):
    stage = Stage()
    with pytest.raises(InvalidValue):
        stage.run(opening(stage, **options))
    assert stage.quiet()


def test_a_wrong_name():
    stage = Stage()
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(InvalidName):
        stage.run(open_snapshot(api, "a.b", True, False, 1024, 1024))


@pytest.mark.rule("SNAP-2", "D-SNAP-5")
def test_a_snapshot_that_fails():
    stage, snapshot, _ = opened()
    deliver(stage, b"aa", 1)
    deliver(stage, b"", block=b"NATS/1.0 408 No Flow Response\r\n\r\n")
    assert stage.run(snapshot.__anext__()) == b"aa"
    with pytest.raises(SnapshotFailed, match="408 No Flow Response"):
        stage.run(snapshot.__anext__())
    assert not snapshot.complete
    stage, snapshot, _ = opened()
    stage.lose()
    with pytest.raises(SnapshotFailed, match="the connection was lost"):
        stage.run(collect(snapshot))


@pytest.mark.rule("D-SNAP-5")
def test_silence():
    stage, snapshot, _ = opened()
    began = stage.now()
    with pytest.raises(TimeoutExpired):
        stage.run(collect(snapshot))
    assert stage.now() - began == 30.0


def test_stop():
    stage, snapshot, _ = opened()
    deliver(stage, b"aa", 1)

    async def block():
        async with snapshot as same:
            assert same is snapshot

    stage.run(block())
    with pytest.raises(InvalidState, match="was stopped"):
        stage.run(snapshot.__anext__())
    assert not snapshot.complete
