"""Spark finds the source by itself, and installations without Spark are not affected."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jetstream.spark import JetStreamDataSource
from jetstream.spark.compat import ARROW_QUERIES
from jetstream.spark.source import BatchReader
from jetstream.spark.stream import StreamReader
from natsproto.errors import InvalidValue
from tests.core import ROOT
from tests.spark.support import ROWS, schema


def run(code: str, *flags: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    command = [sys.executable, "-I", *flags, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_spark_finds_the_source_by_its_module_name():
    import pyspark_jetstream

    assert pyspark_jetstream.DefaultSource is JetStreamDataSource
    assert JetStreamDataSource.name() == "jetstream"


def test_without_spark_the_module_imports_as_empty():
    code = "import pyspark_jetstream; print(hasattr(pyspark_jetstream, 'DefaultSource'))"
    assert run(code, "-S") == "False"  # no site: no PySpark


def test_jetstream_itself_does_not_import_spark():
    code = "import jetstream, jetstream.blocking; print('pyspark' in sys.modules)"
    assert run(code) == "False"


def test_looking_up_the_source_imports_neither_readers_nor_pyarrow():
    code = "import pyspark.sql.datasource; known = set(sys.modules); import pyspark_jetstream; "
    code += "print(*sorted(set(sys.modules) - known))"
    added = run(code).split()
    assert "jetstream.spark.datasource" in added
    assert not {"jetstream.spark.source", "jetstream.spark.sink", "pyarrow"} & set(added)


def test_committing_a_write_needs_no_pyarrow():
    """Spark starts a process for each commit of a micro-batch, and pyarrow is most of its CPU."""
    module = "sink_arrow" if ARROW_QUERIES else "sink"
    code = f"import pyspark.sql.worker.commit_data_source_write, jetstream.spark.{module}; "
    code += "print('jetstream.spark.sink' in sys.modules, 'pyarrow' in sys.modules)"
    assert run(code) == "True False"


def test_options_select_readers_and_columns():
    source = JetStreamDataSource({"stream": "S"})
    assert "sequence BIGINT" in source.schema()
    assert isinstance(source.reader(schema(*ROWS)), BatchReader)
    assert isinstance(source.streamReader(schema(*ROWS)), StreamReader)
    consuming = JetStreamDataSource({"stream": "S", "mode": "consume", "consumer": "c"})
    assert "num_pending BIGINT" in consuming.schema()
    with pytest.raises(InvalidValue, match="mode is for stream read"):
        consuming.reader(schema(*ROWS))
