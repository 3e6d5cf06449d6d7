"""deadLetterSubject: rows that cannot be written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from jetstream.spark.options import WRITE, read_options
from jetstream.spark.replay import ReplayMismatch
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


# Writes that are repeated

SUBJECTS = {"!": "a b", "?": "nowhere.at.all"}  # of rows that cannot be written


@pytest.fixture
def write_again(js, server, name, make):
    """Return a function that writes partitions, always under the same name.

    Rows that begin with ! have an invalid subject, and no stream has the subject of those with ?.
    """
    make()
    js.create_stream(name=f"{name}D", subjects=[f"{name}D"], allow_direct=True)

    def write(*partitions, named=False, **more):
        options = {"servers": server.url, "deadLetterSubject": f"{name}D", "writeId": "once"}
        schema = StructType()
        for column in ["subject", "data", *["msg_id"] * named]:
            schema = schema.add(column, StringType())
        writer = BatchWriter(read_options({**options, **more}, WRITE), schema, False)
        written = []
        for number, rows in enumerate(partitions):
            subjects = [SUBJECTS.get(row[0], f"{name}.a") for row in rows]
            columns = {"subject": subjects, "data": rows, **({"msg_id": rows} if named else {})}
            batches = [pa.RecordBatch.from_pydict(columns)] if rows else []
            with task(number):
                written.append(writer.write(iter(batches)))
        writer.commit(written)

    return write


def texts(stream):
    return sorted(msg.data.decode() for msg in stored(stream))


SAME = [["?x", "!y", "A", "!z", "B"], ["!u", "?v"], [], ["C", "!w"]]
DIFFERENT = [  # what is different,  the first write,  the second one,  the error
    ("another letter", [["A", "!x"]], [["A", "!y"]], "row 1 differs from message 1 of stream .*D"),
    ("another place", [["!x", "A"]], [["A", "!x"]], "stored a row that is a dead letter now"),
    ("fewer rows", [["A", "!x", "B"]], [["A"]], "has 1 rows, and an earlier attempt stored more"),
    ("only letters", [["!x"], ["!y", "A"]], [["!x"]], r"dead\.once\.1\.0 is the id of one"),
    ("merged", [["!x", "A"], ["B"]], [["!x", "A", "B"]], r"once\.1\.0 is the id of one"),
    ("merged, a letter first", [["A"], ["!x", "B"]], [["A", "!x", "B"]], r"dead\.once\.1\.0 is"),
]


@pytest.mark.usefixtures("impatient")
def test_the_repetition_of_a_write_with_dead_letters(js, name, write_again):
    for _ in range(2):
        write_again(*SAME)
    assert texts(js.stream(name)) == ["A", "B", "C"]
    assert texts(js.stream(f"{name}D")) == ["!u", "!w", "!y", "!z", "?v", "?x"]


@pytest.mark.parametrize(
    ("first", "second", "error"), [row[1:] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT]
)
def test_a_repetition_with_other_dead_letters(write_again, first, second, error):
    write_again(*first)
    with pytest.raises(ReplayMismatch, match=error):
        write_again(*second)


@pytest.mark.parametrize("more", [{"rowIds": "content"}, {"named": True}])
def test_dead_letters_whose_ids_do_not_depend_on_the_plan(js, name, write_again, more):
    for partitions in ([["!x", "A"], ["!y", "?z"]], [["?z", "!y", "A", "!x"]]):
        write_again(*partitions, **more)
    assert texts(js.stream(name)) == ["A"]
    assert texts(js.stream(f"{name}D")) == ["!x", "!y", "?z"]
