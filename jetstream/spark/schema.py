"""The columns of the source, and the selection of the user.

Spark does not prune the columns of a Python source, but it passes a schema of the user to the
reader: other columns are neither decoded nor, if the server can omit them, sent.
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
# Only if requested by name: Spark's timestamps have microseconds.
EXACT = {"timestamp_ns": "BIGINT"}
# Without it, TIMESTAMP would depend on spark.sql.timestampType.
_IN_DDL = {"TIMESTAMP": "TIMESTAMP_LTZ"}
CONSUMED = {"consumer": "STRING", "num_delivered": "BIGINT", "num_pending": "BIGINT"}


def default_schema(consume: bool) -> str:
    """Return the schema for reads without one."""
    columns = {**ROWS, **(CONSUMED if consume else {})}
    return ", ".join("%s %s" % (name, _IN_DDL.get(kind, kind)) for name, kind in columns.items())


def check_schema(schema: StructType, consume: bool, headers_only: bool = False) -> list[str]:
    """Return the names of the requested columns; raise InvalidValue for an unknown one."""
    if not schema.fields:
        raise InvalidValue("schema has no columns, and rows without one cannot be counted")
    may_be_null = {"headers", "data"} if headers_only else {"headers"}
    known = {**ROWS, **EXACT, **(CONSUMED if consume else {})}
    names: list[str] = []
    for field in schema.fields:
        wanted = known.get(field.name)
        if wanted is None:
            hint = " without mode=consume" if field.name in CONSUMED else ""
            text = "schema: column %s does not exist%s; there are %s"
            raise InvalidValue(text % (shorten(field.name), hint, ", ".join(known)))
        kind = field.dataType.simpleString().upper().replace(",", ", ")
        if kind != wanted:
            text = "schema: column %s is %s, not %s"
            raise InvalidValue(text % (field.name, wanted, cut_middle(kind)))
        if not field.nullable and field.name in may_be_null:
            raise InvalidValue("schema: column %s is NOT NULL, but may be null" % field.name)
        names.append(field.name)
    if len(set(names)) < len(names):
        raise InvalidValue("schema has a duplicate column: %s" % cut_middle(", ".join(names)))
    return names
