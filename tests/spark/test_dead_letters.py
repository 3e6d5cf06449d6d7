"""deadLetterSubject: rows that cannot be written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sending import WriteFailed
from jetstream.spark.sink import BatchWriter
from natsproto.errors import InvalidValue
from tests.spark.sinks import stored
from tests.spark.tasks import task

SCHEMA = StructType().add("subject", StringType()).add("data", BinaryType())
SCHEMA = SCHEMA.add("expected_last_subject_sequence", LongType())


@pytest.fixture(params=["dedup", "atLeastOnce"])
def write(request, js, server, name):
    """Create the stream of dead letters; return a function that writes rows."""
    js.create_stream(name=f"{name}D", subjects=[f"{name}D"], allow_direct=True)
    options = {"servers": server.url, "delivery": request.param, "stream": name}
    options["deadLetterSubject"] = f"{name}D"
    if request.param == "dedup":
        options["writeId"] = "once"

    def write(rows):
        columns = {
            "subject": pa.array([row[0] for row in rows], pa.string()),
            "data": pa.array([row[1] for row in rows], pa.binary()),
            "expected_last_subject_sequence": pa.array([row[2] for row in rows], pa.int64()),
        }
        batch = pa.RecordBatch.from_pydict(columns)
        writer = BatchWriter(read_options(options, WRITE), SCHEMA, False)
        with task(0):
            written = writer.write(iter([batch]))
        writer.commit([written])
        return written.tally

    return write


def letters(js, name):
    return [
        (msg.headers["Spark-Error"].partition(":")[0], msg.headers.get("Spark-Subject"), msg.data)
        for msg in stored(js.stream(f"{name}D"))
    ]


def test_rows_that_cannot_be_written(js, name, make, write, caplog):
    stream = make(max_msg_size=500)
    good = [(f"{name}.{i}", b"%d" % i, None) for i in range(20)]
    bad = [
        ("a b", b"subject", None),
        (f"{name}.x", None, None),
        ("nowhere.at.all", b"no stream", None),
        (f"{name}.x", b"expected", 7),
        (f"{name}.x", b"negative", -1),
        (f"{name}.x", bytes(600), None),
        (f"{name}.x", bytes(2_000_000), None),
    ]
    rows = [*good[:7], *bad[:3], *good[7:], *bad[3:]]
    tally = write(rows)
    assert (tally.rows, tally.dead) == (27, 7)
    assert sorted(msg.data for msg in stored(stream)) == sorted(row[1] for row in good)
    assert sorted(letters(js, name)) == [
        ("InvalidValue", f"{name}.x", b""),
        ("InvalidValue", f"{name}.x", b"negative"),
        ("InvalidValue", "a b", b"subject"),
        ("MessageTooLarge", f"{name}.x", bytes(600)),
        ("NoStreamResponse", "nowhere.at.all", b"no stream"),
        ("PayloadTooLarge", f"{name}.x", b""),
        ("WrongLastSequence", f"{name}.x", b"expected"),
    ]
    assert f"7 rows could not be written and are on {name}D" in caplog.text
    again = write(rows)
    assert again.rows == 27
    if again.duplicates:  # dedup: the dead letters are stored once, too
        assert (again.duplicates, len(letters(js, name))) == (27, 7)


def test_a_failure_that_concerns_all_rows(name, make, write):
    make(max_msgs=2, discard="new")
    with pytest.raises(WriteFailed, match=r"row 2 .*maximum messages exceeded"):
        write([(f"{name}.{i}", b"", None) for i in range(5)])


def test_dead_letters_that_cannot_be_written(js, name, make, write):
    make()
    js.delete_stream(f"{name}D")
    with pytest.raises(WriteFailed, match=f"row 0 to '{name}D': NoStreamResponse"):
        write([("a b", b"", None)])


@pytest.mark.parametrize("delivery", ["atomic", "fast"])
def test_batches_have_no_dead_letters(delivery):
    options = {"stream": "S", "delivery": delivery, "deadLetterSubject": "dead"}
    with pytest.raises(InvalidValue, match="deadLetterSubject is for delivery=dedup and atLeast"):
        read_options({**options, **({"markerSubject": "m"} if delivery == "atomic" else {})}, WRITE)
