"""The columns of the source, and which of them are wanted.

Spark does not prune the columns of a Python source, but a schema that the user gives reaches the
reader: what is not in it is neither decoded nor, where the server can leave it out, sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS = {
    "subject": "STRING",
    "data": "BINARY",
    "headers": "MAP<STRING, ARRAY<STRING>>",
    "stream": "STRING",
    "sequence": "BIGINT",
    "timestamp": "TIMESTAMP",
}
# Only if asked for by name: Spark's timestamps end at microseconds.
EXACT = {"timestamp_ns": "BIGINT"}
# Without it TIMESTAMP would be what spark.sql.timestampType says.
_IN_DDL = {"TIMESTAMP": "TIMESTAMP_LTZ"}
CONSUMED = {"consumer": "STRING", "num_delivered": "BIGINT", "num_pending": "BIGINT"}


def default_schema(consume: bool) -> str:
    """All that Spark is told if the user says nothing."""
    columns = {**ROWS, **(CONSUMED if consume else {})}
    return ", ".join("%s %s" % (name, _IN_DDL.get(kind, kind)) for name, kind in columns.items())


def check_schema(schema: StructType, consume: bool, headers_only: bool = False) -> list[str]:
    """The names of the wanted columns; InvalidValue for a column that there is not."""
    if not schema.fields:
        raise InvalidValue("schema: it has no column, and rows without one cannot be counted")
    may_be_null = {"headers", "data"} if headers_only else {"headers"}
    known = {**ROWS, **EXACT, **(CONSUMED if consume else {})}
    names: list[str] = []
    for field in schema.fields:
        wanted = known.get(field.name)
        if wanted is None:
            hint = " without mode=consume" if field.name in CONSUMED else ""
            text = "schema: there is no column %s%s; there are %s"
            raise InvalidValue(text % (shorten(field.name), hint, ", ".join(known)))
        kind = field.dataType.simpleString().upper().replace(",", ", ")
        if kind != wanted:
            text = "schema: column %s is %s, not %s"
            raise InvalidValue(text % (field.name, wanted, cut_middle(kind)))
        if not field.nullable and field.name in may_be_null:
            raise InvalidValue("schema: column %s is NOT NULL, but may be null" % field.name)
        names.append(field.name)
    if len(set(names)) < len(names):
        raise InvalidValue("schema: a column is in it twice: %s" % cut_middle(", ".join(names)))
    return names
