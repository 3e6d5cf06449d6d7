"""Buckets as tables: the options `bucket` and `objectStore` in place of `stream`.

    bucket                  batch: the latest value of each key          kv_table.py
    bucket, changes=true    batch and streaming: every change            kv_changes.py
    objectStore             batch: objects as Spark's binary files       object_files.py

A bucket is a stream, so all options of the connection apply. A change log is read like any stream,
with its offsets, limits and guarantees. The other two read the state of a moment, so options about
positions in a stream do not apply to them and are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.kv.names import check_filters
from jetstream.kv.names import stream_of as stream_of_bucket
from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

from .option_table import BATCH, EVERYWHERE, OPTIONS, STREAM
from .options import read_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from .options import Settings

KEYS = {"key": "STRING", "value": "BINARY"}
STORED = {"revision": "BIGINT", "timestamp": "TIMESTAMP", "bucket": "STRING"}
TABLE = {**KEYS, **STORED}
CHANGES = {**KEYS, "operation": "STRING", **STORED}
# The first four are those of Spark's own format binaryFile.
FILES = {
    "path": "STRING",
    "modificationTime": "TIMESTAMP",
    "length": "BIGINT",
    "content": "BINARY",
    "digest": "STRING",
    "description": "STRING",
    "headers": "MAP<STRING, ARRAY<STRING>>",
    "metadata": "MAP<STRING, STRING>",
    "bucket": "STRING",
}

_STORES = {"bucket", "objectstore"}
_OWN = {"bucket", "keys", "changes"}
# The options of a connection are those of all reads and writes, except for two about messages.
_CONNECTION = {each.name for each in OPTIONS if each.where == EVERYWHERE} - {"stream", "subject"}
_OF_TABLES = _CONNECTION | {"bucket", "keys", "changes", "arrowBatchRows"}
_OF_FILES = _CONNECTION | {"objectStore", "pathGlobFilter", "minPartitions", "failOnDataLoss"}
_NOT_OF_CHANGES = ("filterSubjects", "subject", "mode", "consumer", "onCommit")


def is_store(options: Mapping[str, str]) -> bool:
    """Return whether the options name a bucket or an object store."""
    return any(name.lower() in _STORES for name in options)


def store_schema(options: Mapping[str, str]) -> str:
    """Return the schema for reads without one."""
    settings = read_options(options, None)
    # Spark asks for the schema before it says whether this is a streaming query, which always reads
    # changes. So both have the columns of changes, and a table's operations are all PUT.
    columns = FILES if settings.given("objectStore") else CHANGES
    return ", ".join(
        "%s %s" % (name, kind.replace("TIMESTAMP", "TIMESTAMP_LTZ"))
        for name, kind in columns.items()
    )


def batch_store(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Return the reader of a batch."""
    settings = read_options(options, None)
    if settings.given("objectStore"):
        from .object_files import FilesReader

        _check_names(settings, _OF_FILES, "objectStore")
        return FilesReader(settings, schema, check_columns(schema, FILES))
    if settings.flag("changes"):
        from .kv_changes import ChangesReader

        return ChangesReader(change_settings(options, BATCH), schema)
    from .kv_table import TableReader

    _check_names(settings, _OF_TABLES, "bucket without changes=true")
    check_keys(settings)
    return TableReader(settings, schema, check_columns(schema, CHANGES))


def stream_store(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Return the reader of a streaming query: always the changes."""
    from .kv_changes import ChangesStream

    settings = read_options(options, None)
    if settings.given("objectStore"):
        raise InvalidValue("option objectStore is for a batch read, not for a stream read")
    if settings.given("changes") and not settings.flag("changes"):
        raise InvalidValue("changes=false is for a batch read: a query reads the changes")
    return ChangesStream(change_settings(options, STREAM), schema)


def change_settings(options: Mapping[str, str], where: str) -> Settings:
    """Return the settings of the stream behind a bucket, as for any other stream."""
    asked = read_options(options, None)
    for name in _NOT_OF_CHANGES:
        if asked.given(name):
            raise InvalidValue("option %s does not apply to a bucket; there is keys" % name)
    texts = {name: text for name, text in options.items() if name.lower() not in _OWN}
    texts["stream"] = stream_of_bucket(asked.text("bucket"))
    keys = check_keys(asked)
    if keys:
        # The stream of a mirror has the subjects of its origin, so the bucket is a wildcard.
        texts["filterSubjects"] = ",".join("$KV.*." + key for key in keys)
    if not asked.given("failOnDataLoss"):
        # A bucket keeps the last revisions of each key. Replaced ones are not lost data.
        texts["failOnDataLoss"] = "false"
    return read_options(texts, where)


def check_keys(settings: Settings) -> list[str]:
    """Return the filters of keys; raise InvalidName if one is invalid."""
    return check_filters(settings.list("keys")) if settings.given("keys") else []


def _check_names(settings: Settings, allowed: set[str], what: str) -> None:
    for option in OPTIONS:
        if settings.given(option.name) and option.name not in allowed:
            raise InvalidValue("option %s does not apply to a read of %s" % (option.name, what))


def check_columns(schema: StructType, known: dict[str, str]) -> list[str]:
    """Return the names of the requested columns; raise InvalidValue for an unknown one."""
    if not schema.fields:
        raise InvalidValue("schema has no columns, and rows without one cannot be counted")
    names: list[str] = []
    for field in schema.fields:
        wanted = known.get(field.name)
        if wanted is None:
            text = "schema: column %s does not exist; there are %s"
            raise InvalidValue(text % (shorten(field.name), ", ".join(known)))
        kind = field.dataType.simpleString().upper().replace(",", ", ")
        if kind != wanted:
            text = "schema: column %s is %s, not %s"
            raise InvalidValue(text % (field.name, wanted, cut_middle(kind)))
        names.append(field.name)
    if len(set(names)) < len(names):
        raise InvalidValue("schema has a duplicate column: %s" % cut_middle(", ".join(names)))
    return names
