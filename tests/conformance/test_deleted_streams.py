"""A deleted stream may leave messages to the next of its name (question 36 in spec_notes)."""

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
