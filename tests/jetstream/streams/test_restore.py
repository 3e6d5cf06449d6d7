from __future__ import annotations

import io
import json

import pytest

from jetstream.api.client import ApiClient
from jetstream.config import StreamConfig
from jetstream.errors import ApiError, InvalidResponse
from jetstream.streams.restore import restore
from natsproto.errors import InvalidSubject, InvalidValue, NoResponders, TimeoutExpired
from tests.jetstream.support import NOBODY, SILENCE, Stage

TARGET = {"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.token"}
CREATED = {"config": {"name": "S"}, "state": {"messages": 3}}
FAILED = {"error": {"code": 500, "err_code": 10062, "description": "restore failed"}}
HEADER = {"config": {"name": "S", "num_replicas": 3}, "state": {"messages": 3}}


def saved(data=b"aabb", header=HEADER):
    return io.BytesIO(json.dumps(header).encode() + b"\n" + data)


def restoring(stage, data, config=None, chunk_size=1024, timeout=60.0, progress=None):
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    return restore(api, data, config, chunk_size, timeout, progress)


@pytest.mark.rule("SNAP-4", "D-SNAP-6")
def test_a_saved_file():
    stage = Stage(TARGET, b"", b"", b"", CREATED)
    seen = []
    data = b"a" * 1024 + b"b" * 1024 + b"c"
    info = stage.run(restoring(stage, saved(data), progress=seen.append))
    assert info.state.messages == 3
    assert seen == [1024, 2048, 2049]
    first, *chunks = stage.pubs
    assert (first.subject, json.loads(first.data)) == ("$JS.API.STREAM.RESTORE.S", HEADER)
    assert {pub.subject for pub in chunks} == {TARGET["deliver_subject"]}
    assert [len(pub.data) for pub in chunks] == [1024, 1024, 1, 0]


async def pieces():
    for piece in (b"aa", bytearray(b"bb")):
        yield piece


@pytest.mark.rule("SNAP-4")
@pytest.mark.parametrize(
    "data", [b"aabb", [b"aa", b"bb"], pieces()], ids=["bytes", "list", "async"]
)
def test_chunks_and_a_configuration(data):
    stage = Stage(TARGET, b"", b"", CREATED)
    if data == b"aabb":
        stage.answers = [TARGET, b"", CREATED]
    stage.run(restoring(stage, data, StreamConfig(name="S")))
    first, *chunks = stage.pubs
    assert json.loads(first.data)["config"] == {"name": "S"}
    assert b"".join(pub.data for pub in chunks) == b"aabb"


def test_another_configuration_for_a_file():
    stage = Stage(TARGET, b"", CREATED)
    stage.run(restoring(stage, saved(), {"name": "S", "num_replicas": 1}))
    assert json.loads(stage.pubs[0].data)["config"] == {"name": "S", "num_replicas": 1}


def test_a_file_that_is_awaited():
    class File:
        def __init__(self):
            self.inner = saved()

        async def readline(self, size):
            return self.inner.readline(size)

        async def read(self, size):
            return self.inner.read(size)

    stage = Stage(TARGET, b"", CREATED)
    stage.run(restoring(stage, File()))
    assert b"".join(pub.data for pub in stage.pubs[1:]) == b"aabb"


@pytest.mark.rule("D-SNAP-6")
@pytest.mark.parametrize("file", [b"", b"x\n", b"[]\n", b"{}\n", b'{"config":1}\n', "text"])
def test_other_files(file):
    stage = Stage()
    opened = io.StringIO(file) if isinstance(file, str) else io.BytesIO(file)
    with pytest.raises(InvalidValue, match="header of a saved snapshot"):
        stage.run(restoring(stage, opened))
    assert stage.quiet()


@pytest.mark.rule("D-SNAP-6")
@pytest.mark.parametrize("data", [b"chunk", [b"chunk"], saved().read()])
def test_chunks_without_a_configuration(data):
    stage = Stage()
    with pytest.raises(InvalidValue, match="chunks of a snapshot need a config"):
        stage.run(restoring(stage, data))
    assert stage.quiet()


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"x", {"chunk_size": 1023, "config": {"name": "S"}}),
        (b"x", {"chunk_size": 2**20 + 1, "config": {"name": "S"}}),
        (b"x", {"timeout": 0, "config": {"name": "S"}}),
        (7, {"config": {"name": "S"}}),
        (b"x", {"config": "S"}),
    ],
)
def test_wrong_arguments(data, options):
    stage = Stage()
    with pytest.raises(InvalidValue):
        stage.run(restoring(stage, data, **options))
    assert stage.quiet()


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([FAILED], ApiError),
        ([{}], InvalidResponse),
        ([{"deliver_subject": "a.>"}], InvalidSubject),
        ([TARGET, FAILED], ApiError),
        ([TARGET, b"", NOBODY], NoResponders),
        ([TARGET, SILENCE], TimeoutExpired),
        ([TARGET, b"", FAILED], ApiError),
        ([TARGET, b"", SILENCE], TimeoutExpired),
    ],
)
def test_failures(answers, error):
    stage = Stage(*answers)
    with pytest.raises(error):
        stage.run(restoring(stage, saved()))


@pytest.mark.rule("SNAP-4")
def test_the_number_of_chunks_in_flight_is_limited():
    stage = Stage(TARGET, b"", *[SILENCE] * 16)
    with pytest.raises(TimeoutExpired):
        stage.run(restoring(stage, saved(b"a" * 1024 * 40)))
    assert len(stage.pubs) == 18
    assert stage.quiet()


def test_chunks_fit_into_the_payload_of_the_server():
    stage = Stage(TARGET, *[b""] * 4, CREATED, max_payload=1024)
    stage.run(restoring(stage, saved(b"a" * 4096), chunk_size=4096))
    assert [len(pub.data) for pub in stage.pubs[1:]] == [1024] * 4 + [0]


@pytest.mark.rule("SNAP-7")
@pytest.mark.parametrize(
    ("data", "sizes"), [(b"", [0, 0, 0]), (b"a" * 1025, [1024, 1024, 1024, 1, 0])]
)
def test_a_subscription_that_is_not_yet_known(data, sizes):
    stage = Stage(TARGET, NOBODY, NOBODY, *[b""] * (len(sizes) - 3), CREATED)
    seen = []
    info = stage.run(restoring(stage, saved(data), progress=seen.append))
    assert info.state.messages == 3
    assert seen == ([1024, 1025] if data else [])
    assert [len(pub.data) for pub in stage.pubs[1:]] == sizes
    assert stage.now() == pytest.approx(0.2)


@pytest.mark.rule("SNAP-7")
@pytest.mark.parametrize("data", [b"", b"a"])
def test_a_subscription_that_is_never_known(data):
    stage = Stage(TARGET, *[NOBODY] * 100)
    with pytest.raises(NoResponders):
        stage.run(restoring(stage, saved(data)))
    assert 4.8 <= stage.now() <= 5.0
