from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from tests.jetstream.api.test_stored import answer, eob
from tests.jetstream.support import Stage

INFO = {"config": {"name": "S", "allow_direct": True}, "state": {}}


@pytest.mark.rule("D-GET-14")
def test_stored_messages_one_by_one():
    stage = Stage(INFO, [answer(1), answer(2), eob(0, 2)], [answer(3), answer(4)])
    stream = JetStream(stage.blocking).stream("S")
    assert [msg.seq for msg in stream.iter_get_msgs()] == [1, 2]
    messages = stream.iter_get_last_msgs(["a"])
    assert next(messages).seq == 3
    messages.close()
    assert list(messages) == []
    assert stage.connection.requests.inbox.open == {}
