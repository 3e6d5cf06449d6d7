"""Links that another client wrote, without a nuid, on a scripted bucket."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import ObjectAlreadyExists, PublishInDoubt
from jetstream.objects import ObjectInfo
from tests.jetstream.object_stores import (
    PURGED,
    ack,
    by_api,
    created,
    delivery,
    direct,
    info_json,
    listed,
    short,
    store,
    token,
)
from tests.jetstream.support import SILENCE

NAME = "1" * 22
STORED = by_api(info_json())


def written(stage, name):
    subject = "$O.b.M." + token(name)
    return [json.loads(pub.data) for pub in stage.pubs if pub.subject == subject]


# As nats.js writes it: without nuid, size and chunks.
JS_LINK = {"name": "l", "bucket": "b", "options": {"link": {"bucket": "b", "name": "o"}}}


@pytest.mark.rule("OBJ-42")
def test_a_link_of_another_client():
    stage, bucket = store(direct(JS_LINK), direct(info_json()))
    assert stage.run(bucket.get("l")).info.name == "o"
    stage, bucket = store(direct(JS_LINK), ack(9))
    stage.run(bucket.delete("l"))
    assert written(stage, "l")[0]["deleted"] is True
    assert stage.answers == []  # there is nothing to purge
    stage, bucket = store(direct(JS_LINK), ack(9), STORED)
    stage.run(bucket.add_link("l", ObjectInfo.from_json(info_json())))
    assert stage.answers == []
    stage, bucket = store(direct({**JS_LINK, "deleted": True}))
    stage.run(bucket.delete("l"))
    assert stage.answers == []
    data = json.dumps(JS_LINK).encode()
    comes = [delivery("$O.b.M." + token("l"), data, 1, 0, NAME)]
    stage, bucket = store(listed("l"), created(NAME, 1), comes, SILENCE)
    assert [info.name for info in stage.run(bucket.list())] == ["l"]


@pytest.mark.rule("OBJ-42")
def test_a_deletion_of_such_a_link_in_doubt():
    stage, bucket = store(direct(JS_LINK), SILENCE)
    with pytest.raises(PublishInDoubt):
        stage.run(bucket.delete("l"))
    assert [subject for subject in short(stage) if ".API." in subject] == []
    assert stage.answers == []


@pytest.mark.rule("OBJ-33", "OBJ-42")
@pytest.mark.parametrize(("to", "taken"), [("o", False), ("x", True)])
def test_rename_such_a_link(to, taken):
    other = {**JS_LINK, "name": "m", "options": {"link": {"bucket": "b", "name": to}}}
    more = [] if taken else [ack(9), PURGED, STORED]
    stage, bucket = store(direct(JS_LINK), direct(other), *more)
    if taken:
        with pytest.raises(ObjectAlreadyExists, match="'m'"):
            stage.run(bucket.update_meta("l", new_name="m"))
    else:  # the same one, from a call that was not finished
        assert stage.run(bucket.update_meta("l", new_name="m")).name == "m"
    assert stage.answers == []
