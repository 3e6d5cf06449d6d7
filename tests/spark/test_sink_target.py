"""The checks on the driver before rows are written."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.types import StringType, StructType

from jetstream.errors import StreamNotFound
from jetstream.spark.connect import forget
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sink import BatchWriter, batch_writer
from natsproto.errors import InvalidValue
from natsproto.testing import Server

DATA = StructType().add("data", StringType())


def options(server, name, **more):
    return read_options({"servers": server.url, "subject": f"{name}.a", **more}, WRITE)


def test_a_short_duplicate_window_logs_a_warning(server, name, make, caplog):
    make(duplicate_window=30)
    batch_writer(options(server, name), DATA, False)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"stream {name} has a duplicate_window of 30 s" in caplog.text
    caplog.clear()
    batch_writer(options(server, name, minDuplicateWindow="30s"), DATA, False)
    batch_writer(options(server, name, delivery="atLeastOnce"), DATA, False)
    assert not caplog.records


WRONG_TARGETS = [
    (StreamNotFound, "no stream accepts subject", {"subject": "no.stream"}),
    (StreamNotFound, "stream not found", {"stream": "NOBODY"}),
    (
        InvalidValue,
        "does not have allow_atomic",
        {"delivery": "atomic", "markerSubject": "NAME.mark", "stream": "NAME"},
    ),
    (InvalidValue, "does not have allow_batched", {"delivery": "fast", "stream": "NAME"}),
    (InvalidValue, "cannot be overwritten", {"overwrite": True}),
    (InvalidValue, "column ttl: stream NAME does not have allow_msg_ttl", {"ttl": True}),
]


@pytest.mark.parametrize(("error", "why", "more"), WRONG_TARGETS)
def test_unsuitable_targets_are_rejected(server, name, make, error, why, more):
    make()
    more = {k: v.replace("NAME", name) if isinstance(v, str) else v for k, v in more.items()}
    schema = StructType().add("data", StringType())
    if more.pop("ttl", False):
        schema.add("ttl", StringType())
    overwrite = more.pop("overwrite", False)
    with pytest.raises(error) as caught:
        batch_writer(options(server, name, **more), schema, overwrite)
    assert why.replace("NAME", name) in str(caught.value)


def test_markers_go_to_the_same_stream(server, name, make):
    make(allow_atomic=True)
    more = {"delivery": "atomic", "stream": name, "markerSubject": "elsewhere"}
    with pytest.raises(InvalidValue, match="option markerSubject: stream"):
        batch_writer(options(server, name, **more), DATA, False)


def test_a_driver_without_a_connection_checks_nothing(name, caplog):
    with Server(jetstream=True) as server:
        gone = server.url
    settings = read_options({"servers": gone, "subject": f"{name}.a"}, WRITE)
    assert isinstance(batch_writer(settings, DATA, False), BatchWriter)
    assert "the stream could not be looked up and is not checked" in caplog.text


def test_a_driver_that_finds_no_leader_checks_nothing(name, caplog):
    """During an election there is no response; the same without JetStream."""
    with Server() as server:
        settings = read_options({"servers": server.url, "subject": f"{name}.a"}, WRITE)
        assert isinstance(batch_writer(settings, DATA, False), BatchWriter)
        forget(settings)
    assert "could not be looked up and is not checked: no JetStream answers" in caplog.text
