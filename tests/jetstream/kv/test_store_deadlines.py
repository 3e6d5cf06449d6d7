"""The requests of `create` share one timeout; a read of many entries has one for each silence."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import PublishTimeout
from natsproto.errors import TimeoutExpired
from tests.jetstream.kvs import created, direct, entry, listed, stream, there
from tests.jetstream.support import SILENCE, SlowStage

WRONG = {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 5"}}
CREATES = [
    # the answers, two seconds each, before the silence; how it ends
    ([], PublishTimeout),
    ([WRONG], TimeoutExpired),
    ([WRONG, direct("a", 5, b"", "DEL")], PublishTimeout),
    ([WRONG, direct("a", 4, b"", "DEL")], TimeoutExpired),
]


def bucket_of(*answers):
    """Return a stage at 2.0, and a bucket whose timeout is 5 seconds."""
    stage = SlowStage(stream(), *answers, *[SILENCE] * 4)
    kv = stage.run(JetStream(stage.client, timeout=5.0).key_value("b"))
    assert stage.now() == 2.0
    return stage, kv


@pytest.mark.rule("D-CALL-18")
@pytest.mark.parametrize(("answers", "error"), CREATES)
def test_create(answers, error):
    stage, kv = bucket_of(*answers)
    with pytest.raises(error):
        stage.run(kv.create("a", b"1"))
    assert stage.now() == 2.0 + 5.0


READS = [
    # what is called; the answers before the silence
    (lambda kv: kv.keys(), [there(2), created(2), [entry("a", 3, 1, 1)]]),
    (lambda kv: kv.history("a"), [listed(a=2), created(2), [entry("a", 3, 1, 1)]]),
    (lambda kv: kv.purge_deletes(), [there(2), created(2), [entry("a", 3, 1, 1)]]),
]


@pytest.mark.rule("D-CALL-21", "D-KV-45")
@pytest.mark.parametrize(("call", "answers"), READS)
def test_a_read_ends_after_a_timeout_of_silence(call, answers):
    """After one second the stream is asked again, within the same timeout."""
    stage, kv = bucket_of(*answers)
    with pytest.raises(TimeoutExpired):
        stage.run(call(kv))
    assert stage.now() == 2.0 * (1 + len(answers)) + 5.0
