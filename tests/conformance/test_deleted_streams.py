"""What a real nats-server keeps of a deleted stream (question 36), and that a purge prevents it."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server


@pytest.mark.parametrize(("purge", "survivors"), [(True, 0), (False, 1)])
def test_only_a_purged_stream_leaves_nothing_to_the_next_of_its_name(purge, survivors):
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        stream = js.create_stream(name="S", subjects=["s"], storage="file")
        js.publish("s", b"old")
        # As if the server were still removing an earlier stream of this name.
        removed = server.directory / "store" / "jetstream" / "$G" / "streams" / ".S"
        removed.mkdir()
        (removed / "file").touch()
        if purge:
            stream.purge()
        stream.delete()
        stream = js.create_stream(name="S", subjects=["s"], storage="file")
        assert stream.info().state.messages == survivors
