"""Errors and reprs do not repeat what they are about: logs are not the place for a payload."""

from __future__ import annotations

import pytest

from jetstream import JetStream, StreamConfig, counters, kv_errors, object_errors
from jetstream.errors import NoStreamResponse, PublishesFailed, SeveralStreams, WrongLastSequence
from jetstream.kv_entry import KeyValueEntry
from jetstream.messages import JsMsg
from jetstream.publisher import Publication
from jetstream.pull import Pull
from jetstream.stored import StoredMsg
from jetstream.timestamp import Timestamp
from natsproto import Headers, NatsError, encode, events, frames, subjects
from natsproto.effects import Publish
from natsproto.errors import LocalError, NoResponders
from natsproto.options import Options
from natsproto.parser import Parser

from . import kvs, objects
from .support import Stage

MANY = 1_000_000
TEXT = "x y\n" * (MANY // 4)  # no subject, name or header
TOKEN = "x" * MANY
DATA = b"\x00" * MANY
LIST = ["x"] * (MANY // 5)
NUMBER = 10**6000  # more digits than Python turns into text

CALLS = [  # name, call with a client, JetStream, key-value store, object store
    ("publish text", lambda nc, js, kv, os: nc.publish("a", TEXT)),
    ("publish list", lambda nc, js, kv, os: nc.publish("a", LIST)),
    ("publish subject", lambda nc, js, kv, os: nc.publish(TEXT)),
    ("publish empty token", lambda nc, js, kv, os: nc.publish(TOKEN + "..a")),
    ("publish bytes as subject", lambda nc, js, kv, os: nc.publish(DATA)),
    ("publish reply", lambda nc, js, kv, os: nc.publish("a", reply=TEXT)),
    ("publish too large", lambda nc, js, kv, os: nc.publish("a", DATA * 2)),
    ("header name", lambda nc, js, kv, os: nc.publish("a", headers={TEXT: "b"})),
    ("header value", lambda nc, js, kv, os: nc.publish("a", headers={TOKEN: TEXT})),
    ("header type", lambda nc, js, kv, os: nc.publish("a", headers={TOKEN: DATA})),
    ("header surrogate", lambda nc, js, kv, os: nc.publish("a", headers={"a": TOKEN + "\ud800"})),
    ("headers", lambda nc, js, kv, os: nc.publish("a", headers=LIST)),
    ("request timeout", lambda nc, js, kv, os: nc.request("a", timeout=TEXT)),
    ("request long timeout", lambda nc, js, kv, os: nc.request("a", timeout=NUMBER)),
    ("request_many", lambda nc, js, kv, os: nc.request_many("a", max_msgs=LIST)),
    ("request subject", lambda nc, js, kv, os: nc.request(TOKEN + ".*")),
    ("subscribe", lambda nc, js, kv, os: nc.subscribe(TEXT)),
    ("subscribe queue", lambda nc, js, kv, os: nc.subscribe("a", queue=TEXT)),
    ("subscribe limit", lambda nc, js, kv, os: nc.subscribe("a", max_msgs=TEXT)),
    ("subscribe type", lambda nc, js, kv, os: nc.subscribe(LIST)),
    ("create_stream name", lambda nc, js, kv, os: js.create_stream(name=TEXT)),
    ("create_stream long name", lambda nc, js, kv, os: js.create_stream(name=TOKEN)),
    ("create_stream subjects", lambda nc, js, kv, os: js.create_stream(name="S", subjects=TEXT)),
    ("create_stream field", lambda nc, js, kv, os: js.create_stream(name="S", max_msgs=LIST)),
    (
        "create_stream metadata",
        lambda nc, js, kv, os: js.create_stream(name="S", metadata={1: TEXT}),
    ),
    ("create_stream option", lambda nc, js, kv, os: js.create_stream(name="S", **{TOKEN: 1})),
    ("create_stream positional", lambda nc, js, kv, os: js.create_stream(TOKEN)),
    ("create_stream dict", lambda nc, js, kv, os: js.create_stream({"name": LIST})),
    ("stream", lambda nc, js, kv, os: js.stream(TEXT)),
    ("consumer", lambda nc, js, kv, os: js.consumer("S", TEXT)),
    ("create_consumer", lambda nc, js, kv, os: js.create_consumer("S", durable_name=TEXT)),
    ("js publish option", lambda nc, js, kv, os: js.publish("a", **{TOKEN: 1})),
    ("js publish id", lambda nc, js, kv, os: js.publish("a", msg_id=LIST)),
    ("js publish id text", lambda nc, js, kv, os: js.publish("a", msg_id=TEXT)),
    ("js publish ttl", lambda nc, js, kv, os: js.publish("a", ttl=TEXT)),
    ("js publish retries", lambda nc, js, kv, os: js.publish("a", retries=TEXT)),
    ("js publish payload", lambda nc, js, kv, os: js.publish("a", TEXT)),
    ("js subscribe", lambda nc, js, kv, os: js.subscribe(TEXT)),
    ("key_value", lambda nc, js, kv, os: js.key_value(TEXT)),
    ("create_key_value", lambda nc, js, kv, os: js.create_key_value(bucket=TEXT)),
    ("create_key_value positional", lambda nc, js, kv, os: js.create_key_value(TOKEN)),
    ("object_store", lambda nc, js, kv, os: js.object_store(TEXT)),
    ("kv get", lambda nc, js, kv, os: kv.get(TEXT)),
    ("kv get dots", lambda nc, js, kv, os: kv.get(TOKEN + "..")),
    ("kv put", lambda nc, js, kv, os: kv.put("k", TEXT)),
    ("kv put key", lambda nc, js, kv, os: kv.put("_kv" + TOKEN, b"")),
    ("kv keys", lambda nc, js, kv, os: kv.keys(TOKEN + ".x>")),
    ("kv keys list", lambda nc, js, kv, os: kv.keys({TEXT})),
    ("object get", lambda nc, js, kv, os: os.get(LIST)),
    ("object put", lambda nc, js, kv, os: os.put("a", TEXT)),
    ("object put name", lambda nc, js, kv, os: os.put(TOKEN + "\ud800", b"")),
    ("object link", lambda nc, js, kv, os: os.add_link("a", TEXT)),
    ("object bucket link", lambda nc, js, kv, os: os.add_bucket_link("a", TEXT)),
]


@pytest.mark.rule("ERR-11")
@pytest.mark.parametrize(("case", "call"), CALLS, ids=[row[0] for row in CALLS])
def test_an_error_about_a_large_value_is_short(case, call):
    stage = Stage(kvs.stream(), objects.stream())
    js = JetStream(stage.client)
    stores = (stage.run(js.key_value("b")), stage.run(js.object_store("b")))
    assert len(stage.asked) == 2

    async def run():
        await call(stage.client, js, *stores)

    with pytest.raises(NatsError) as caught:
        stage.run(run())
    assert isinstance(caught.value, LocalError)
    assert len(str(caught.value)) < 400, str(caught.value)
    assert stage.asked == []


SYNCHRONOUS = [
    lambda: encode.pub("a", TEXT),
    lambda: encode.sub("a", LIST),
    lambda: subjects.check_new_name("stream", TOKEN + "é"),
    lambda: Options(servers=TOKEN + "://" + TOKEN),
    lambda: Options(servers="nats://" + TOKEN + ":x"),
    lambda: Options(name=LIST),
    lambda: Options(ping_interval=TEXT),
    lambda: Options(verbose=TEXT),
    lambda: Options(max_msgs=NUMBER * -1),
    lambda: Options(inbox_prefix=TEXT),
    lambda: Parser(peer=TEXT),
    lambda: Headers({"a": TOKEN + "\n"}),
    lambda: StreamConfig(description=LIST),
    lambda: Timestamp.parse(TOKEN),
    lambda: counters.increment(TEXT),
]


@pytest.mark.rule("ERR-11")
@pytest.mark.parametrize("call", SYNCHRONOUS, ids=range(len(SYNCHRONOUS)))
def test_an_error_of_what_is_not_awaited_is_short(call):
    with pytest.raises(LocalError) as caught:
        call()
    assert len(str(caught.value)) < 400


TIME = Timestamp(0)
BLOCK = b"NATS/1.0\r\nA: " + TOKEN.encode() + b"\r\n\r\n"
MSG = frames.Msg(TOKEN.encode(), 1, TOKEN.encode(), DATA, BLOCK)
PUBLICATION = Publication(None, Publish(TOKEN.encode(), DATA, b"", BLOCK))
SHOWN = [
    MSG,
    frames.Pub(TOKEN.encode(), TOKEN.encode(), DATA, BLOCK),
    frames.Info({"server_id": TOKEN, "connect_urls": LIST}),
    frames.Err(TOKEN),
    frames.Sub(TOKEN, 1, TOKEN),
    MSG.headers,
    JsMsg(MSG, Stage().client.session),
    KeyValueEntry("b", TOKEN, DATA, 1, TIME),
    StoredMsg("S", TOKEN, 1, TIME, DATA, BLOCK),
    PUBLICATION,
    Publish(TOKEN.encode(), DATA, TOKEN.encode(), BLOCK),
    Pull(TOKEN.encode(), 1, 1, 1.0, TOKEN),
    events.ServerError(NoResponders(TOKEN)),
    events.SlowConsumer(TOKEN, 1, 2),
    events.Discovered(LIST),
    NoResponders(TOKEN),
    NoStreamResponse(TOKEN),
    PublishesFailed([PUBLICATION]),
    SeveralStreams(TOKEN, ["a", "b"]),
    kv_errors.KeyNotFound("b", TOKEN, 3),
    kv_errors.KeyDeleted(KeyValueEntry("b", TOKEN, b"", 1, TIME, operation="DEL")),
    kv_errors.KeyExists("b", TOKEN, WrongLastSequence(400, 10071, "wrong last sequence: 3")),
    object_errors.ObjectNotFound("b", TOKEN),
    object_errors.ObjectCorrupt("b", TOKEN, "digest"),
]


@pytest.mark.rule("ERR-11")
@pytest.mark.parametrize("thing", SHOWN, ids=[type(each).__name__ for each in SHOWN])
def test_the_repr_of_something_large_is_short(thing):
    for text in (repr(thing), str(thing)):
        assert len(text) < 1100, text
        assert "x" * 90 not in text or isinstance(thing, (frames.Info, Headers)), text
