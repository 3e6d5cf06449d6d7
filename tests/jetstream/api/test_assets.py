from __future__ import annotations

import pytest

from jetstream.api.assets import (
    change_consumer,
    change_stream,
    consumer_info,
    explain,
    put_consumer,
    put_stream,
    stream_info,
)
from jetstream.api.client import ApiClient
from jetstream.config import ConsumerConfig, StreamConfig
from jetstream.errors import (
    ConsumerExists,
    ConsumerNotFound,
    FilterIgnored,
    StreamNameInUse,
    StreamNotFound,
)
from natsproto.errors import InvalidName, InvalidValue, NotSupported
from tests.jetstream.support import NOBODY, SILENCE, Stage

EXPLICIT = {"ack_policy": "explicit"}


def api(stage):
    return ApiClient(stage.client.session, "", "$JS.API", 5.0)


def error(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "x"}}


@pytest.mark.rule("CALL-18")
@pytest.mark.parametrize(
    ("verb", "pedantic", "more"),
    [("CREATE", False, {}), ("UPDATE", False, {}), ("UPDATE", True, {"pedantic": True})],
)
def test_put_stream(verb, pedantic, more):
    stage = Stage({"config": {"name": "S", "max_msgs": 5}})
    info = stage.run(put_stream(api(stage), verb, StreamConfig(name="S", max_msgs=5), pedantic))
    assert info.config.max_msgs == 5
    assert stage.asked == [(f"$JS.API.STREAM.{verb}.S", {"name": "S", "max_msgs": 5, **more})]


@pytest.mark.rule("CALL-11")
def test_put_stream_checks_first():
    stage = Stage({"config": {"name": "é"}}, version="2.11.0")
    with pytest.raises(InvalidName):
        stage.run(put_stream(api(stage), "CREATE", StreamConfig(name="é")))
    stage.run(put_stream(api(stage), "UPDATE", StreamConfig(name="é")))
    assert len(stage.asked) == 1
    with pytest.raises(NotSupported):
        stage.run(put_stream(api(stage), "CREATE", StreamConfig(name="S", allow_atomic=True)))
    assert stage.quiet()


@pytest.mark.rule("CALL-8", "CALL-18")
@pytest.mark.parametrize(
    ("config", "endpoint"),
    [({}, "S.C"), ({"filter_subject": "a.*"}, "S.C.a.*"), ({"filter_subjects": ["a"]}, "S.C")],
)
@pytest.mark.parametrize(("pedantic", "more"), [(False, {}), (True, {"pedantic": True})])
@pytest.mark.parametrize("action", ["", "create", "update"])
def test_put_consumer(config, endpoint, action, pedantic, more):
    stage = Stage({"name": "C", "config": {"name": "C", **config}})
    wanted = ConsumerConfig(name="C", **config)
    info = stage.run(put_consumer(api(stage), "S", action, wanted, pedantic))
    assert info.name == "C"
    body = {"stream_name": "S", "config": {"name": "C", **config, **EXPLICIT}, "action": action}
    assert stage.asked == [(f"$JS.API.CONSUMER.CREATE.{endpoint}", {**body, **more})]


@pytest.mark.rule("CALL-22")
def test_empty_lists_are_not_sent():
    empty = {"filter_subjects": [], "backoff": [], "priority_groups": [], "max_batch": 0}
    stage = Stage({"name": "C", "config": {"name": "C"}}, {"config": {"name": "S"}})
    stage.run(put_consumer(api(stage), "S", "", ConsumerConfig(name="C", **empty)))
    source = {"name": "A", "subject_transforms": []}
    stream = StreamConfig(name="S", subjects=[], sources=[source], placement={"tags": []})
    stage.run(put_stream(api(stage), "UPDATE", stream))
    [(_, consumer), (_, config)] = stage.asked
    assert consumer["config"] == {"name": "C", "max_batch": 0, **EXPLICIT}
    assert config == {"name": "S", "sources": [{"name": "A"}], "placement": {}}


@pytest.mark.rule("CALL-8", "CALL-9", "CALL-12")
def test_put_consumer_needs_a_name_and_filters_that_are_kept():
    stage = Stage({"config": {}}, {"config": {}})
    wanted = ConsumerConfig()
    stage.run(put_consumer(api(stage), "S", "create", wanted))
    assert wanted.name == "0" * 22
    with pytest.raises(FilterIgnored):
        stage.run(put_consumer(api(stage), "S", "", ConsumerConfig(filter_subjects=["a"])))
    with pytest.raises(InvalidValue, match="CALL-9"):
        stage.run(put_consumer(api(stage), "S", "update", ConsumerConfig()))
    with pytest.raises(InvalidName):
        stage.run(put_consumer(api(stage), "a.b", "create", ConsumerConfig()))


@pytest.mark.rule("D-CALL-16")
def test_changes_of_an_existing_configuration():
    stage = Stage(
        {"config": {"name": "S", "max_msgs": 5}},
        error(404, 10059),
        {"config": {"durable_name": "C", "max_deliver": 5}},
        error(404, 10014),
    )
    fields = {"name": "S", "max_bytes": 7}
    config = stage.run(change_stream(api(stage), StreamConfig(**fields), fields))
    assert config.to_json() == {"name": "S", "max_msgs": 5, "max_bytes": 7}
    with pytest.raises(StreamNotFound):
        stage.run(change_stream(api(stage), StreamConfig(**fields), fields))
    fields = {"durable_name": "C", "max_batch": 7}
    config = stage.run(change_consumer(api(stage), "S", ConsumerConfig(**fields), fields))
    assert (config.max_deliver, config.max_batch) == (5, 7)
    with pytest.raises(ConsumerNotFound):
        stage.run(change_consumer(api(stage), "S", ConsumerConfig(**fields), fields))
    with pytest.raises(InvalidValue, match="CALL-9"):
        stage.run(change_consumer(api(stage), "S", ConsumerConfig(), {}))
    assert [subject for subject, _ in stage.asked] == [
        *["$JS.API.STREAM.INFO.S"] * 2,
        *["$JS.API.CONSUMER.INFO.S.C"] * 2,
    ]


@pytest.mark.rule("D-CALL-7")
def test_changes_that_the_server_would_ignore_are_refused():
    stage = Stage(version="2.9.10")
    config = StreamConfig(name="S", compression="s2")
    with pytest.raises(NotSupported):
        stage.run(change_stream(api(stage), config, {"name": "S", "compression": "s2"}))
    wanted = ConsumerConfig(name="C", filter_subjects=["a", "b"])
    with pytest.raises(NotSupported):
        stage.run(change_consumer(api(stage), "S", wanted, {}))
    assert stage.quiet()


@pytest.mark.rule("D-CALL-17")
def test_differences_are_looked_up():
    stage = Stage({"config": {"name": "S", "max_msgs": 5}}, {"config": {"max_deliver": 5}})
    exists = StreamNameInUse(400, 10058, "in use")
    stage.run(explain(exists, api(stage), StreamConfig(name="S"), "S", ""))
    assert exists.different == ["max_msgs is 5, not 0"]
    exists = ConsumerExists(400, 10148, "exists")
    stage.run(explain(exists, api(stage), ConsumerConfig(name="C"), "S", "C"))
    assert exists.different == ["max_deliver is 5, not 0"]


@pytest.mark.rule("D-CALL-17")
@pytest.mark.parametrize("answer", [NOBODY, SILENCE, b"x", error(404, 10059)])
def test_an_error_stays_unchanged_if_the_lookup_fails(answer):
    stage = Stage(answer)
    exists = StreamNameInUse(400, 10058, "in use")
    stage.run(explain(exists, api(stage), StreamConfig(name="S"), "S", ""))
    assert str(exists) == "in use (400, 10058)"


@pytest.mark.rule("CALL-1")
def test_infos():
    stage = Stage({"config": {"name": "S"}}, {"name": "C"})
    assert stage.run(stream_info(api(stage), "S")).config.name == "S"
    assert stage.run(consumer_info(api(stage), "S", "C")).name == "C"
    for names in [("a.b", "C"), ("S", "a.b")]:
        with pytest.raises(InvalidName):
            stage.run(consumer_info(api(stage), *names))
    with pytest.raises(InvalidName):
        stage.run(stream_info(api(stage), ""))
