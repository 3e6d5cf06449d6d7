"""The facade of snapshots: it behaves like its inner object."""

from __future__ import annotations

import io

import pytest

from jetstream.blocking import JetStream, Stream
from jetstream.blocking.backup import StreamSnapshot
from jetstream.streams import snapshot
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.streams.test_snapshot import REPLY, deliver
from tests.jetstream.support import Stage


@pytest.mark.rule("D-CALL-14")
def test_it_is_a_twin():
    check_twins(snapshot.StreamSnapshot, StreamSnapshot)


def test_it_does_what_its_twin_does():
    stage = Stage(REPLY)
    js = JetStream(stage.blocking)
    with js.snapshot_stream("S") as taken:
        assert isinstance(taken, StreamSnapshot)
        assert (taken.config.name, taken.state.messages) == ("S", 3)
        stage.serve()
        deliver(stage, b"aa", 1)
        assert next(iter(taken)) == b"aa"
        assert (taken.received, taken.complete) == (2, False)
        deliver(stage, b"bb", 2)
        deliver(stage, b"")
        file = io.BytesIO()
        taken.save(file)
        assert file.getvalue() == taken.header + b"bb"
        assert taken.complete
        assert repr(taken).startswith("<StreamSnapshot of stream S")
    stage.answers = [{"deliver_subject": "target"}, b"", {"config": {"name": "S"}}]
    file.seek(0)
    assert isinstance(js.restore_stream(file), Stream)
