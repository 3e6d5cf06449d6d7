"""Options of the source and of connections: how they are parsed, and which are rejected."""

from __future__ import annotations

import pickle

import pytest

from jetstream.schema.timestamp import Timestamp
from jetstream.spark.options import BATCH, OPTIONS, STREAM, WRITE, read_options
from jetstream.spark.schema import check_schema, default_schema
from natsproto.errors import InvalidValue
from tests.spark.support import TYPES, schema

S = {"stream": "S"}

READ = [  # name, text, value
    ("stream", "A, B", ["A", "B"]),
    ("filterSubjects", "a.*,b.>", ["a.*", "b.>"]),
    ("startingOffsets", "earliest", "earliest"),
    ("startingOffsets", "Latest", "latest"),
    ("startingOffsets", "42", 42),
    ("startingOffsets", " 9223372036854775807 ", 2**63 - 1),
    ("startingOffsets", '{"S": "latest"}', {"S": "latest"}),
    ("startingOffsets", '{"S": 7}', {"S": 7}),
    ("startingOffsets", '{"S": "EARLIEST"}', {"S": "earliest"}),
    ("endingTimestamp", '{"S": 1000}', {"S": Timestamp(10**9)}),
    ("startingTimestamp", "2026-01-02T03:04:05Z", Timestamp.parse("2026-01-02T03:04:05Z")),
    ("startingTimestamp", "1000", Timestamp(10**9)),
    ("failOnDataLoss", "FALSE", False),
    ("fetchMode", "DIRECT", "direct"),
    ("fetchSize", "17", 17),
    ("requestTimeout", "500ms", 0.5),
    ("requestTimeout", "2", 2.0),
    ("requestTimeout", "1.5 m", 90.0),
    ("requestTimeout", "1h", 3600.0),
]


@pytest.mark.parametrize(("name", "text", "value"), READ)
def test_options_are_parsed_by_type_and_names_ignore_case(name, text, value):
    for spelling in (name, name.lower(), name.upper()):
        assert read_options({"stream": "S", spelling: text}, BATCH).get(name) == value


REFUSED = [  # where, options, the error
    (BATCH, {}, "option stream is missing"),
    (BATCH, {"streem": "S"}, "option streem is unknown: did you mean stream?"),
    (BATCH, {**S, "startingoffset": "1"}, "did you mean startingOffsets?"),
    (BATCH, {**S, "qqq": "1"}, "option qqq is unknown"),
    (BATCH, {**S, "mode": "consume"}, "option mode is for stream read, not for a batch read"),
    (STREAM, {**S, "endingOffsets": "1"}, "option endingOffsets is for batch read"),
    (BATCH, {"stream": "A,"}, "option stream 'A,' is not a list of names"),
    (BATCH, {"stream": "A,A"}, "option stream has a duplicate: A,A"),
    (BATCH, {**S, "fetchSize": "0"}, "option fetchSize '0' is not a whole number from 1"),
    (BATCH, {**S, "fetchSize": "1e3"}, "option fetchSize '1e3' is not"),
    (BATCH, {**S, "fetchSize": "9" * 5000}, "is not a whole number"),
    (BATCH, {**S, "fetchMode": "push"}, "option fetchMode 'push' is not one of pull, direct"),
    (BATCH, {**S, "failOnDataLoss": "no"}, "is not true or false"),
    (BATCH, {**S, "requestTimeout": "soon"}, "is not a duration"),
    (BATCH, {**S, "requestTimeout": "1.2.3s"}, "is not a duration"),
    (BATCH, {**S, "requestTimeout": "0"}, "is not a timeout greater than 0"),
    (BATCH, {**S, "requestTimeout": "9" * 400}, "is not a duration"),
    (BATCH, {"stream": "A.B"}, "option stream: name 'A.B' contains '.'"),
    (BATCH, {"stream": "A B"}, "option stream: name 'A B' contains a space"),
    (BATCH, {**S, "apiPrefix": "a b"}, "option apiPrefix: subject 'a b' contains a space"),
    (BATCH, {**S, "path": "S"}, "option path is unknown: set option stream instead"),
    (BATCH, {**S, "provider": "jetstream"}, "is unknown: a stream is not a table of a catalog"),
    (BATCH, {**S, "startingTimestamp": "yesterday"}, "is not RFC 3339"),
    (BATCH, {**S, "startingOffsets": "first"}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": "0"}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": "-1"}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": "1.5"}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": "9223372036854775808"}, "is not earliest, latest, a"),
    (BATCH, {**S, "startingOffsets": '{"S": 7.0}'}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": '{"S": true}'}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": "{"}, "is not earliest, latest, a sequence"),
    (BATCH, {**S, "startingOffsets": '{"T": 1}'}, "is for streams T, option stream for S"),
    (BATCH, {**S, "startingOffsets": '{"S": {}}'}, "is not earliest, latest, a sequence"),
    (
        BATCH,
        {**S, "startingOffsets": '{"S": {"a": 1}}'},
        "is for subjects a, option filterSubjects",
    ),
    (BATCH, {**S, "subject": "b", "startingOffsets": '{"S": {"a": 1}}'}, "filterSubjects for b"),
    (BATCH, {**S, "startingOffsets": '{"S": {"a b": 1}}'}, "subject 'a b' contains a space"),
    (BATCH, {**S, "startingOffsets": '{"S": {"a": {}}}'}, "is not earliest, latest, a sequence"),
    (
        BATCH,
        {**S, "filterSubjects": "a.*.c,a.b.*", "startingOffsets": '{"S": {"a.*.c":1,"a.b.*":2}}'},
        "subjects 'a.*.c' and 'a.b.*' overlap, so some messages have two positions",
    ),
    (
        BATCH,
        {"stream": "S,T", "subject": "a", "startingOffsets": '{"S": {"a": 1}, "T": 1}'},
        "option startingOffsets by subject is for a read of one stream",
    ),
    (
        BATCH,
        {**S, "subject": "a", "startingOffsets": '{"S": {"a": 5}}', "endingOffsets": "4"},
        "startingOffsets 5 and endingOffsets 4: the end is before the start",
    ),
    (BATCH, {**S, "filterSubjects": "a..b"}, "option filterSubjects: subject 'a..b'"),
    (BATCH, {**S, "subject": "a b"}, "subject 'a b' contains a space"),
    (BATCH, {**S, "inboxPrefix": "a.*"}, "option inboxPrefix"),
    (BATCH, {**S, "domain": ""}, "option domain: name is empty"),
    (BATCH, {**S, "subject": "a", "filterSubjects": "b"}, "subject and filterSubjects exclude"),
    (BATCH, {**S, "domain": "d", "apiPrefix": "p"}, "domain and apiPrefix exclude"),
    (BATCH, {**S, "startingOffsets": "1", "startingTimestamp": "1"}, "both say where to start"),
    (BATCH, {**S, "endingOffsets": "1", "endingTimestamp": "1"}, "both say where to end"),
    (
        BATCH,
        {**S, "startingOffsets": "3", "endingOffsets": "2"},
        "startingOffsets 3 and endingOffsets 2: the end is before the start",
    ),
    (BATCH, {**S, "startingOffsets": "3", "endingOffsets": '{"S": 2}'}, "endingOffsets 2: the end"),
    (
        BATCH,
        {**S, "startingTimestamp": "1001", "endingTimestamp": "1000"},
        "startingTimestamp 1970-01-01T00:00:01.001Z and endingTimestamp 1970-01-01T00:00:01Z: the",
    ),
    (BATCH, {**S, "pushdown": "true"}, "pushdown is unknown: Spark applies the plan that it makes"),
    (STREAM, {**S, "subscribe": "t"}, "option subscribe is unknown: set option stream instead"),
    (STREAM, {**S, "maxOffsetsPerTrigger": "1"}, "set option maxMessagesPerTrigger instead"),
    (BATCH, {**S, "kafka.bootstrap.servers": "a:1"}, "is unknown: set option servers instead"),
    (
        BATCH,
        {**S, "kafka.sasl.mechanism": "PLAIN"},
        "unknown: the connection is set up by servers,",
    ),
    (BATCH, {**S, "credsFile": "a", "token": "b"}, "credsFile and token exclude"),
    (BATCH, {**S, "credsFile": "a", "nkeySeedFile": "b"}, "credsFile and nkeySeedFile exclude"),
    (BATCH, {**S, "user": "a"}, "option user needs option password"),
    (BATCH, {**S, "tlsKey": "a"}, "option tlsKey needs option tlsCert"),
    (
        BATCH,
        {**S, "fetchMode": "direct", "headersOnly": "true"},
        "fetchMode=direct and headersOnly",
    ),
    (STREAM, {**S, "maxTriggerDelay": "1s"}, "maxTriggerDelay needs option minMessagesPerTrigger"),
    (
        STREAM,
        {**S, "minMessagesPerTrigger": "2", "maxMessagesPerTrigger": "1"},
        "minMessagesPerTrigger 2 exceeds maxMessagesPerTrigger 1",
    ),
    (STREAM, {**S, "consumer": "c"}, "option consumer is for mode=consume"),
    (STREAM, {**S, "mode": "consume"}, "mode=consume needs option consumer"),
    (STREAM, {"stream": "A,B", "mode": "consume", "consumer": "c"}, "mode=consume reads one"),
    (
        STREAM,
        {**S, "mode": "consume", "consumer": "c", "subject": "a"},
        "does not apply to mode=consume",
    ),
    (STREAM, {**S, "mode": "consume", "consumer": "c", "onCommit": "purge"}, "acknowledges by"),
    (WRITE, {"delivery": "fast"}, "delivery=fast needs option stream"),
    (WRITE, {"delivery": "twice"}, "option delivery 'twice' is not one of dedup, atomic, fast"),
    (WRITE, {"delivery": "atomic", "stream": "S"}, "delivery=atomic needs option markerSubject"),
    (WRITE, {"delivery": "atomic", "markerSubject": "m"}, "delivery=atomic needs option stream"),
    (WRITE, {"markerSubject": "m"}, "option markerSubject is for delivery=atomic, not dedup"),
    (WRITE, {"minDuplicateWindow": "1s", "delivery": "atLeastOnce"}, "is for delivery=dedup"),
    (WRITE, {"stream": "A,B"}, "option stream: a write has one stream"),
    (WRITE, {"subject": "a.*"}, "option subject: subject 'a.*' has a wildcard"),
    (WRITE, {"writeId": "a.b"}, "option writeId 'a.b' is not a single token"),
    (WRITE, {"maxInFlight": "0"}, "option maxInFlight '0' is not a whole number"),
    (WRITE, {"startingOffsets": "earliest"}, "option startingOffsets is for"),
    (WRITE, {"maxInFligth": "1"}, "did you mean maxInFlight?"),
    (WRITE, {"fetchSize": "1"}, "option fetchSize is for batch read and stream read"),
]


@pytest.mark.parametrize(("where", "texts", "message"), REFUSED)
def test_invalid_options_are_rejected_by_name(where, texts, message):
    with pytest.raises(InvalidValue) as caught:
        read_options(texts, where)
    assert message in str(caught.value)


def test_filters_covered_by_others_are_removed():
    """A server rejects a consumer whose filters cover each other."""
    settings = read_options({**S, "filterSubjects": "a.*, a.b, c, c, *.x.d, y.*.d"}, BATCH)
    assert settings.filters == ["a.*", "c", "*.x.d", "y.*.d"]
    assert read_options({**S, "subject": "a.>"}, BATCH).filters == ["a.>"]
    assert read_options(S, BATCH).filters == []


def test_every_option_has_help_and_a_valid_default():
    names = [option.name for option in OPTIONS]
    assert len({name.lower() for name in names}) == len(names)
    for option in OPTIONS:
        assert option.help
        assert option.where
        if option.default is not None:
            option.type.read(option.default)


WRONG = {  # a text that no option of the type accepts
    "list": "a,,b",
    "file": "",
    "secret": "",
    "true / false": "yes",
    "subject": "a b",
    "name": "a.b",
    "duration": "a while",
    "offsets": "here",
    "times": "noon",
    "regex": "(",
    "number": "many",
    "text": "",
    "token": "a.b",
}


@pytest.mark.parametrize("option", OPTIONS, ids=[option.name for option in OPTIONS])
def test_every_option_rejects_a_text_of_another_type(option):
    """The error names the option, and does not repeat a secret."""
    text = WRONG.get(option.type.name, "something else")  # of a choice
    with pytest.raises(InvalidValue, match=f"option {option.name}") as caught:
        read_options({**S, option.name: text}, option.where[0])
    assert not (text and option.type.secret and text in str(caught.value))


@pytest.mark.parametrize("name", ["password", "token", "user"])
def test_repr_hides_secrets(name):
    secret = "the-word-is-hunter2"
    texts = {**S, name: secret}
    if name in ("user", "password"):
        texts = {**S, "user": secret, "password": secret}
    settings = read_options(texts, BATCH)
    assert "hunter2" not in repr(settings)
    assert secret in str(settings.get(name))
    # Spark sends it to its workers.
    assert pickle.loads(pickle.dumps(settings)).get(name) == settings.get(name)


@pytest.mark.parametrize(
    "text", ["hunter2,,", "nats://a,nats://u:hunter2@b", "hunter2@b:4222", "ws://u:hunter2@b/p"]
)
def test_server_urls_with_credentials_are_rejected_and_hidden(text):
    """Spark hides the values of some options by name, but not of this one."""
    with pytest.raises(InvalidValue, match="option servers") as caught:
        read_options({**S, "servers": text}, BATCH)
    assert "hunter2" not in str(caught.value)
    assert read_options({**S, "servers": "ws://b/p@q"}, BATCH).list("servers") == ["ws://b/p@q"]


def test_all_options_are_known_if_the_use_is_unknown():
    assert read_options({"mode": "consume"}, None).text("mode") == "consume"
    with pytest.raises(InvalidValue, match="did you mean stream"):
        read_options({"streem": "S"}, None)


def test_known_columns():
    assert default_schema(False).startswith("subject STRING, data BINARY, headers MAP<")
    assert "num_delivered" not in default_schema(False)
    assert "num_delivered" in default_schema(True)
    names = ["data", "headers", "timestamp", "timestamp_ns", "stream", "subject", "sequence"]
    assert check_schema(schema(*names), False) == names


def test_unknown_columns_are_rejected_by_name():
    from pyspark.sql.types import IntegerType, StructType

    with pytest.raises(InvalidValue, match="column 'key' does not exist; there are subject, data"):
        check_schema(StructType().add("key", IntegerType()), False)
    with pytest.raises(InvalidValue, match="column sequence is BIGINT, not INT"):
        check_schema(StructType().add("sequence", IntegerType()), False)
    with pytest.raises(InvalidValue, match="'consumer' does not exist without mode=consume"):
        check_schema(schema("consumer"), False)
    with pytest.raises(InvalidValue, match="schema has no columns"):
        check_schema(StructType(), False)
    with pytest.raises(InvalidValue, match="has a duplicate column"):
        check_schema(schema("data", "data"), False)


def test_columns_that_may_be_null():
    from pyspark.sql.types import StructField, StructType

    strict = StructType([StructField(name, TYPES[name], False) for name in TYPES])
    without = StructType([field for field in strict if field.name != "headers"])
    assert "data" in check_schema(without, True)
    with pytest.raises(InvalidValue, match="column data is NOT NULL, but may be null"):
        check_schema(without, True, headers_only=True)
    with pytest.raises(InvalidValue, match="column headers is NOT NULL, but may be null"):
        check_schema(strict, True)


def test_the_timestamp_type_does_not_depend_on_a_setting():
    """spark.sql.timestampType can make TIMESTAMP a type without a time zone."""
    assert default_schema(False).endswith("timestamp TIMESTAMP_LTZ")


def test_options_that_spark_adds_to_those_of_a_query():
    more = {"subject": "s", "checkpointLocation": "/tmp/c", "queryName": "orders"}
    read_options({**more, "asyncProgressTrackingEnabled": "False"}, WRITE)
    for name in (
        "asyncProgressTrackingEnabled",
        "asyncProgressTrackingCheckpointIntervalMs",
        "_asyncProgressTrackingOverrideSinkSupportCheck",
    ):
        with pytest.raises(InvalidValue, match=f"option {name.lower()} is not supported: with asy"):
            read_options({**more, name: "true"}, WRITE)
        with pytest.raises(InvalidValue, match="is unknown"):
            read_options({**S, name: "true"}, STREAM)
