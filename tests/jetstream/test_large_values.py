"""Errors and reprs do not repeat large values: payloads do not belong in logs."""

from __future__ import annotations

import pytest

from jetstream import JetStream, StreamConfig, blocking
from jetstream.api import counters
from jetstream.api.stored import StoredMsg
from jetstream.errors import (
    AmbiguousStream,
    ApiError,
    ConsumerMoved,
    NoStreamResponse,
    PublishesFailed,
    PullFailed,
    WrongLastSequence,
)
from jetstream.errors import kv as kv_errors
from jetstream.errors import objects as object_errors
from jetstream.kv.entry import KeyValueEntry
from jetstream.message import JsMsg
from jetstream.objects.info import ObjectInfo, ObjectMeta
from jetstream.objects.read import ObjectReader
from jetstream.publish.window_machine import Publication
from jetstream.pull.ledger import Pull
from jetstream.pull.messages import Batch
from jetstream.schema.info import PubAck, StreamInfo
from jetstream.schema.timestamp import Timestamp
from jetstream.streams.stream import Stream
from natsproto import Headers, NatsError, encode, events, workers
from natsproto.adapters.driver import make_connection
from natsproto.connection.effects import Publish
from natsproto.connection.servers import Server
from natsproto.errors import ConnectFailed, LocalError, NoResponders
from natsproto.options import Options
from natsproto.urls import ServerUrl
from natsproto.wire import frames, subjects
from natsproto.wire.parser import Parser
from tests.jetstream import kvs
from tests.jetstream import object_stores as objects
from tests.jetstream.support import Stage

MANY = 1_000_000
TEXT = "x y\n" * (MANY // 4)  # no subject, name or header
TOKEN = "x" * MANY
DATA = b"\x00" * MANY
LIST = ["x"] * (MANY // 5)
NUMBER = 10**6000  # more digits than Python turns into text
LINK = {"link": {"bucket": "b", "name": "a"}}

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
    ("js subscribe durable", lambda nc, js, kv, os: js.subscribe("a", durable=LIST)),
    (
        "js subscribe two durables",
        lambda nc, js, kv, os: js.subscribe("a", durable=TOKEN, durable_name="b"),
    ),
    ("js subscribe two filters", lambda nc, js, kv, os: js.subscribe(TOKEN, filter_subject="b")),
    ("js subscribe ordered", lambda nc, js, kv, os: js.subscribe("a", ordered=True, queue=TOKEN)),
    ("js subscribe pull only", lambda nc, js, kv, os: js.subscribe("a", priority_groups=[TOKEN])),
    (
        "js subscribe heartbeat",
        lambda nc, js, kv, os: js.subscribe("a", queue=TOKEN, idle_heartbeat=1),
    ),
    (
        "js subscribe flow control",
        lambda nc, js, kv, os: js.subscribe(
            "a", queue=TOKEN, deliver_group=TOKEN, flow_control=True, idle_heartbeat=1
        ),
    ),
    ("js subscribe alarm", lambda nc, js, kv, os: js.subscribe("a", alarm_after=LIST)),
    ("js subscribe field", lambda nc, js, kv, os: js.subscribe("a", **{TOKEN: 1})),
    ("pull_subscribe durable", lambda nc, js, kv, os: js.pull_subscribe("a", durable=LIST)),
    (
        "pull_subscribe two durables",
        lambda nc, js, kv, os: js.pull_subscribe("a", durable=TOKEN, durable_name="b"),
    ),
    (
        "pull_subscribe two filters",
        lambda nc, js, kv, os: js.pull_subscribe(TOKEN, "b", filter_subject="b"),
    ),
    (
        "pull_subscribe push only",
        lambda nc, js, kv, os: js.pull_subscribe("a", "b", deliver_subject=TOKEN),
    ),
    (
        "create_stream mirror",
        lambda nc, js, kv, os: js.create_stream(name="S", mirror={"name": TOKEN}, subjects=[TOKEN]),
    ),
    (
        "create_stream source",
        lambda nc, js, kv, os: js.create_stream(
            name="S", sources=[{"name": TOKEN, "filter_subject": TEXT}]
        ),
    ),
    ("create_stream subject", lambda nc, js, kv, os: js.create_stream(name="S", subjects=[TEXT])),
    (
        "create_stream description",
        lambda nc, js, kv, os: js.create_stream(name="S", description=TEXT),
    ),
    (
        "create_key_value source",
        lambda nc, js, kv, os: js.create_key_value(
            bucket="b", sources=[{"name": TOKEN, "filter_subject": TOKEN}]
        ),
    ),
    ("pause_consumer", lambda nc, js, kv, os: js.pause_consumer("S", "c", TEXT)),
    ("pause_consumer number", lambda nc, js, kv, os: js.pause_consumer("S", "c", NUMBER)),
    ("unpin_consumer", lambda nc, js, kv, os: js.unpin_consumer("S", "c", TOKEN)),
    ("delete_stream", lambda nc, js, kv, os: js.delete_stream(TEXT)),
    ("consumer_names", lambda nc, js, kv, os: js.consumer_names(TEXT)),
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
    (
        "object put link",
        lambda nc, js, kv, os: os.put(ObjectMeta(name=TOKEN, options=LINK), b""),
    ),
    ("object update", lambda nc, js, kv, os: os.update_meta("a", LIST)),
    ("object link", lambda nc, js, kv, os: os.add_link("a", TEXT)),
    ("object bucket link", lambda nc, js, kv, os: os.add_bucket_link("a", TEXT)),
]

# How much of these values an error shows: about 80 characters.
TOO_MUCH = ["x" * 90, "x y\\n" * 18, "x y\n" * 18, "'x', " * 18, "\\x00" * 23]


def check_short(text):
    assert len(text) < 400, text
    assert [part for part in TOO_MUCH if part in text] == []


@pytest.mark.rule("D-ERR-11")
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
    check_short(str(caught.value))
    assert stage.asked == []


HANDLES = [  # call with a stream and a consumer
    lambda stream, consumer: stream.purge(subject=TEXT),
    lambda stream, consumer: stream.purge(seq=LIST),
    lambda stream, consumer: stream.get_msg(TEXT),
    lambda stream, consumer: stream.get_msg(NUMBER),
    lambda stream, consumer: stream.get_msg(
        TEXT, last_by_subject=TOKEN, next_by_subject=TOKEN + ".a"
    ),
    lambda stream, consumer: stream.get_msgs(batch=LIST),
    lambda stream, consumer: stream.get_msgs(batch=1, seq=TEXT, start_time=1),
    lambda stream, consumer: stream.get_msgs(batch=1, seq=NUMBER, start_time=1),
    lambda stream, consumer: stream.get_msgs(batch=1, start_time=TEXT),
    lambda stream, consumer: stream.get_msgs(batch=1, start_time=LIST),
    lambda stream, consumer: stream.get_last_msgs(TOKEN),
    lambda stream, consumer: stream.get_last_msgs([TEXT]),
    lambda stream, consumer: stream.get_last_msgs(["a"], up_to_seq=TEXT, up_to_time=1),
    lambda stream, consumer: stream.get_last_msgs(["a"], up_to_time=NUMBER),
    lambda stream, consumer: stream.delete_msg(TEXT),
    lambda stream, consumer: stream.ordered_consumer(filter_subjects=TEXT),
    lambda stream, consumer: stream.ordered_consumer(name_prefix=TEXT),
    lambda stream, consumer: consumer.fetch(1, group=TEXT),
    lambda stream, consumer: consumer.fetch(1, group=LIST),
    lambda stream, consumer: consumer.fetch(1, **{TOKEN: 1}),
    lambda stream, consumer: consumer.fetch(1, expires=TEXT),
    lambda stream, consumer: consumer.fetch(1, heartbeat=NUMBER),
    lambda stream, consumer: consumer.fetch(1, no_wait=True, heartbeat=TEXT),
    lambda stream, consumer: consumer.fetch(LIST, max_bytes=LIST),
    lambda stream, consumer: consumer.fetch(LIST),
    lambda stream, consumer: consumer.next(timeout=TEXT),
    lambda stream, consumer: consumer.consume(max_messages=LIST, max_bytes=TEXT),
    lambda stream, consumer: consumer.consume(threshold_bytes=TEXT),
    lambda stream, consumer: consumer.consume(heartbeat=LIST),
    lambda stream, consumer: consumer.consume(stop_after=NUMBER),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize("call", HANDLES, ids=range(len(HANDLES)))
def test_an_error_of_a_handle_is_short(call):
    stage = Stage({"config": {"name": "S"}}, {"stream_name": "S", "name": "c", "config": {}})
    js = JetStream(stage.client)
    handles = (stage.run(js.stream("S")), stage.run(js.consumer("S", "c")))
    assert len(stage.asked) == 2

    async def run():
        await call(*handles)

    with pytest.raises(LocalError) as caught:
        stage.run(run())
    check_short(str(caught.value))
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
    lambda: Timestamp.parse("2024-01-02T03:04:05." + "7" * MANY),
    lambda: Timestamp.parse(LIST),
    lambda: Timestamp.of(LIST),
    lambda: Timestamp(NUMBER),
    lambda: Timestamp(TEXT),
    lambda: counters.increment(TEXT),
    lambda: JetStream(LIST),
    lambda: JetStream(Stage().client, domain=TEXT),
    lambda: blocking.JetStream(LIST),
    lambda: JetStream(Stage().client).bind_consumer("S", TEXT),
    lambda: workers.check_callback(LIST, "D-RUN-1"),
    lambda: Options(servers=["nats://" + TOKEN, "ws://" + TOKEN]),
    lambda: Options(servers="ws://" + TOKEN, tls=True),
    lambda: make_connection("nats://a", {TOKEN: 1}),
    lambda: make_connection("nats://a", {"creds": "a/" * 40 + "x" * 200}),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize("call", SYNCHRONOUS, ids=range(len(SYNCHRONOUS)))
def test_errors_of_unawaited_work_are_short(call):
    with pytest.raises(LocalError) as caught:
        call()
    check_short(str(caught.value))


TIME = Timestamp(0)
BLOCK = b"NATS/1.0\r\nA: " + TOKEN.encode() + b"\r\n\r\n"
MSG = frames.Msg(TOKEN.encode(), 1, TOKEN.encode(), DATA, BLOCK)
INFO = StreamInfo.from_json({"config": {"name": TOKEN, "subjects": LIST}, "later": LIST})
URL = ServerUrl.parse("nats://" + TOKEN)
PUBLICATION = Publication(None, TOKEN.encode(), DATA, BLOCK)
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
    AmbiguousStream(TOKEN, LIST),
    ConsumerMoved(TOKEN, TOKEN, TOKEN),
    PullFailed(409, TOKEN, "consumer 'c' of stream 'S'"),
    ApiError(500, 1, TOKEN),
    ConnectFailed([(str(URL), OSError("refused"))]),
    [URL],
    Server(URL, True, ""),
    Batch([], ApiError(500, 1, TOKEN)),
    StreamConfig(name=TOKEN, subjects=LIST, metadata={"a": TOKEN}),
    INFO,
    Stream(None, None, INFO),
    PubAck.from_json({"stream": TOKEN, "seq": 1, "domain": TOKEN}),
    ObjectReader(None, ObjectInfo(name=TOKEN), None),
    JetStream(Stage().client, prefix=TOKEN),
    kv_errors.BucketNotFound(TOKEN),
    kv_errors.BucketExists(TOKEN),
    kv_errors.NotABucket(TOKEN),
    kv_errors.WrongLastRevision(TOKEN, TOKEN, 3, WrongLastSequence(400, 10071, TOKEN)),
    kv_errors.KeyNotFound("b", TOKEN, 3),
    kv_errors.KeyDeleted(KeyValueEntry("b", TOKEN, b"", 1, TIME, operation="DEL")),
    kv_errors.KeyExists("b", TOKEN, WrongLastSequence(400, 10071, "wrong last sequence: 3")),
    object_errors.ObjectNotFound("b", TOKEN),
    object_errors.ObjectCorrupt("b", TOKEN, "digest"),
]

# Structures are cut later.
STRUCTURES = (frames.Info, Headers, StreamConfig)


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize("thing", SHOWN, ids=[type(each).__name__ for each in SHOWN])
def test_the_repr_of_something_large_is_short(thing):
    for text in (repr(thing), str(thing)):
        assert len(text) < 1100, text
        assert "x" * 90 not in text or isinstance(thing, STRUCTURES), text
