"""One bucket, on a scripted stream."""

from __future__ import annotations

import inspect
import json
import re

import pytest

from jetstream.blocking.kv import KeyValue as BlockingKeyValue
from jetstream.errors import (
    BucketNotFound,
    InvalidResponse,
    KeyDeleted,
    KeyExists,
    KeyNotFound,
    NoStreamResponse,
    PublishTimeout,
    TtlDisabled,
    WrongLastRevision,
)
from jetstream.kv import (
    Base64Codec,
    KeyLister,
    KeyValue,
    KeyValueConfig,
    KeyValueEntry,
    KeyValueStatus,
    KeyWatcher,
)
from jetstream.kv.options import WatchOptions
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidName, InvalidValue, NotSupported
from tests.jetstream.kvs import (
    NO_STREAM,
    TIME,
    bucket,
    created,
    direct,
    entry,
    listed,
    short,
    stream,
    there,
)
from tests.jetstream.support import NOBODY, SILENCE, Status

NOT_FOUND = Status("404 Message Not Found")
NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}


def ack(seq):
    return {"stream": "KV_b", "seq": seq}


def wrong(last=None):
    code, text = (10164, "") if last is None else (10071, ": %d" % last)
    return {"error": {"code": 400, "err_code": code, "description": "wrong last sequence" + text}}


def by_api(key, seq, operation=""):
    """Return a message as STREAM.MSG.GET answers it; `dg==` is v."""
    hdrs = {"DEL": "TkFUUy8xLjANCktWLU9wZXJhdGlvbjogREVMDQoNCg==", "": ""}[operation]
    message = {"subject": "$KV.b." + key, "seq": seq, "time": TIME, "data": "dg==", "hdrs": hdrs}
    return {"message": message}


def value(key, seq, data=b"v", operation="PUT"):
    return KeyValueEntry("b", key, data, seq, Timestamp.parse(TIME), 0, operation)


# Codecs


@pytest.mark.rule("KVCODEC-1")
def test_a_bucket_with_codecs_stores_encoded_keys_and_values():
    stage, plain = bucket(ack(7), direct("YSBi", 7, b"dg"), wrong(7), direct("YSBi", 7, b"dg"))
    kv = plain.with_codecs(keys=Base64Codec(), values=Base64Codec())
    assert stage.run(kv.put("a b", b"v")) == 7
    assert [(pub.subject, pub.data) for pub in stage.pubs] == [("$KV.b.YSBi", b"dg")]
    assert stage.run(kv.get("a b")) == value("a b", 7)
    with pytest.raises(KeyExists, match="key 'a b' already exists"):
        stage.run(kv.create("a b", b"v"))
    with pytest.raises(InvalidName):
        stage.run(plain.put("a b", b"v"))
    assert repr(kv) == repr(plain)


@pytest.mark.rule("KVCODEC-1")
def test_history_and_keys_of_a_bucket_with_codecs():
    comes = [entry("YSBi", 3, 1, 1), entry("YSBi", 4, 2, 0, "DEL")]
    stage, plain = bucket(listed(YSBi=2), created(2), comes, SILENCE)
    found = stage.run(plain.with_codecs(keys=Base64Codec()).history("a b"))
    assert [(each.key, each.operation) for each in found] == [("a b", "PUT"), ("a b", "DEL")]
    stage, plain = bucket(there(1), created(1), [entry("YSBi", 3, 1, 0)], SILENCE)
    assert stage.run(plain.with_codecs(keys=Base64Codec()).keys()) == ["a b"]


# Reading

GETS = [
    # answers; the requests; the result
    ([direct("a.c", 7)], ["DIRECT.GET.KV_b.$KV.b.a.c"], value("a.c", 7)),
    ([NOT_FOUND], ["DIRECT.GET.KV_b.$KV.b.a.c"], KeyNotFound),
    (
        [NOBODY, by_api("a.c", 7)],
        ["DIRECT.GET.KV_b.$KV.b.a.c", "STREAM.MSG.GET.KV_b"],
        value("a.c", 7),
    ),
    ([NOBODY, NO_MESSAGE], ["DIRECT.GET.KV_b.$KV.b.a.c", "STREAM.MSG.GET.KV_b"], KeyNotFound),
    ([NOBODY, NO_STREAM], ["DIRECT.GET.KV_b.$KV.b.a.c", "STREAM.MSG.GET.KV_b"], BucketNotFound),
]


@pytest.mark.rule("KV-26")
@pytest.mark.parametrize(("answers", "asked", "gives"), GETS)
def test_get(answers, asked, gives):
    stage, kv = bucket(*answers)
    if isinstance(gives, KeyValueEntry):
        assert stage.run(kv.get("a.c")) == gives
    else:
        with pytest.raises(gives):
            stage.run(kv.get("a.c"))
    assert short(stage) == asked


@pytest.mark.rule("KV-26")
def test_get_without_direct_get():
    stage, kv = bucket(by_api("a", 7), by_api("a", 5), allow_direct=False)
    assert stage.run(kv.get("a")) == value("a", 7)
    assert stage.run(kv.get("a", 5)) == value("a", 5)
    assert stage.asked == [
        ("$JS.API.STREAM.MSG.GET.KV_b", {"last_by_subj": "$KV.b.a"}),
        ("$JS.API.STREAM.MSG.GET.KV_b", {"seq": 5}),
    ]


@pytest.mark.rule("KV-27")
def test_get_a_revision():
    stage, kv = bucket(direct("a", 5), direct("other", 6), NOT_FOUND, NOBODY, by_api("a", 8))
    assert stage.run(kv.get("a", 5)) == value("a", 5)
    for revision in (6, 7):
        with pytest.raises(KeyNotFound, match="'a' with revision %d" % revision) as caught:
            stage.run(kv.get("a", revision=revision))
        assert caught.value.revision == revision
    assert stage.run(kv.get("a", 8)).revision == 8
    bodies = [("$JS.API.DIRECT.GET.KV_b", {"seq": seq}) for seq in (5, 6, 7, 8)]
    assert stage.asked == [*bodies, ("$JS.API.STREAM.MSG.GET.KV_b", {"seq": 8})]


@pytest.mark.rule("KV-28")
@pytest.mark.parametrize("operation", ["DEL", "PURGE"])
def test_get_a_deleted_key(operation):
    stage, kv = bucket(*[direct("a", 7, b"", operation)] * 2)
    for revision in (None, 7):
        with pytest.raises(KeyDeleted) as caught:
            stage.run(kv.get("a", revision))
        assert isinstance(caught.value, KeyNotFound)
        assert caught.value.entry == value("a", 7, b"", operation)
        assert (caught.value.revision, caught.value.operation) == (7, operation)


@pytest.mark.rule("KV-30")
def test_history():
    comes = [entry("a", 3, 1, 2), entry("a", 4, 2, 1, "DEL"), entry("a", 9, 3, 0)]
    stage, kv = bucket(listed(a=3), created(3), comes, SILENCE)
    found = stage.run(kv.history("a"))
    assert [(each.revision, each.operation, each.delta) for each in found] == [
        (3, "PUT", 2),
        (4, "DEL", 1),
        (9, "PUT", 0),
    ]
    assert short(stage) == [
        "STREAM.INFO.KV_b",
        "CONSUMER.CREATE.KV_b.w_1.$KV.b.a",
        "CONSUMER.MSG.NEXT.KV_b.w_1",
        "CONSUMER.DELETE.KV_b.w_1",
    ]
    stage, kv = bucket(listed(), created(0))
    with pytest.raises(KeyNotFound):
        stage.run(kv.history("a"))


@pytest.mark.rule("KV-38")
def test_keys():
    twice = [entry("c", 3, 1, 2), entry("a", 4, 2, 1), entry("c", 5, 3, 0)]
    stage, kv = bucket(there(2, 4), created(3), twice, SILENCE)
    assert stage.run(kv.keys()) == ["a", "c"]
    assert json.loads(stage._pubs[1].data)["config"]["headers_only"] is True
    assert short(stage)[1] == "CONSUMER.CREATE.KV_b.w_1.$KV.b.>"
    gone = [entry("c", 3, 1, 2), entry("c", 4, 2, 1, "DEL"), entry("a", 5, 3, 0)]
    stage, kv = bucket(there(2, 5), created(3), gone)
    assert stage.run(kv.keys()) == ["a"]
    stage, kv = bucket(listed(), listed(), created(0))
    assert stage.run(kv.keys(["a", "c.*"])) == []
    assert stage._pubs[2].subject == "$JS.API.CONSUMER.CREATE.KV_b.%s_1" % ("1" * 22)


def test_watchers_and_listers():
    stage, kv = bucket(listed(), created())
    assert isinstance(stage.run(kv.watch("a")), KeyWatcher)
    stage, kv = bucket(created())
    assert isinstance(stage.run(kv.watch_all(updates_only=True)), KeyWatcher)
    assert stage._pubs[0].subject.endswith(".$KV.b.>")
    stage, kv = bucket(there(0), created())
    assert isinstance(stage.run(kv.list_keys()), KeyLister)


OPTIONS = [
    # an option of watch and watch_all, and what the server or the watcher makes of it
    ({"include_history": True}, {"deliver_policy": "all"}),
    ({"updates_only": True}, {"deliver_policy": "new"}),
    ({"resume_from_revision": 7}, {"deliver_policy": "by_start_sequence", "opt_start_seq": 7}),
    ({"meta_only": True}, {"deliver_policy": "last_per_subject", "headers_only": True}),
    ({"ignore_deletes": True}, {"deliver_policy": "last_per_subject"}),
]


@pytest.mark.rule("KV-33", "KV-34")
@pytest.mark.parametrize("call", ["watch", "watch_all"])
@pytest.mark.parametrize(("options", "fields"), OPTIONS)
def test_options_of_watches(options, fields, call):
    answers = [] if "updates_only" in options else [listed()]
    stage, kv = bucket(*answers, created())
    watcher = stage.run(getattr(kv, call)(**options))
    config = json.loads(stage._pubs[-1].data)["config"]
    names = ("deliver_policy", "opt_start_seq", "headers_only")
    assert {name: config[name] for name in names if name in config} == fields
    assert watcher._options.ignore_deletes is ("ignore_deletes" in options)


@pytest.mark.parametrize("store", [KeyValue, BlockingKeyValue])
def test_signatures_name_every_option_of_a_watch(store):
    options = list(inspect.signature(WatchOptions).parameters.values())
    for method, expected in [(store.watch, options), (store.watch_all, options[1:])]:
        found = list(inspect.signature(method).parameters.values())[1:]
        assert found == expected
        text = inspect.getdoc(method)  # from Python 3.13 on, __doc__ has no indentation
        for option in expected:
            assert "\n%s" % option.name in text


# Writing


@pytest.mark.rule("KV-18")
def test_put():
    stage, kv = bucket(ack(7), ack(8))
    assert stage.run(kv.put("a.c", b"v")) == 7
    assert stage.run(kv.put("a.c", bytearray(b"w"))) == 8
    first, second = stage.pubs
    assert (first.subject, first.data, first.headers) == ("$KV.b.a.c", b"v", None)
    assert second.data == b"w"


@pytest.mark.rule("KV-19")
@pytest.mark.parametrize(
    ("options", "front"),
    [({"domain": "hub"}, "$JS.hub.API."), ({"prefix": "fromA"}, "fromA."), ({}, "")],
)
def test_prefixes(options, front):
    stage, kv = bucket(ack(7), ack(8), direct("a", 7), info=options)
    stage.run(kv.put("a", b"v"))
    stage.run(kv.delete("a"))
    stage.run(kv.get("a"))
    api = front or "$JS.API."
    assert [subject for subject, _ in stage.asked] == [
        front + "$KV.b.a",
        front + "$KV.b.a",
        api + "DIRECT.GET.KV_b.$KV.b.a",
    ]


MIRRORS = [
    # mirror; options of JetStream; where it reads, where it writes
    ({"name": "KV_o"}, {}, "$KV.o.a", "$KV.o.a"),
    ({"name": "EVENTS"}, {}, "$KV.b.a", "$KV.b.a"),
    ({"name": "KV_o"}, {"domain": "leaf"}, "$KV.o.a", "$JS.leaf.API.$KV.o.a"),
    (
        {"name": "KV_o", "external": {"api": "$JS.hub.API"}},
        {"domain": "leaf"},
        "$KV.o.a",
        "$JS.hub.API.$KV.o.a",
    ),
    ({"name": "KV_o", "external": {"deliver": "x"}}, {}, "$KV.o.a", "$KV.o.a"),
    (
        {"name": "KV_o", "subject_transforms": [{"src": "$KV.o.>", "dest": "$KV.b.>"}]},
        {},
        "$KV.b.a",
        "$KV.o.a",
    ),
    (
        {"name": "KV_o", "subject_transforms": [{"src": "$KV.o.x.>", "dest": "$KV.o.>"}]},
        {},
        "$KV.o.a",
        "$KV.o.a",
    ),
]


@pytest.mark.rule("KV-29")
@pytest.mark.parametrize(("mirror", "options", "reads", "writes"), MIRRORS)
def test_mirrors(mirror, options, reads, writes):
    found = direct("a", 7)
    found.block = found.block.replace(b"$KV.b.a", reads.encode())
    stage, kv = bucket(found, ack(8), info=options, mirror=mirror)
    assert stage.run(kv.get("a")) == value("a", 7)
    assert stage.run(kv.put("a", b"w")) == 8
    get, put = [subject for subject, _ in stage.asked]
    assert get.endswith(".DIRECT.GET.KV_b." + reads)
    assert put == writes


CREATES = [
    # answers; the last sequences that were expected, "get" and "ask" for reads; the result
    ("new", [ack(7)], ["0"], 7),
    ("there", [wrong(5), direct("a", 5)], ["0", "get"], KeyExists),
    ("deleted", [wrong(5), direct("a", 5, b"", "DEL"), ack(7)], ["0", "get", "5"], 7),
    ("purged", [wrong(5), direct("a", 5, b"", "PURGE"), ack(7)], ["0", "get", "5"], 7),
    ("replicated", [wrong(), direct("a", 5, b"", "DEL"), ack(7)], ["0", "get", "5"], 7),
    (
        "another client was first",
        [wrong(5), direct("a", 5, b"", "DEL"), wrong(6)],
        ["0", "get", "5"],
        KeyExists,
    ),
    pytest.param(
        "an old read",
        [wrong(5), direct("a", 4), by_api("a", 5, "DEL"), ack(7)],
        ["0", "get", "ask", "5"],
        7,
        marks=pytest.mark.rule("KV-21"),
    ),
    pytest.param(
        "an older read",
        [wrong(), NOT_FOUND, by_api("a", 5), ack(7)],
        ["0", "get", "ask"],
        KeyExists,
        marks=pytest.mark.rule("KV-21"),
    ),
    pytest.param(
        "gone meanwhile",
        [wrong(5), NOT_FOUND, NO_MESSAGE, ack(7)],
        ["0", "get", "ask", "0"],
        7,
        marks=pytest.mark.rule("KV-21"),
    ),
]


def expectations(stage):
    words = []
    for pub in stage.pubs:
        if pub.subject == "$KV.b.a":
            words.append(pub.headers["Nats-Expected-Last-Subject-Sequence"])
        else:
            words.append("get" if ".DIRECT.GET." in pub.subject else "ask")
    return words


@pytest.mark.rule("KV-20")
@pytest.mark.parametrize(("name", "answers", "asked", "gives"), CREATES)
def test_create(name, answers, asked, gives):
    stage, kv = bucket(*answers)
    if gives is KeyExists:
        with pytest.raises(KeyExists, match="'a' already exists in bucket 'b'"):
            stage.run(kv.create("a", b"v"))
    else:
        assert stage.run(kv.create("a", b"v")) == gives
    assert expectations(stage) == asked


@pytest.mark.rule("KV-24")
def test_ttl():
    stage, kv = bucket(wrong(5), direct("a", 5, b"", "DEL"), ack(7), ack(8))
    stage.run(kv.create("a", b"v", ttl=60))
    stage.run(kv.purge("a", ttl=3600))
    first, _, second, purge = stage.pubs
    assert [pub.headers["Nats-TTL"] for pub in (first, second, purge)] == ["60", "60", "3600"]
    refused = {"error": {"code": 400, "err_code": 10166, "description": "TTL is disabled"}}
    stage, kv = bucket(refused)
    with pytest.raises(TtlDisabled):
        stage.run(kv.create("a", b"v", ttl=60))


@pytest.mark.rule("KV-24")
def test_ttl_on_an_old_server():
    stage, kv = bucket()
    stage.connection.info.api_lvl = 0
    stage.connection.info.version = "2.10.0"
    for call in (kv.create("a", b"v", ttl=60), kv.purge("a", ttl=60)):
        with pytest.raises(NotSupported):
            stage.run(call)
    assert stage.quiet()


@pytest.mark.rule("KV-22")
def test_update():
    stage, kv = bucket(ack(7), ack(8), wrong(8), wrong())
    assert stage.run(kv.update("a", b"v", 6)) == 7
    assert stage.run(kv.update("a", b"v", last=0)) == 8
    for last_seq in (8, None):
        with pytest.raises(WrongLastRevision, match="is not at revision 6") as caught:
            stage.run(kv.update("a", b"v", 6))
        assert (caught.value.last, caught.value.last_seq) == (6, last_seq)
    assert expectations(stage) == ["6", "0", "6", "6"]


DELETIONS = [
    # call, keywords, headers
    ("delete", {}, [("KV-Operation", "DEL")]),
    ("purge", {}, [("KV-Operation", "PURGE"), ("Nats-Rollup", "sub")]),
]


@pytest.mark.rule("KV-23")
@pytest.mark.parametrize(("call", "keywords", "headers"), DELETIONS)
def test_delete_and_purge(call, keywords, headers):
    stage, kv = bucket(ack(7), ack(8), wrong(8))
    assert stage.run(getattr(kv, call)("_kv.a")) == 7
    [pub] = stage.pubs
    assert (pub.subject, pub.data, pub.headers.items()) == ("$KV.b._kv.a", b"", headers)
    assert stage.run(getattr(kv, call)("a", last=7)) == 8
    with pytest.raises(WrongLastRevision):
        stage.run(getattr(kv, call)("a", last=7))
    expected = ("Nats-Expected-Last-Subject-Sequence", "7")
    assert [pub.headers.items() for pub in stage.pubs] == [[*headers, expected]] * 2


@pytest.mark.rule("D-KV-48")
def test_errors_of_a_put():
    stage, kv = bucket(NOBODY, NOBODY, NOBODY, NOBODY, SILENCE, {"seq": 1})
    for error in (NoStreamResponse, PublishTimeout, InvalidResponse):
        with pytest.raises(error):
            stage.run(kv.put("a", b"v"))


@pytest.mark.rule("D-KV-48")
@pytest.mark.parametrize(
    ("answer", "error"), [(NO_STREAM, BucketNotFound), (stream(), NoStreamResponse)]
)
def test_put_into_a_deleted_bucket(answer, error):
    stage, kv = bucket(NOBODY, NOBODY, NOBODY, answer)
    with pytest.raises(error) as caught:
        stage.run(kv.put("a", b"v"))
    assert getattr(caught.value, "bucket", "b") == "b"


@pytest.mark.rule("D-KV-49")
@pytest.mark.parametrize("call", [("create", "a", b"v"), ("purge", "a")])
def test_a_ttl_that_is_not_allowed(call):
    text = "per-message TTL is disabled"
    refusal = {"error": {"code": 400, "err_code": 10166, "description": text}}
    stage, kv = bucket(refusal)
    with pytest.raises(TtlDisabled, match=r"bucket 'b' .* no limit_marker_ttl"):
        stage.run(getattr(kv, call[0])(*call[1:], ttl=60))


WRONG = [
    ("get", ("a..b",), InvalidName),
    ("get", ("a", 0), InvalidValue),
    ("get", ("a", "7"), InvalidValue),
    ("get", ("a", True), InvalidValue),
    ("history", ("*",), InvalidName),
    ("keys", ("a..b",), InvalidName),
    ("list_keys", ([],), InvalidValue),
    ("watch", ("",), InvalidName),
    ("put", ("é", b""), InvalidName),
    ("put", ("_kv", b""), InvalidName),
    ("put", ("a", "text"), InvalidValue),
    ("create", ("a b", b""), InvalidName),
    ("create", ("_kv", b""), InvalidName),
    ("update", ("", b"", 1), InvalidName),
    ("update", ("_kv", b"", 1), InvalidName),
    ("update", ("a", b"", None), InvalidValue),
    ("update", ("a", b"", -1), InvalidValue),
    ("delete", (">",), InvalidName),
    ("purge", ("a.",), InvalidName),
    ("purge_deletes", (-1,), InvalidValue),
    ("purge_deletes", ("1h",), InvalidValue),
    ("purge_deletes", (float("nan"),), InvalidValue),
    ("purge_deletes", (float("inf"),), InvalidValue),
]


@pytest.mark.rule("KV-2", "KV-3", "KV-22")
@pytest.mark.parametrize(("call", "args", "error"), WRONG)
def test_wrong_calls_are_not_sent(call, args, error):
    stage, kv = bucket()
    with pytest.raises(error):
        stage.run(getattr(kv, call)(*args))
    assert stage.quiet()


@pytest.mark.rule("KV-22")
@pytest.mark.parametrize("call", ["delete", "purge", "update"])
@pytest.mark.parametrize("last", [-1, "7", 1.5, True, 2**64])
def test_wrong_revisions(call, last):
    stage, kv = bucket()
    value = (b"v",) if call == "update" else ()
    with pytest.raises(InvalidValue, match=re.escape("last %r is not" % last)) as caught:
        stage.run(getattr(kv, call)("a", *value, last=last))
    assert caught.value.rule == "KV-22"
    assert stage.quiet()


AGES = [
    # older_than; what is purged: key, and the sequence that ends it
    (0, [("a", 4), ("c", 8)]),
    (59.0, [("a", 4), ("c", 8)]),
    (61.0, [("a", 3), ("c", 7)]),
]


@pytest.mark.rule("KV-31")
@pytest.mark.parametrize(("older_than", "purged"), AGES)
def test_purge_deletes(older_than, purged):
    # These messages are of 1970-01-01T00:00:01.
    consumer = {**created(3), "created": "1970-01-01T00:01:01Z"}
    comes = [entry("a", 3, 1, 2, "DEL"), entry("x", 5, 2, 1), entry("c", 7, 3, 0, "PURGE")]
    stage, kv = bucket(there(3), consumer, comes, SILENCE, {"purged": 2}, {"purged": 1})
    assert stage.run(kv.purge_deletes(older_than)) == 3
    asked = [body for subject, body in stage.asked if "STREAM.PURGE" in subject]
    assert asked == [{"filter": "$KV.b." + key, "seq": seq} for key, seq in purged]


# The bucket


def test_status():
    stage, kv = bucket(stream(), stream(), NO_STREAM)
    assert (kv.bucket, repr(kv)) == ("b", "<KeyValue b>")
    status = stage.run(kv.status())
    assert isinstance(status, KeyValueStatus)
    assert (status.values, status.history) == (3, 5)
    config = stage.run(kv.info())
    assert isinstance(config, KeyValueConfig)
    assert (config.bucket, config.history) == ("b", 5)
    with pytest.raises(BucketNotFound):
        stage.run(kv.status())
    assert short(stage) == ["STREAM.INFO.KV_b"] * 3
