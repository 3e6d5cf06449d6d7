"""The columns that the sink takes.

Without pyarrow: the processes that plan and commit a write need no more than this, and Spark starts
some for each micro-batch. encoder.py makes of the rows what is sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .options import Settings

# What is sent for a row: the subject, the payload, the block of headers if there are any.
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
_COLLATION = re.compile(" COLLATE [A-Z0-9_]+")  # how a text is compared is no matter here


def check_columns(schema: StructType, settings: Settings) -> dict[str, str]:
    """The types of the columns by name; InvalidValue if a write cannot have such a schema."""
    kinds: dict[str, str] = {}
    for field in schema.fields:
        allowed = COLUMNS.get(field.name)
        if allowed is None:
            text = "column %s cannot be written: select %s"
            raise InvalidValue(text % (shorten(field.name), ", ".join(COLUMNS)))
        kind = _COLLATION.sub("", field.dataType.simpleString().upper())
        if kind not in allowed:
            text = "column %s is %s; it can be %s"
            raise InvalidValue(text % (field.name, cut_middle(kind), " or ".join(allowed)))
        if field.name in kinds:
            raise InvalidValue("column %s is there twice" % field.name)
        kinds[field.name] = kind
    if "data" not in kinds:
        raise InvalidValue("column data is missing: it is what is published")
    if "subject" not in kinds and not settings.given("subject"):
        raise InvalidValue("there is no column subject and no option subject: where to publish?")
    return kinds
