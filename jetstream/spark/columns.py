"""The columns that the sink accepts.

Without pyarrow: the processes that plan and commit a write need no more than this, and Spark starts
some of them for each micro-batch. encoder.py encodes the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .options import Settings

# The encoded form of a row: the subject, the payload, and the header block or None.
Piece = tuple[bytes, bytes, bytes | None]

STRINGS = "MAP<STRING,STRING>"
COLUMNS: dict[str, tuple[str, ...]] = {
    "data": ("BINARY", "STRING"),
    "subject": ("STRING",),
    "headers": ("MAP<STRING,ARRAY<STRING>>", STRINGS),
    "msg_id": ("STRING",),
    "ttl": ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING"),
    "expected_last_subject_sequence": ("INT", "BIGINT"),
}
_COLLATION = re.compile(" COLLATE [A-Z0-9_]+")  # collations do not matter here


def check_columns(schema: StructType, settings: Settings) -> dict[str, str]:
    """Return the types of the columns by name; raise InvalidValue if the schema is invalid."""
    types: dict[str, str] = {}
    for field in schema.fields:
        allowed = COLUMNS.get(field.name)
        if allowed is None:
            text = "column %s cannot be written: select %s"
            raise InvalidValue(text % (shorten(field.name), ", ".join(COLUMNS)))
        type_ = _COLLATION.sub("", field.dataType.simpleString().upper())
        if type_ not in allowed:
            text = "column %s is %s; it can be %s"
            raise InvalidValue(text % (field.name, cut_middle(type_), " or ".join(allowed)))
        if field.name in types:
            raise InvalidValue("column %s is duplicated" % field.name)
        types[field.name] = type_
    if "data" not in types:
        raise InvalidValue("column data is missing")
    if "subject" not in types and not settings.given("subject"):
        raise InvalidValue("no subject: set option subject or add a column subject")
    return types
